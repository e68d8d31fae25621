//! Kinds of which nobody knows what they say (they may not be listed): what they might be about is closed.

use objects::gateway::{FromNamespaces, Gateway, Listener};
use objects::{Kind, Snapshot};

/// Why all backends are closed that a policy might be about.
pub(super) const POLICIES: &str = "BackendTLSPolicies could not be listed, so nobody knows whether a backend has to be \
                                   spoken to under TLS; the log says why: it takes list and watch of \
                                   backendtlspolicies in the ClusterRole";

/// Whether others may add listeners to a Gateway.
pub(super) fn lets_in(gateway: &Gateway) -> bool {
    gateway.allowed_sets != FromNamespaces::None
}

/// Why a listener of a Gateway is closed from whose hosts others may have taken some, while nobody knows which.
pub(super) fn closed(
    listener: &Listener,
    gateway: &Gateway,
    snapshot: &Snapshot,
) -> Option<(&'static str, String)> {
    let is_unknown = snapshot.unlisted.contains(&Kind::ListenerSet) && lets_in(gateway);
    let may_be_wider = listener.hostname.as_deref().is_none_or(|host| host.starts_with('*'));
    let has_hosts = matches!(listener.protocol.as_str(), "HTTP" | "HTTPS" | "TLS");
    (is_unknown && may_be_wider && has_hosts).then(|| {
        let message = "ListenerSets could not be listed, so nobody knows which of its hosts are theirs; the log says \
                       why: it takes list and watch of listenersets in the ClusterRole";
        ("Pending", message.to_owned())
    })
}
