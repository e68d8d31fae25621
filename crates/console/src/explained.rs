//! A request that somebody asks about, and what would become of it.

use controller::Known;
use serde::Serialize;
use std::net::IpAddr;

/// Explains requests against what is known.
pub trait Explain: Send + Sync {
    /// Explains one. Called within a tokio runtime, by a thread that may block.
    fn explain(&self, asked: &Asked, known: &Known) -> Result<Explained, String>;

    /// Nobody has asked for a while: what is kept for the next question goes.
    fn forget(&self);
}

/// A request that somebody asks about.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The URL.
    pub url: String,
    /// The method.
    pub method: String,
    /// Header fields, each `Name: value`.
    pub headers: Vec<String>,
    /// The client's address.
    pub client: IpAddr,
}

/// What would become of it.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explained {
    /// What nearly had it: Ingresses that name the host and are not heard of, with the reason.
    pub notes: Vec<String>,
    /// What was decided, in order.
    pub decisions: Vec<Line>,
}

/// A decision.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line {
    /// What was decided about.
    pub step: String,
    /// What was decided.
    pub outcome: String,
    /// The annotation, key or field, and the object that asked for it.
    pub by: Option<String>,
}
