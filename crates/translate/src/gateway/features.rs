//! What Fairway can do of the Gateway API, by the names that the specification has for it (`status.supportedFeatures`
//! of a GatewayClass). Tools ask for it there, the specification's own suite among them.

use crate::{GatewayServices, Options};

/// Whatever the options.
const ALWAYS: &[&str] = &[
    "BackendTLSPolicy",
    "BackendTLSPolicySANValidation",
    "GRPCRoute",
    "GRPCRouteNamedRouteRule",
    "GRPCRouteRequestHeaderModifier",
    "Gateway",
    "GatewayBackendClientCertificate",
    "GatewayRouteHostnameIntersectionPrecedence",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendRequestHeaderModification",
    "HTTPRouteBackendTimeout",
    "HTTPRouteBackendURLRewrite",
    "HTTPRouteCORS",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteRetryCodes",
    "HTTPRouteRetryConnectionError",
    "HTTPRouteSchemeRedirect",
    "ListenerSet",
    "ReferenceGrant",
];

/// Where each Gateway has addresses or ports of its own: its listeners are kept apart there alone.
const APART: &[&str] = &[
    "GatewayFrontendClientCertificateValidation",
    "GatewayFrontendClientCertificateValidationInsecureFallback",
    "GatewayHTTPListenerIsolation",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayPort8080",
    "TCPRoute",
    "TLSRoute",
    "TLSRouteModeMixed",
    "TLSRouteModeTerminate",
    "UDPRoute",
];

/// The names that hold with these options, in their order; none where Gateways are not served at all.
pub(super) fn supported(options: &Options) -> Vec<&'static str> {
    if options.raw {
        return Vec::new();
    }
    let mut all = ALWAYS.to_vec();
    if !options.gateways_share() {
        all.extend(APART);
    }
    if !options.gateway_addresses.is_empty() {
        all.extend(["GatewayAddressEmpty", "GatewayStaticAddresses"]);
    }
    if options.gateway_services != GatewayServices::None {
        all.push("GatewayInfrastructure");
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::supported;
    use crate::{GatewayServices, Options};
    use std::path::Path;

    #[test]
    fn what_is_told_is_what_the_suite_is_run_with() {
        let options = Options {
            gateway_addresses: vec!["192.0.2.0/24".parse().expect("a network")],
            gateway_services: GatewayServices::Headless,
            ..Options::default()
        };
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/features.txt");
        let listed = std::fs::read_to_string(path).expect("it is there");
        let listed: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(supported(&options), listed);
    }

    #[test]
    fn what_hangs_on_an_option_is_told_with_it() {
        let shared = supported(&Options::default());
        assert!(shared.contains(&"HTTPRoute") && shared.contains(&"ReferenceGrant"));
        for name in [
            "TCPRoute",
            "UDPRoute",
            "GatewayHTTPListenerIsolation",
            "GatewayHTTPSListenerDetectMisdirectedRequests",
            "GatewayInfrastructure",
            "GatewayStaticAddresses",
        ] {
            assert!(!shared.contains(&name), "{name}");
        }
        assert!(supported(&Options { raw: true, ..Options::default() }).is_empty());
    }
}
