//! What should be served: plain data that every engine understands and Kubernetes never sees.
//!
//! Five words mean one thing each in this workspace:
//!
//! * *Snapshot*: all Kubernetes objects at one moment, immutable (crate `objects`).
//! * *Configuration*: what should be served; plain data ([`Configuration`]).
//! * *Problem*: a user's mistake as a value ([`Problem`]).
//! * *Engine*: what makes traffic follow a Configuration (crate `engine`).
//! * *Generation*: a Configuration compiled for serving, numbered (crate `proxy`).

mod address;
mod alias;
mod block;
mod certificate;
mod changes;
mod compression;
mod configuration;
mod geoip2;
mod global;
mod id;
mod listen;
mod listener;
mod logs;
mod media;
mod networks;
mod of_connection;
mod origin;
mod others;
mod outside;
mod pattern;
pub mod policy;
mod problem;
mod route;
mod secret;
mod server;
mod set_header;
pub mod snippet;
mod stream;
mod telemetry;
mod template;
mod text;
mod tuning;
mod upstream;
mod url;

pub use address::parse_address;
pub use alias::Alias;
pub use block::{Block, BlockList};
pub use certificate::{Certificate, CertificateNames, PrivateKey, days};
pub use changes::Changes;
pub use compression::{Brotli, Compression, Eligible, Gzip, Unwanted};
pub use configuration::{Certified, Configuration};
pub use geoip2::{GeoStep, GeoVariable};
pub use global::{
    Global, KeepAlive, Limits, LogFormat, Nowhere, RealIp, TicketKey, TlsSettings, TlsVersion,
    UpstreamKeepAlive,
};
pub use id::{CertificateId, ServerName, UpstreamId};
pub use listen::Listeners;
pub use listener::{Listener, ListenerId, RouteKey, Speaks, TlsRoute, TlsShare};
pub use logs::{ErrorLevel, LogTarget, Logs, Syslog};
pub use media::MEDIA_TYPES;
pub use networks::Networks;
pub use of_connection::{is_alike, is_of_connection, is_proof};
pub use origin::{Kind, Origin};
pub use others::Others;
pub use outside::Outside;
pub use pattern::{Pattern, PatternError, Spent, Steps, fixed_end, fixed_start, start_with_dots};
pub use problem::{Message, Printable, Problem, Severity, Why, is_unprintable};
pub use route::{GrpcMatch, RouteHost, Rule, RuleMatch, Scheme, Share, ValueMatch};
pub use secret::{Secret, Shown, UrlText, hide_in_sentence, hide_in_url, revealed};
pub use server::{
    Backend, DEFAULT_BACKEND, Location, PathKind, RESERVED_PATHS, Server, ServiceRef, is_same_owner,
};
pub use set_header::SetHeader;
pub use stream::{Stream, StreamPort, StreamSettings, StreamShare, Transport};
pub use telemetry::{Batches, Collector, OtlpProtocol, Propagator, Ratio, Sampler, Telemetry};
pub use template::{BadTemplate, Part, Template, Variable};
pub use text::{beginning, bytes_of_text, single_byte, text_of_bytes, unescaped};
pub use tuning::{Hashes, Tuning};
pub use upstream::{Endpoints, Upstream};
pub use url::Url;
