//! What the objects of the Gateway API are told about themselves; addresses and times are somebody else's to add.

use imbl::OrdMap;
use model::{Printable, Transport};
use objects::gateway::{Infrastructure, ParentRef};
use objects::{Kind, ObjectKey};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

/// The status of all objects that are ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statuses {
    /// Of GatewayClasses.
    pub classes: OrdMap<ObjectKey, Arc<ClassStatus>>,
    /// Of Gateways.
    pub gateways: OrdMap<ObjectKey, Arc<GatewayStatus>>,
    /// Of ListenerSets.
    pub sets: OrdMap<ObjectKey, Arc<SetStatus>>,
    /// Of HTTPRoutes and GRPCRoutes.
    pub routes: OrdMap<(Kind, ObjectKey), Arc<RouteStatus>>,
    /// Of BackendTLSPolicies.
    pub policies: OrdMap<ObjectKey, Arc<PolicyStatus>>,
    /// Of TCPRoutes, UDPRoutes and TLSRoutes.
    pub stream_routes: OrdMap<(Kind, ObjectKey), Arc<RouteStatus>>,
}

/// A condition of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `type`.
    pub kind: &'static str,
    /// Whether it is `True`.
    pub holds: bool,
    /// `reason`.
    pub reason: &'static str,
    /// `message`.
    pub message: Sentence,
}

/// What a condition says. Texts of objects may be a part of it: it is one line, has a bound, and those that are told
/// the same share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence(Option<Arc<str>>);

impl Sentence {
    /// Its bytes at most: a status has a sentence for each parent of a route, and the API server takes so much of one
    /// object (docs/limits.md).
    pub const MOST: usize = 1000;
}

impl<T: AsRef<str>> From<T> for Sentence {
    fn from(text: T) -> Self {
        const CUT: &str = "…";
        let text = text.as_ref();
        // What is too long is not written out as escapes, either.
        let mut said = Printable(&text[..text.floor_char_boundary(Self::MOST)]).to_string();
        if text.len() > Self::MOST || said.len() > Self::MOST {
            said.truncate(said.floor_char_boundary(Self::MOST - CUT.len()));
            said.push_str(CUT);
        }
        Self((!said.is_empty()).then(|| said.into()))
    }
}

impl Deref for Sentence {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Condition {
    pub(super) fn holds(kind: &'static str, reason: &'static str) -> Self {
        Self { kind, holds: true, reason, message: Sentence::default() }
    }

    pub(super) fn fails(
        kind: &'static str,
        reason: &'static str,
        message: impl Into<Sentence>,
    ) -> Self {
        Self { kind, holds: false, reason, message: message.into() }
    }
}

/// The status of a GatewayClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStatus {
    /// Of which generation it is.
    pub generation: i64,
    /// `conditions`.
    pub conditions: Vec<Condition>,
    /// The names of `supportedFeatures`, in their order.
    pub features: Vec<&'static str>,
}

/// The status of a Gateway, but for its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayStatus {
    /// Of which generation it is.
    pub generation: i64,
    /// `conditions`.
    pub conditions: Vec<Condition>,
    /// `listeners`, in the order of the specification.
    pub listeners: Vec<ListenerStatus>,
    /// The addresses that the specification asks for: type and value.
    pub wanted: Vec<(String, String)>,
    /// The addresses of its own, if it has any; nothing where it shares those that are published.
    pub own: Option<Vec<String>>,
    /// The Service that is made for it, if one is.
    pub service: Option<Arc<GatewayService>>,
    /// `attachedListenerSets`; nothing if no ListenerSet names it.
    pub sets: Option<u32>,
}

/// The Service that is made for a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayService {
    /// `metadata.uid` of the Gateway.
    pub uid: Arc<str>,
    /// What it is.
    pub kind: ServiceKind,
    /// Its ports, each with the one that it leads to.
    pub ports: BTreeMap<(Transport, u16), u16>,
    /// Labels and annotations that the Gateway asks for.
    pub infrastructure: Arc<Infrastructure>,
}

/// What the Service of a Gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// A name for the address of the Gateway.
    Headless(IpAddr),
    /// A way to all replicas, by an address that it is given; it may ask for one.
    LoadBalancer(Option<IpAddr>),
}

/// The status of a ListenerSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetStatus {
    /// Of which generation it is.
    pub generation: i64,
    /// The Gateway that it names.
    pub gateway: ObjectKey,
    /// `conditions`.
    pub conditions: Vec<Condition>,
    /// `listeners`, in the order of the specification; none where none is added.
    pub listeners: Vec<ListenerStatus>,
}

/// One of `listeners`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// `name`.
    pub name: String,
    /// `supportedKinds`.
    pub kinds: Vec<&'static str>,
    /// `attachedRoutes`.
    pub attached: u32,
    /// `conditions`.
    pub conditions: Vec<Condition>,
}

/// The status of a BackendTLSPolicy: the same for each Gateway through which its targets are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatus {
    /// Of which generation it is.
    pub generation: i64,
    /// The Gateways; none: nothing of ours is left.
    pub ancestors: Vec<ObjectKey>,
    /// `conditions` of each.
    pub conditions: Vec<Condition>,
}

/// The status of a route: what each of its parents that is ours makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteStatus {
    /// Of which generation it is.
    pub generation: i64,
    /// `parents`.
    pub parents: Vec<(ParentRef, Vec<Condition>)>,
}

/// Reason and message for what the nginx engine has no words for: all that Gateways and their routes are.
pub(super) fn unserved(what: &str) -> (&'static str, String) {
    ("Unsupported", format!("--engine=nginx serves no {what}: start Fairway with --engine=native"))
}

#[cfg(test)]
mod tests {
    use super::Sentence;

    #[test]
    fn a_sentence_is_one_line_of_a_thousand_bytes_and_says_that_it_was_cut() {
        assert_eq!(&*Sentence::from("as it is"), "as it is");
        assert_eq!(&*Sentence::from("a\u{1}\nb"), "a\\u{1}\\u{a}b");
        for long in ["a", "ä", "\u{1}", "…"].map(|one| one.repeat(1001)) {
            let said = Sentence::from(long);
            assert!((990..=Sentence::MOST).contains(&said.len()), "{}", said.len());
            assert!(said.ends_with('…') && !said.contains('\u{1}'), "{said}");
        }
        assert_eq!(Sentence::from("a".repeat(1000)).len(), 1000);
    }
}
