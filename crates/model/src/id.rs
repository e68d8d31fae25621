//! Names that must never be mixed up: each is its own type, never a bare `String`.

use serde::Serialize;
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The same, for who keeps it: the text stands once.
            pub fn text(&self) -> &Arc<str> {
                &self.0
            }
        }

        // Names are found by their text without a new one being made.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The host of a virtual server: `shop.example`, `*.shop.example`, or `_` for the catch-all. Always lower case.
    ServerName
}
name! {
    /// `<namespace>-<service>-<port>` as ingress-nginx names its upstreams (compat/behaviour.md section 3).
    UpstreamId
}
name! {
    /// `<namespace>/<secret>`, or the name of a certificate that no Secret holds.
    CertificateId
}

impl ServerName {
    /// The server that answers when no other one does.
    pub fn catch_all() -> Self {
        Self::new("_")
    }
}

impl UpstreamId {
    /// What ingress-nginx calls it. A Service port that means two things (its endpoints, and the address of the
    /// Service) has one name there; here each of both has its own, and one of them has a slash.
    pub fn usual(&self) -> Cow<'_, str> {
        let text = self.as_str();
        let Some((owner, rest)) = text.split_once('/') else { return text.into() };
        let (role, namespace) = owner.rsplit_once(':').unwrap_or(("", owner));
        let (service, port) = rest.rsplit_once(':').unwrap_or((rest, ""));
        match role {
            "" if rest.is_empty() => format!("{namespace}-INVALID").into(),
            "" | "cluster-ip" => format!("{namespace}-{service}-{port}").into(),
            "errors" => format!("custom-default-backend-{namespace}-{service}").into(),
            // Of URLs, and of the Gateway API: nothing that ingress-nginx has a name for.
            _ => text.into(),
        }
    }
}

impl CertificateId {
    /// Stands for [`crate::Configuration::default_certificate`], whichever that is: what a server has that was promised
    /// TLS but has no certificate of its own. No certificate is kept under this name.
    pub fn of_default() -> Self {
        Self::new("default")
    }
}
