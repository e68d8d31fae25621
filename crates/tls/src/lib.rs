//! TLS: towards clients by the name they ask for, towards upstreams as their policy says (rustls with aws-lc).

mod aliases;
mod asks;
mod between;
mod by_name;
mod certificates;
mod ciphers;
mod client;
mod clients;
mod config;
mod distinguished_name;
mod front;
#[cfg(test)]
mod long_key_tests;
mod long_keys;
mod may_sign;
mod ocsp;
mod peer;
mod revocations;
mod roots;
mod session;
mod sessions;
mod signatures;
mod subject_names;
mod tickets;
mod verifier;
#[cfg(test)]
mod version_1;
mod ways;

pub use certificates::{Certificates, never_shown, self_signed};
pub use ciphers::openssl_name;
pub use client::{Profile, ProfileId, Profiles, is_not_believed};
pub use clients::Clients;
pub use config::Own;
pub use front::{Hosts, ListenersTls, TlsFront};
pub use peer::Peer;
pub use session::TlsSession;
pub use verifier::{Verdict, Verifier, Verifiers};
