//! The admission webhook: reviews Ingresses before the API server takes them, and Services and Secrets that Ingresses
//! need. Bounded bytes, time and concurrency; the judgement itself is [`translate::review`], a pure function.

mod certificate;
mod clients;
mod metrics;
mod patience;
mod refusals;
mod request;
mod review;
mod room;
mod server;

pub use certificate::{Certificate, CertificateError};
pub use metrics::{Checks, LastReview, Reviews};
pub use server::{BindError, Bound, connections};

use crate::Known;
use refusals::Refusals;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use translate::Options;

/// Where the webhook listens, and with which certificate.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// `--validating-webhook`.
    pub address: SocketAddr,
    /// `--validating-webhook-certificate`: a PEM file, read again when it changes.
    pub certificate: PathBuf,
    /// `--validating-webhook-key`: a PEM file, read again when it changes.
    pub key: PathBuf,
    /// `--validating-webhook-client-ca`: a PEM file with the authorities of those who may ask for reviews, read again
    /// when it changes. Without it anybody may.
    pub client_authorities: Option<PathBuf>,
}

/// What reviews look at, as it is now.
#[derive(Clone, Debug)]
pub struct Reviewer {
    known: watch::Receiver<Arc<Known>>,
    options: Options,
    reviews: Arc<Reviews>,
    refusals: Arc<Refusals>,
}

impl Reviewer {
    /// A reviewer that follows `known`.
    pub fn new(known: watch::Receiver<Arc<Known>>, options: Options) -> Self {
        Self { known, options, reviews: Arc::default(), refusals: Arc::default() }
    }

    /// What was reviewed so far.
    pub fn reviews(&self) -> Arc<Reviews> {
        self.reviews.clone()
    }
}
