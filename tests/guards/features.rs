//! Both sides of the table: what closes a location, and what might open it again.

/// Annotations without their prefix, with values.
type Annotations = &'static [(&'static str, &'static str)];

/// What closes a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) name: &'static str,
    pub(crate) annotations: Annotations,
    /// Header lines of the requests that it is to stop.
    pub(crate) headers: Annotations,
    /// Requests that pass before it closes.
    pub(crate) free: usize,
    /// What it answers; none: it closes nothing, and every request has to reach an application.
    pub(crate) status: Option<u16>,
    /// What it answers over TLS, if that is something else.
    pub(crate) over_tls: Option<u16>,
}

const OPEN: Guard =
    Guard { name: "open", annotations: &[], headers: &[], free: 0, status: None, over_tls: None };

const PASSWORD: Annotations =
    &[("auth-type", "basic"), ("auth-secret", "basic-auth"), ("auth-realm", "Members")];

const fn guard(name: &'static str, annotations: Annotations, status: u16) -> Guard {
    Guard { name, annotations, status: Some(status), ..OPEN }
}

/// The guards, one line each. The first one shows that every feature works where nothing is closed.
pub(crate) const GUARDS: &[Guard] = &[
    OPEN,
    guard("allow", &[("allowlist-source-range", "192.0.2.0/24")], 403),
    guard("deny", &[("denylist-source-range", "0.0.0.0/0")], 403),
    guard("unreadable-list", &[("allowlist-source-range", "everyone")], 503),
    guard("blank-list", &[("allowlist-source-range", "")], 503),
    guard("unreadable-limit", &[("limit-rps", "few")], 503),
    guard("password", PASSWORD, 401),
    guard("unknown-passwords", &[("auth-type", "basic"), ("auth-secret", "nowhere")], 503),
    guard(
        "authenticator",
        &[("auth-url", "http://auth.demo.svc.cluster.local/auth?status=403")],
        403,
    ),
    guard("no-authenticator", &[("auth-url", "http://refused.demo.svc.cluster.local/")], 500),
    Guard {
        over_tls: Some(400),
        ..guard(
            "certificate",
            &[("auth-tls-secret", "demo/ca"), ("auth-tls-verify-client", "on")],
            403,
        )
    },
    guard("unknown-authority", &[("auth-tls-secret", "demo/nowhere")], 403),
    Guard { headers: &[("User-Agent", AGENT)], ..guard("agent", &[], 403) },
    Guard { headers: &[("Referer", "http://spam.test/x")], ..guard("referer", &[], 403) },
    Guard { free: 2, ..guard("rate", &[("limit-rpm", "1"), ("limit-burst-multiplier", "1")], 503) },
];

/// An agent that the ConfigMap blocks.
const AGENT: &str = "TableBot";

/// The ConfigMap of the whole table.
pub(crate) const CONFIG_MAP: Annotations =
    &[("block-user-agents", AGENT), ("block-referers", "~*//spam\\.test/")];

/// What might open a location again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    pub(crate) annotations: Annotations,
    pub(crate) method: &'static str,
    /// The path that is asked for; the location is `/guarded`.
    pub(crate) path: &'static str,
    pub(crate) headers: Annotations,
    /// The host that is asked for, if it is not that of the Ingress.
    pub(crate) alias: bool,
    /// A canary of the same path, without a guard, takes all requests.
    pub(crate) canary: bool,
    /// Every request that is let in is copied to the Service echo-d.
    pub(crate) copied: bool,
}

const PLAIN: Feature = Feature {
    name: "plain",
    annotations: &[],
    method: "GET",
    path: "/guarded",
    headers: &[],
    alias: false,
    canary: false,
    copied: false,
};

const fn annotated(name: &'static str, annotations: Annotations) -> Feature {
    Feature { name, annotations, ..PLAIN }
}

const fn asked(name: &'static str, path: &'static str) -> Feature {
    Feature { name, path, ..PLAIN }
}

const fn told(name: &'static str, headers: Annotations) -> Feature {
    Feature { name, headers, ..PLAIN }
}

/// The features, one line each.
pub(crate) const FEATURES: &[Feature] = &[
    PLAIN,
    annotated(
        "error-page",
        &[("custom-http-errors", "400,401,403,503"), ("default-backend", "errors")],
    ),
    annotated("own-default-backend", &[("default-backend", "echo-c")]),
    annotated(
        "retry",
        &[
            ("proxy-next-upstream", "error timeout http_403 http_503 non_idempotent"),
            ("proxy-next-upstream-tries", "5"),
        ],
    ),
    Feature {
        copied: true,
        ..annotated(
            "mirror",
            &[("mirror-target", "http://echo-d.demo.svc.cluster.local/$request_uri")],
        )
    },
    annotated("rewrite", &[("rewrite-target", "/open")]),
    annotated("regex", &[("use-regex", "true")]),
    annotated("cors", &[("enable-cors", "true")]),
    annotated("satisfy-any", &[("satisfy", "any")]),
    annotated("other-host", &[("upstream-vhost", "open.test")]),
    annotated("affinity", &[("affinity", "cookie"), ("affinity-mode", "persistent")]),
    annotated("hash", &[("upstream-hash-by", "$request_uri")]),
    annotated("service-upstream", &[("service-upstream", "true")]),
    annotated("slow", &[("limit-rate", "1000")]),
    annotated(
        "traced",
        &[("enable-opentelemetry", "true"), ("opentelemetry-operation-name", "open")],
    ),
    annotated("exempt-others", &[("limit-allowlist", "192.0.2.0/24")]),
    annotated(
        "auth-cache",
        &[("auth-cache-key", "$remote_addr"), ("auth-cache-duration", "200 1m")],
    ),
    Feature { alias: true, ..annotated("alias", &[("server-alias", "alias.test")]) },
    Feature { canary: true, ..annotated("canary", &[]) },
    asked("encoded", "/%67uarded"),
    asked("encoded-twice-over", "/x/%2e%2e/%67uarded"),
    asked("slashes", "//guarded"),
    asked("dots", "/open/../guarded"),
    asked("below", "/guarded/any/thing?else=1"),
    asked("nothing-behind-the-slash", "/guarded/"),
    Feature { method: "HEAD", ..annotated("head", &[]) },
    Feature { method: "POST", ..annotated("post", &[]) },
    Feature { method: "OPTIONS", ..annotated("options", &[]) },
    told("forged-address", &[("X-Forwarded-For", "192.0.2.1"), ("X-Real-IP", "192.0.2.1")]),
    told("forged-path", &[("X-Original-URL", "/open"), ("X-Rewrite-URL", "/open")]),
    told("forged-method", &[("X-HTTP-Method-Override", "OPTIONS")]),
    told("forged-status", &[("X-Code", "200"), ("X-Original-URI", "/open")]),
];
