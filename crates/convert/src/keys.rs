//! What becomes of each annotation, by its name: one row for each that Fairway knows.

/// What becomes of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is said, or the place that says it notes what it cannot.
    Said,
    /// It only counts beside another one, which is noted.
    Part,
    /// No route needs it.
    Idle,
    /// Nothing says it: why, and what to do.
    Lost(&'static str, &'static str),
    /// Nothing says it, and it guards: its paths are closed.
    Guard(&'static str, &'static str),
}

use Fate::{Guard, Idle, Lost, Part, Said};

/// What to do about most notes.
pub(crate) const NO_ACTION: &str = "no action needed";
/// What to do about guards.
pub(crate) const GUARD_REMEDY: &str = "guard it in the application or by a NetworkPolicy, then give the rules of these paths their backendRefs; or leave it an Ingress";
const KEEP: &str = "leave this Ingress as it is: Ingresses and routes may share a host";
const SESSIONS: &str = "sessionPersistence is no part of the standard channel";
const SNIPPET: &str =
    "there is no raw configuration in the Gateway API, and nobody knows here what it guards";
const PASSWORDS: &str = "no filter of the standard channel asks for passwords";
const ASKED: &str = "no filter of the standard channel asks somebody else about requests";
const LISTS: &str = "no filter knows addresses of clients";
const RATES: &str = "no filter counts requests";
const CERTIFICATES: &str =
    "certificates of clients are a matter of a Gateway and its port, not of one host";
const PAGES: &str = "no filter replaces answers by their status";
const ANSWERS: &str = "no filter rewrites a part of a field of answers";
const TRIES: &str = "retry is no part of the standard channel";
const FILTER: &str = "write it as a filter of an own controller, or do it in the application";
const HEADS: &str = "heads of answers have the bound that holds for all";
const PORTS: &str =
    "a listener goes by the port that a request came to, not by what a proxy in front of it says";
const WAF: &str = "no filter looks into requests";

/// Every annotation that Fairway reads, and those that it refuses.
const FATES: &[(&str, Fate)] = &[
    ("affinity", Lost(SESSIONS, KEEP)),
    ("affinity-canary-behavior", Part),
    ("affinity-mode", Part),
    ("allowlist-source-range", Guard(LISTS, GUARD_REMEDY)),
    ("whitelist-source-range", Guard(LISTS, GUARD_REMEDY)),
    ("denylist-source-range", Guard(LISTS, GUARD_REMEDY)),
    ("satisfy", Part),
    ("app-root", Said),
    ("auth-always-set-cookie", Part),
    ("auth-cache-duration", Part),
    ("auth-cache-key", Part),
    ("auth-keepalive", Part),
    ("auth-keepalive-requests", Part),
    ("auth-keepalive-share-vars", Part),
    ("auth-keepalive-timeout", Part),
    ("auth-method", Part),
    ("auth-proxy-set-headers", Part),
    ("auth-realm", Part),
    ("auth-request-redirect", Part),
    ("auth-response-headers", Part),
    ("auth-secret", Part),
    ("auth-secret-type", Part),
    ("auth-signin", Part),
    ("auth-signin-redirect-param", Part),
    ("auth-snippet", Part),
    ("auth-tls-error-page", Part),
    ("auth-tls-match-cn", Part),
    ("auth-tls-pass-certificate-to-upstream", Part),
    (
        "auth-tls-secret",
        Guard(
            CERTIFICATES,
            "set spec.tls.frontend of a Gateway of its own, which needs an address of its own",
        ),
    ),
    ("auth-tls-verify-client", Part),
    ("auth-tls-verify-depth", Part),
    ("auth-type", Guard(PASSWORDS, GUARD_REMEDY)),
    ("auth-url", Guard(ASKED, GUARD_REMEDY)),
    ("backend-protocol", Said),
    ("canary", Said),
    ("canary-by-cookie", Said),
    ("canary-by-header", Said),
    ("canary-by-header-pattern", Said),
    ("canary-by-header-value", Said),
    ("canary-weight", Said),
    ("canary-weight-total", Said),
    ("client-body-buffer-size", Idle),
    ("configuration-snippet", Guard(SNIPPET, KEEP)),
    ("connection-proxy-header", Lost("framing fields are the proxy's own", KEEP)),
    ("cors-allow-credentials", Said),
    ("cors-allow-headers", Said),
    ("cors-allow-methods", Said),
    ("cors-allow-origin", Said),
    ("cors-expose-headers", Said),
    ("cors-max-age", Said),
    ("custom-headers", Said),
    ("custom-http-errors", Lost(PAGES, FILTER)),
    ("default-backend", Lost("a rule has no second choice for backends without endpoints", KEEP)),
    ("disable-proxy-intercept-errors", Part),
    (
        "enable-access-log",
        Lost("requests of routes are always logged", "set disable-access-log in the ConfigMap"),
    ),
    ("enable-cors", Said),
    ("enable-global-auth", Part),
    ("enable-influxdb", Idle),
    ("enable-modsecurity", Guard(WAF, GUARD_REMEDY)),
    ("enable-opentelemetry", Lost("no route chooses what is traced", KEEP)),
    ("enable-opentracing", Lost("no route chooses what is traced", KEEP)),
    ("enable-owasp-core-rules", Part),
    ("enable-rewrite-log", Idle),
    ("fastcgi-index", Part),
    ("fastcgi-params-configmap", Part),
    ("force-ssl-redirect", Said),
    ("from-to-www-redirect", Said),
    ("global-rate-limit", Idle),
    ("global-rate-limit-ignored-cidrs", Idle),
    ("global-rate-limit-key", Idle),
    ("global-rate-limit-window", Idle),
    ("http2-push-preload", Idle),
    ("influxdb-host", Idle),
    ("influxdb-measurement", Idle),
    ("influxdb-port", Idle),
    ("influxdb-server-name", Idle),
    ("limit-allowlist", Part),
    ("limit-whitelist", Part),
    ("limit-burst-multiplier", Part),
    ("limit-connections", Lost(RATES, KEEP)),
    ("limit-rate", Lost("no filter slows answers down", KEEP)),
    ("limit-rate-after", Part),
    ("limit-rpm", Lost(RATES, KEEP)),
    ("limit-rps", Lost(RATES, KEEP)),
    ("load-balance", Lost("no route chooses how endpoints are chosen", KEEP)),
    ("mirror-host", Lost("copies have the host of the request", KEEP)),
    ("mirror-request-body", Lost("copies have the whole body", KEEP)),
    ("mirror-target", Said),
    ("modsecurity-snippet", Guard(WAF, GUARD_REMEDY)),
    ("modsecurity-transaction-id", Part),
    ("opentelemetry-operation-name", Part),
    ("opentelemetry-trust-incoming-span", Part),
    ("opentracing-trust-incoming-span", Part),
    ("permanent-redirect", Said),
    ("permanent-redirect-code", Said),
    ("preserve-trailing-slash", Idle),
    ("proxy-body-size", Lost("bodies of routes have no bound", "bound them in the application")),
    ("proxy-buffer-size", Lost(HEADS, KEEP)),
    ("proxy-buffering", Idle),
    ("proxy-buffers-number", Idle),
    ("proxy-busy-buffers-size", Idle),
    (
        "proxy-connect-timeout",
        Lost(
            "timeouts of a rule last until the answer begins, and know no single step",
            "set it in the ConfigMap for all",
        ),
    ),
    ("proxy-cookie-domain", Lost(ANSWERS, FILTER)),
    ("proxy-cookie-path", Lost(ANSWERS, FILTER)),
    ("proxy-http-version", Lost("backends are spoken to in HTTP/1.1 or HTTP/2", KEEP)),
    ("proxy-max-temp-file-size", Idle),
    (
        "proxy-next-upstream",
        Lost(TRIES, "add retry to the rules where the experimental channel is installed"),
    ),
    (
        "proxy-next-upstream-timeout",
        Lost(TRIES, "add retry to the rules where the experimental channel is installed"),
    ),
    (
        "proxy-next-upstream-tries",
        Lost(TRIES, "add retry to the rules where the experimental channel is installed"),
    ),
    ("proxy-read-timeout", Said),
    ("proxy-redirect-from", Lost(ANSWERS, FILTER)),
    ("proxy-redirect-to", Part),
    ("proxy-request-buffering", Idle),
    (
        "proxy-send-timeout",
        Lost(
            "timeouts of a rule last until the answer begins, and know no single step",
            "set it in the ConfigMap for all",
        ),
    ),
    ("proxy-ssl-ciphers", Lost("a BackendTLSPolicy chooses no cipher suites", KEEP)),
    ("proxy-ssl-name", Said),
    ("proxy-ssl-protocols", Lost("a BackendTLSPolicy chooses no versions of TLS", KEEP)),
    ("proxy-ssl-secret", Said),
    ("proxy-ssl-server-name", Said),
    ("proxy-ssl-verify", Said),
    ("proxy-ssl-verify-depth", Idle),
    ("relative-redirects", Lost("redirects of routes name scheme and host", KEEP)),
    ("rewrite-target", Said),
    ("secure-verify-ca-secret", Idle),
    ("server-alias", Said),
    ("server-snippet", Guard(SNIPPET, KEEP)),
    (
        "service-upstream",
        Lost(
            "whether endpoints or the address of a Service are used is the implementation's",
            KEEP,
        ),
    ),
    ("session-cookie-change-on-failure", Part),
    ("session-cookie-conditional-samesite-none", Part),
    ("session-cookie-domain", Part),
    ("session-cookie-expires", Part),
    ("session-cookie-hash", Idle),
    ("session-cookie-max-age", Part),
    ("session-cookie-name", Part),
    ("session-cookie-path", Part),
    ("session-cookie-samesite", Part),
    ("session-cookie-secure", Part),
    (
        "ssl-ciphers",
        Lost(
            "listeners have the cipher suites of the ConfigMap",
            "set ssl-ciphers in the ConfigMap",
        ),
    ),
    ("ssl-passthrough", Said),
    ("ssl-prefer-server-ciphers", Idle),
    ("ssl-redirect", Said),
    ("stream-snippet", Lost(SNIPPET, "write a TCPRoute or UDPRoute")),
    ("temporal-redirect", Said),
    ("temporal-redirect-code", Said),
    ("upstream-hash-by", Lost("no route chooses how endpoints are chosen", KEEP)),
    ("upstream-hash-by-subset", Part),
    ("upstream-hash-by-subset-size", Part),
    ("upstream-vhost", Said),
    ("use-port-in-redirects", Said),
    ("use-regex", Said),
    ("x-forwarded-prefix", Said),
];

/// Keys of the ConfigMap that refuse requests of everybody, whatever serves them.
pub(crate) const GUARDS_OF_ALL: [&str; 3] = ["block-cidrs", "block-user-agents", "block-referers"];

/// Keys of the ConfigMap that counted for Ingresses alone and are no annotation's, with what is lost.
const OF_CONFIG_MAP: &[(&str, &str)] = &[
    ("custom-http-errors", PAGES),
    ("http-snippet", SNIPPET),
    ("limit-rate", "no filter slows answers down"),
    ("load-balance", "no route chooses how endpoints are chosen"),
    ("location-snippet", SNIPPET),
    ("proxy-body-size", "bodies of routes have no bound"),
    ("proxy-connect-timeout", "the time-out of 5 s holds for routes"),
    ("proxy-next-upstream", TRIES),
    ("proxy-next-upstream-timeout", TRIES),
    ("proxy-next-upstream-tries", TRIES),
    ("proxy-redirect-from", ANSWERS),
    ("proxy-cookie-domain", ANSWERS),
    ("proxy-cookie-path", ANSWERS),
    ("server-snippet", SNIPPET),
    ("upstream-hash-by", "no route chooses how endpoints are chosen"),
    ("use-forwarded-headers", PORTS),
    ("use-proxy-protocol", PORTS),
];

/// What becomes of the annotation of this name, without prefix.
pub(crate) fn fate(name: &str) -> Fate {
    FATES.iter().find(|(known, _)| *known == name).map_or(Idle, |(_, fate)| *fate)
}

/// Whether a value asks for anything.
pub(crate) fn counts(name: &str, value: &str) -> bool {
    let value = value.trim();
    let is_default = match name {
        "affinity" => value != "cookie",
        "enable-access-log" => value != "false",
        "load-balance" => value == "round_robin",
        "mirror-request-body" => value != "off",
        "proxy-body-size" => matches!(value, "0" | "1m" | "1M"),
        "proxy-http-version" => value == "1.1",
        "proxy-redirect-from" => matches!(value, "off" | "default"),
        "proxy-cookie-domain" | "proxy-cookie-path" => value == "off",
        "allowlist-source-range" | "whitelist-source-range" => lets_everybody_in(value),
        _ => value == "false",
    };
    !value.is_empty() && !is_default
}

/// Whether a list of addresses names all of them, and nothing that may be a mistake.
fn lets_everybody_in(list: &str) -> bool {
    const ALL: [&str; 2] = ["0.0.0.0/0", "::/0"];
    let items: Vec<&str> = list.split(',').map(str::trim).collect();
    ALL.iter().all(|all| items.contains(all)) && items.iter().all(|item| ALL.contains(item))
}

/// Reason and remedy for a key of the ConfigMap whose value only Ingresses heed.
pub(crate) fn of_config_map(name: &str, value: &str) -> Option<(&'static str, &'static str)> {
    let (_, reason) = OF_CONFIG_MAP.iter().find(|(known, _)| *known == name)?;
    let remedy = if *reason == PORTS {
        "have it send to port 443 what came under TLS, or take the routes away whose names end in -http"
    } else {
        "routes do without it"
    };
    counts(name, value).then_some((*reason, remedy))
}

#[cfg(test)]
mod tests {
    use super::{FATES, Fate, counts, fate};
    use std::collections::BTreeSet;

    #[test]
    fn every_annotation_has_a_row_and_no_row_is_of_none() {
        let rows = translate::annotation_rows();
        let known: BTreeSet<&str> =
            rows.iter().flat_map(|row| row.aliases.iter().copied().chain([row.name])).collect();
        let told: BTreeSet<&str> = FATES.iter().map(|(name, _)| *name).collect();
        assert_eq!(told.len(), FATES.len(), "a name has two rows");
        assert_eq!(
            known.difference(&told).collect::<Vec<_>>(),
            Vec::<&&str>::new(),
            "without a row"
        );
        assert_eq!(told.difference(&known).collect::<Vec<_>>(), Vec::<&&str>::new(), "of nothing");
    }

    #[test]
    fn what_asks_for_nothing_is_not_lost() {
        assert!(matches!(fate("limit-rps"), Fate::Lost(..)) && counts("limit-rps", "5"));
        assert!(!counts("enable-modsecurity", "false") && !counts("proxy-body-size", "0"));
        assert!(counts("enable-access-log", "false") && !counts("enable-access-log", "true"));
    }
}
