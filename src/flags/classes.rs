//! Which Ingresses are served, and the objects that settings come from.

use super::object::object;
use super::pflag;
use clap::{ArgAction, Args};
use ipnet::IpNet;
use objects::ObjectKey;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use translate::{Budget, GATEWAY_TARGET_PORTS, GatewayServices};

/// Which Ingresses are served, and the objects that settings come from.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Ingresses")]
pub(crate) struct Classes {
    /// Value of the annotation kubernetes.io/ingress.class to serve; also the name for --ingress-class-by-name.
    #[arg(long, value_name = "NAME", default_value = "nginx")]
    pub(crate) ingress_class: String,
    /// spec.controller of the IngressClasses to serve.
    #[arg(long, value_name = "NAME", default_value = "k8s.io/ingress-nginx")]
    pub(crate) controller_class: String,
    /// spec.controllerName of the GatewayClasses to serve.
    #[arg(long, value_name = "NAME", default_value = translate::GATEWAY_CONTROLLER, value_parser = controller)]
    pub(crate) gateway_controller_name: String,
    /// Addresses or networks of this machine of which each Gateway gets one of its own, comma separated; none: all
    /// Gateways share the addresses and ports of Ingresses.
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', value_parser = network)]
    pub(crate) gateway_addresses: Vec<IpNet>,
    /// Make a Service for each Gateway, with the labels and annotations of its spec.infrastructure: headless, a name
    /// for its address of --gateway-addresses; or load-balancer, which leads to ports of --gateway-target-ports of all
    /// replicas and has the address that the cluster gives it, and takes --publish-service. Takes rights over Services
    /// and EndpointSlices. true is headless, false is none.
    #[arg(long, value_name = "none, headless or load-balancer", num_args = 0..=1, require_equals = true,
        default_value = "none", default_missing_value = "true", value_parser = services)]
    pub(crate) gateway_services: GatewayServices,
    /// Ports of this process that --gateway-services=load-balancer leads to, one for each Gateway and port.
    #[arg(long, value_name = "FIRST-LAST", default_value_t = TargetPorts(GATEWAY_TARGET_PORTS))]
    pub(crate) gateway_target_ports: TargetPorts,
    /// Serve the IngressClass named like --ingress-class whatever its spec.controller.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) ingress_class_by_name: bool,
    /// Serve Ingresses that name no class, too.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) watch_ingress_without_class: bool,
    /// Ignore Ingresses with spec.defaultBackend.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) disable_catch_all: bool,
    /// Leave out Ingresses whose hosts, paths or Secret names look like an attack on nginx.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) deep_inspect: bool,
    /// Take no Ingress with a value of an annotation that is none; false: texts count as they are written, and where a
    /// value cannot be read the default counts.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) enable_annotation_validation: bool,
    /// What the Ingresses of one namespace may take together, as name=number, comma separated; see namespace-budget of
    /// the ConfigMap, which counts before it.
    #[arg(long, value_name = "AMOUNTS", default_value = "")]
    pub(crate) namespace_budget: Budget,
    /// Services of type ExternalName have no endpoints.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) disable_svc_external_name: bool,
    /// Endpoints that are meant for the zone of this Pod's node go first, for Services that ask for it.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) enable_topology_aware_routing: bool,
    /// Prefix of the annotations that are read.
    #[arg(long, value_name = "PREFIX", default_value = translate::ANNOTATIONS_PREFIX, value_parser = prefix)]
    pub(crate) annotations_prefix: String,
    /// The ConfigMap with the settings of the process as a whole, as namespace/name.
    #[arg(long, value_name = "OBJECT", value_parser = object, default_value = "", hide_default_value = true)]
    pub(crate) configmap: ObjectFlag,
    /// The Secret with the certificate for handshakes without a better one, as namespace/name.
    #[arg(long, value_name = "OBJECT", value_parser = object, default_value = "", hide_default_value = true)]
    pub(crate) default_ssl_certificate: ObjectFlag,
    /// The Service that answers what nothing else does, as namespace/name.
    #[arg(long, value_name = "OBJECT", value_parser = object, default_value = "", hide_default_value = true)]
    pub(crate) default_backend_service: ObjectFlag,
    /// The ConfigMap whose keys are ports and whose values are TCP Services behind them, as namespace/name.
    #[arg(long, value_name = "OBJECT", value_parser = object, default_value = "", hide_default_value = true)]
    pub(crate) tcp_services_configmap: ObjectFlag,
    /// The same for UDP.
    #[arg(long, value_name = "OBJECT", value_parser = object, default_value = "", hide_default_value = true)]
    pub(crate) udp_services_configmap: ObjectFlag,
    /// TLS connections to hosts with the annotation ssl-passthrough go to their Service as they are.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) enable_ssl_passthrough: bool,
    /// Networks to which names and URLs of objects may lead although they are of this machine (loopback), of its links
    /// (169.254.0.0/16) or where clouds give credentials to nodes; separated by commas.
    #[arg(long, value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    pub(crate) allow_target_networks: Vec<IpNet>,
}

/// With a slash at its end no annotation has it, and all guards would be off.
fn prefix(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains('/') {
        return Err(format!(
            "is what stands before the slash of an annotation: write {}",
            translate::ANNOTATIONS_PREFIX
        ));
    }
    Ok(text.to_owned())
}

/// A name as `spec.controllerName` has to be.
fn controller(text: &str) -> Result<String, String> {
    let is_plain = |text: &str, more: &[u8]| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
        !text.is_empty() && text.bytes().all(fits)
    };
    let is_name = text.len() <= 253
        && text.split_once('/').is_some_and(|(domain, path)| {
            is_plain(domain, b"-.") && is_plain(path, b"-._~%/!$&'()*+,;=:")
        });
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(format!("expected domain/path, such as {}", translate::GATEWAY_CONTROLLER))
    }
}

/// Which Service there is for each Gateway.
fn services(text: &str) -> Result<GatewayServices, String> {
    match (text, pflag::boolean(text)) {
        ("none", _) | (_, Ok(false)) => Ok(GatewayServices::None),
        ("headless", _) | (_, Ok(true)) => Ok(GatewayServices::Headless),
        ("load-balancer", _) => Ok(GatewayServices::LoadBalancer),
        _ => Err("expected none, headless or load-balancer".to_owned()),
    }
}

/// A range of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetPorts(pub(crate) RangeInclusive<u16>);

impl fmt::Display for TargetPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.start(), self.0.end())
    }
}

impl FromStr for TargetPorts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ends = text.trim().split_once('-');
        let ends =
            ends.and_then(|(first, last)| first.trim().parse().ok().zip(last.trim().parse().ok()));
        match ends {
            Some((first, last)) if 0 < first && first <= last => Ok(Self(first..=last)),
            _ => Err("expected the first and the last port, such as 20000-21999".to_owned()),
        }
    }
}

/// A network, or an address, which is a network of one.
fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let one = || text.parse().map(|address: IpAddr| IpNet::from(address));
    text.parse().or_else(|_| one()).map_err(|_| {
        "expected a network or an address, such as 169.254.20.0/24 or 169.254.20.10".to_owned()
    })
}

/// An object, or none. (Not spelled `Option`, which clap would take for a flag that may be absent.)
pub(crate) type ObjectFlag = Option<ObjectKey>;

#[cfg(test)]
mod tests {
    use super::{TargetPorts, network, services};
    use translate::GatewayServices;

    #[test]
    fn services_are_named_and_old_spellings_mean_what_they_meant() {
        for (text, meant) in [
            ("none", GatewayServices::None),
            ("false", GatewayServices::None),
            ("headless", GatewayServices::Headless),
            ("true", GatewayServices::Headless),
            ("T", GatewayServices::Headless),
            ("load-balancer", GatewayServices::LoadBalancer),
        ] {
            assert_eq!(services(text), Ok(meant));
        }
        assert!(services("loadbalancer").is_err_and(|why| why.contains("load-balancer")));
    }

    #[test]
    fn a_range_of_ports_has_a_first_and_a_last_one() {
        assert_eq!("8000-8001".parse(), Ok(TargetPorts(8000..=8001)));
        for wrong in ["", "8000", "0-9", "9-8", "8000-70000", "a-b"] {
            assert!(
                wrong.parse::<TargetPorts>().is_err_and(|why| why.contains("20000-21999")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_address_is_a_network_of_one() {
        for (written, meant) in [
            ("169.254.20.10", "169.254.20.10/32"),
            ("::1", "::1/128"),
            (" 10.0.0.0/8", "10.0.0.0/8"),
        ] {
            assert_eq!(network(written).map(|read| read.to_string()), Ok(meant.to_owned()));
        }
        for wrong in ["", "localhost", "10.0.0.0/33", "10.0.0"] {
            assert!(network(wrong).is_err_and(|why| why.contains("169.254.20.0/24")), "{wrong}");
        }
    }
}
