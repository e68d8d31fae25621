//! The native engine: HTTP traffic in this process.
//!
//! Read `phases/mod.rs` first: it lists what happens to a request. Around it, `listen` accepts connections, `http1` and
//! `http2` make an [`exchange::Exchange`] of each request and write its answer, `compile` turns a Configuration into a
//! [`generation::Generation`], and `engine` swaps generations. What of HTTP is bytes is the crate `wire`; endpoints are
//! spoken to by the crate `upstream`.

mod answer;
mod authenticator;
mod brief;
mod compile;
mod connection;
mod credentials;
mod crowds;
mod dry;
mod end;
mod endpoints;
mod engine;
mod error;
mod exchange;
mod explain;
mod generation;
mod geoip;
mod http1;
mod http2;
mod known;
mod limits;
mod listen;
mod load;
mod log;
mod mirrors;
mod numbers;
mod overheard;
mod phases;
mod pulse;
mod rarely;
mod recorder;
mod request_id;
mod retry_budgets;
mod set_headers;
mod shadow;
mod snippet;
mod telemetry;
mod texts;
mod thread;
mod told;
mod trace;
mod under_way;
mod variables;
mod worker;
mod young;

pub use crowds::{Crowd, Crowds};
pub use dry::{DryRun, Outcome};
pub use end::End;
pub use endpoints::{AtEndpoint, AtEndpoints};
pub use engine::{Native, Options, StartError};
pub use explain::{Explainer, Question, Unanswerable, explain};
pub use generation::Generation;
pub use geoip::GeoFiles;
pub use listen::{BindError, Listen, Listening};
pub use load::{Pressure, Shed};
pub use shadow::{Count, Decided, MOST_GROUPS, Said, Shadowed};
pub use telemetry::{OtlpEnvironment, Spans};
pub use trace::{CONFIGURED_REDIRECTS, Decision, Nobody, Sample, Wanted};

/// Parsers of what comes from outside, for fuzzing.
#[cfg(feature = "fuzzing")]
pub mod parsers;
