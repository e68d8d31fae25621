//! What an Ingress may guard all of its hosts by, judged by its texts alone: while it is not taken, or not heard since
//! a host is another namespace's, nobody else says it.

use model::policy::guard;
use std::borrow::Cow;

/// By which annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostGuards {
    /// Its `server-snippet` has a word of a guard.
    pub(crate) snippet: bool,
    /// It asks clients for certificates, in whatever way.
    pub(crate) certificate: bool,
}

impl HostGuards {
    /// By the texts of annotations. `snippets`: whether those of Ingresses count at all.
    pub(super) fn of<'t>(text: impl Fn(&str) -> Option<Cow<'t, str>>, snippets: bool) -> Self {
        let server = text("server-snippet").filter(|_| snippets);
        let asks = text("auth-tls-secret").is_some_and(|secret| !secret.is_empty());
        Self {
            snippet: server.is_some_and(|text| guard("server-snippet", &text).is_some()),
            certificate: asks && text("auth-tls-verify-client").is_none_or(|how| how != "off"),
        }
    }
}
