//! `auth-type`, `auth-secret`, `auth-realm`: who may come in with which password (ngx_http_auth_basic_module, and the
//! digest module that ingress-nginx has).

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A password is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthBasic {
    /// `auth-type`: how it is sent.
    pub scheme: AuthScheme,
    /// `auth-realm`: what the client is told that it is for.
    pub realm: String,
    /// Who may come in.
    pub users: Arc<Users>,
}

/// How a client sends its password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum AuthScheme {
    /// In clear (RFC 7617).
    Basic,
    /// Hashed with a number of ours (RFC 7616 with MD5 and `qop=auth`).
    Digest,
}

/// The users of a password file. Their passwords are never printed and never serialised.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Users(pub BTreeMap<Box<[u8]>, Password>);

/// What is known of a password. The texts are those of the file, already known to have the form of their kind.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// `{PLAIN}`: itself.
    Plain(Box<[u8]>),
    /// `{SHA}`: its SHA-1 in Base64.
    Sha1(Box<str>),
    /// `{SSHA}`: SHA-1 of it and a salt.
    SaltedSha1 {
        /// The hash, 20 bytes.
        hash: Box<[u8]>,
        /// What follows it.
        salt: Box<[u8]>,
    },
    /// `$apr1$salt$hash` and `$1$salt$hash`: a thousand rounds of MD5.
    Md5 {
        /// `$apr1$` or `$1$`.
        magic: &'static str,
        /// Up to 8 characters.
        salt: Box<str>,
        /// 22 characters.
        hash: Box<str>,
    },
    /// `$2a$`, `$2b$`, `$2x$`, `$2y$`.
    Bcrypt(Box<str>),
    /// `$5$` (SHA-256) and `$6$` (SHA-512).
    ShaCrypt(Box<str>),
    /// Two characters of salt and eleven of DES.
    Des(Box<str>),
    /// For [`AuthScheme::Digest`]: MD5 of `user:realm:password`.
    Digest([u8; 16]),
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl Serialize for Users {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl Users {
    fn names(&self) -> impl Iterator<Item = String> {
        self.0.keys().map(|name| String::from_utf8_lossy(name).into_owned())
    }
}
