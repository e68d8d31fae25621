//! HTTPRoute and its relatives, as far as they are read.

use crate::{Kind, Meta, ObjectRef};
use std::time::Duration;

/// TCPRoute, UDPRoute or TLSRoute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRoute {
    /// Name and so on.
    pub meta: Meta,
    /// Which of them it is.
    pub kind: Kind,
    /// `spec.parentRefs`.
    pub parents: Vec<ParentRef>,
    /// `spec.hostnames` of a TLSRoute.
    pub hostnames: Vec<String>,
    /// `backendRefs` of its rule.
    pub backends: Vec<BackendRef>,
    /// What it asks for and nobody reads, with a remedy.
    pub unread: Option<String>,
    /// `controllerName` of `status.parents`, each once.
    pub told_by: Vec<String>,
}

/// HTTPRoute or GRPCRoute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRoute {
    /// Name and so on.
    pub meta: Meta,
    /// Which of them it is.
    pub kind: Kind,
    /// `spec.parentRefs`.
    pub parents: Vec<ParentRef>,
    /// `spec.hostnames`.
    pub hostnames: Vec<String>,
    /// `spec.rules`; one that matches everything if absent.
    pub rules: Vec<RouteRule>,
    /// What of the specification is not read that concerns more than one rule, by its field, with a remedy: the first
    /// of it that was found.
    pub unread: Option<String>,
    /// `controllerName` of `status.parents`, each once.
    pub told_by: Vec<String>,
}

/// One of `spec.parentRefs`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParentRef {
    /// What it is.
    pub object: ObjectRef,
    /// `sectionName`.
    pub section: Option<String>,
    /// `port`.
    pub port: Option<u16>,
}

/// One of `spec.rules`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRule {
    /// `matches`; one that matches everything if absent.
    pub matches: Vec<RouteMatch>,
    /// `filters`.
    pub filters: Vec<RouteFilter>,
    /// `backendRefs`.
    pub backends: Vec<BackendRef>,
    /// `timeouts.request`; zero asks for no bound.
    pub request_timeout: Option<Duration>,
    /// `timeouts.backendRequest`; zero asks for no bound.
    pub backend_timeout: Option<Duration>,
    /// `retry`; boxed, since few have one.
    pub retry: Option<Box<Retry>>,
    /// `sessionPersistence`; boxed, too.
    pub session: Option<Box<SessionPersistence>>,
    /// What of it is not read besides its matches, by its field, with a remedy: the first of it that was found.
    pub unread: Option<Box<str>>,
}

/// `sessionPersistence` of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPersistence {
    /// `sessionName`, or `name` of `cookie` or `header`.
    pub name: Option<String>,
    /// Whether `type` is `Header`; else it is `Cookie`.
    pub in_header: bool,
    /// Whether `lifetimeType` of the cookie is `Permanent`.
    pub is_permanent: bool,
    /// `path` of the cookie.
    pub path: Option<String>,
    /// `absoluteTimeout`.
    pub lasts: Option<Duration>,
    /// `idleTimeout`.
    pub idle: Option<Duration>,
}

/// `retry` of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// `codes`.
    pub codes: Vec<u16>,
    /// `attempts`: tries after the first one; 1 if absent.
    pub attempts: u32,
    /// `backoff`; none is zero.
    pub backoff: Duration,
}

/// One of `matches`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMatch {
    /// `path`.
    pub path: PathMatch,
    /// `method`.
    pub method: Option<String>,
    /// `headers`.
    pub headers: Vec<NameMatch>,
    /// `queryParams`.
    pub query: Vec<NameMatch>,
}

impl Default for RouteMatch {
    fn default() -> Self {
        Self {
            path: PathMatch::Prefix("/".to_owned()),
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
        }
    }
}

/// `path` of a match, or `method` of one of a GRPCRoute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// `Exact`.
    Exact(String),
    /// `PathPrefix`.
    Prefix(String),
    /// `RegularExpression`.
    Expression(String),
    /// The service and the method that are called.
    Method(MethodMatch),
}

/// `method` of a match of a GRPCRoute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodMatch {
    /// `service`; none is any.
    pub service: Option<String>,
    /// `method`; none is any.
    pub method: Option<String>,
    /// Whether both are regular expressions.
    pub is_expression: bool,
}

/// What a value must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueMatch {
    /// `Exact`.
    Exact(String),
    /// `RegularExpression`.
    Expression(String),
}

/// A header or a query parameter with the value that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMatch {
    /// `name`.
    pub name: String,
    /// `value`.
    pub value: ValueMatch,
}

/// One of `filters`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteFilter {
    /// `RequestHeaderModifier`.
    RequestHeaders(HeaderChanges),
    /// `ResponseHeaderModifier`.
    ResponseHeaders(HeaderChanges),
    /// `RequestRedirect`.
    Redirect(Redirect),
    /// `URLRewrite`.
    Rewrite(Rewrite),
    /// `RequestMirror`.
    Mirror(RequestMirror),
    /// `CORS`.
    Cors(CorsFilter),
    /// `ExternalAuth`.
    Auth(ExternalAuth),
}

/// `externalAuth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAuth {
    /// `backendRef`.
    pub backend: BackendRef,
    /// Whether `protocol` is `GRPC`; else it is `HTTP`.
    pub is_grpc: bool,
    /// `path` of `http`.
    pub path: String,
    /// `allowedHeaders` of `http` or `grpc`.
    pub headers: Vec<String>,
    /// `allowedResponseHeaders` of `http`.
    pub said: Vec<String>,
    /// `forwardBody.maxSize`; zero is none.
    pub max_body: u64,
}

/// `requestMirror`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMirror {
    /// `backendRef`.
    pub backend: BackendRef,
    /// `percent`, or the numerator of `fraction`; all requests without them.
    pub numerator: u32,
    /// 100, or the denominator of `fraction`.
    pub denominator: u32,
}

/// `cors`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsFilter {
    /// `allowOrigins`.
    pub origins: Vec<String>,
    /// `allowCredentials`.
    pub credentials: bool,
    /// `allowMethods`.
    pub methods: Vec<String>,
    /// `allowHeaders`.
    pub headers: Vec<String>,
    /// `exposeHeaders`.
    pub expose: Vec<String>,
    /// `maxAge`: seconds; 5 if absent.
    pub max_age: u32,
}

/// What happens to header fields: first `set`, then `add`, then `remove`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// `set`.
    pub set: Vec<HeaderChange>,
    /// `add`.
    pub add: Vec<HeaderChange>,
    /// `remove`.
    pub remove: Vec<String>,
}

/// A field and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderChange {
    /// `name`.
    pub name: String,
    /// `value`.
    pub value: String,
}

/// `requestRedirect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redirect {
    /// `scheme`.
    pub scheme: Option<String>,
    /// `hostname`.
    pub hostname: Option<String>,
    /// `path`.
    pub path: Option<PathModifier>,
    /// `port`.
    pub port: Option<u16>,
    /// `statusCode`.
    pub status: Option<u16>,
}

/// `urlRewrite`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// `hostname`.
    pub hostname: Option<String>,
    /// `path`.
    pub path: Option<PathModifier>,
}

/// `path` of a redirect or a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathModifier {
    /// `ReplaceFullPath`.
    Full(String),
    /// `ReplacePrefixMatch`.
    Prefix(String),
}

/// One of `backendRefs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendRef {
    /// What it is.
    pub object: ObjectRef,
    /// `port`.
    pub port: Option<u16>,
    /// `weight`; 1 if absent.
    pub weight: u32,
    /// `filters`.
    pub filters: Vec<RouteFilter>,
}
