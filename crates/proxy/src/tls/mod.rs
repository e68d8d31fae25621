//! TLS: towards clients by the name they ask for, towards upstreams as their policy says (rustls with aws-lc).

mod aliases;
mod certificates;
mod ciphers;
mod client;
mod front;

pub use certificates::{Certificates, self_signed};
pub use ciphers::openssl_name;
pub use client::{Profile, Profiles};
pub use front::TlsFront;
