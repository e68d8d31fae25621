//! What an Ingress may guard all of its hosts by, judged by its texts alone: while it is not taken, or not heard since
//! a host is another namespace's, nobody else says it.

use model::policy::{guard, guard_of_host};
use std::borrow::Cow;

/// By which annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostGuards {
    /// Its `server-snippet` has a word of a guard, or leads requests away.
    pub(crate) snippet: bool,
    /// Which may be a guard of paths of other namespaces, too: who leads requests away hides his own.
    pub(crate) of_others: bool,
    /// It asks clients for certificates, in whatever way: whom it lets in may be told apart by them.
    pub(crate) asks: bool,
    /// In a way that may keep somebody out.
    pub(crate) certificate: bool,
}

impl HostGuards {
    /// By the texts of annotations. `snippets`: whether those of Ingresses count at all.
    pub(super) fn of<'t>(text: impl Fn(&str) -> Option<Cow<'t, str>>, snippets: bool) -> Self {
        let server = text("server-snippet").filter(|_| snippets);
        let asks = text("auth-tls-secret").is_some_and(|secret| !secret.is_empty());
        let lets_in = |how: Cow<'_, str>| matches!(&*how, "off" | "optional_no_ca");
        let is_open = text("auth-tls-verify-client").is_some_and(lets_in)
            && text("auth-tls-match-cn").is_none_or(|subject| subject.is_empty());
        Self {
            snippet: server.as_ref().is_some_and(|text| guard_of_host(text).is_some()),
            of_others: server.is_some_and(|text| guard("server-snippet", &text).is_some()),
            asks,
            certificate: asks && !is_open,
        }
    }
}
