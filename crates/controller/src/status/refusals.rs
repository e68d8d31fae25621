//! What the log tells of statuses that the API server refuses, or that somebody else replaces: whoever changes his
//! object again and again is told no more often than of his other mistakes.

use super::which::{Id, Which};
use crate::clock::Moment;
use crate::lines::Shares;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a reason that are told: it may quote what the object says.
const REASON: usize = 2 << 10;

/// The lines of this minute.
#[derive(Debug, Default)]
pub(super) struct Refusals(Shares);

impl Refusals {
    /// Tells that something is not written, if there may be one more line about its namespace.
    pub(super) fn tell(&mut self, (which, key): &Id, reason: &str, now: Moment) {
        if self.may_tell(&key.namespace, now) {
            tracing::error!(
                kind = which.kind().name(), namespace = %key.namespace, name = %key.name, reason = cut(reason),
                "this is not written: the API server does not take it, or it is somebody else's"
            );
        }
    }

    /// Tells that something is left to somebody else for a while, if there may be one more line about its namespace;
    /// what was told.
    pub(super) fn contested(&mut self, id: &Id, pause: Duration, now: Moment) -> Option<String> {
        let (which, key) = id;
        if !self.may_tell(&key.namespace, now) {
            return None;
        }
        let what = match which {
            Which::Service => "changing the Service of this Gateway, or its EndpointSlices",
            _ => "replacing what we say in its status",
        };
        let message = format!(
            "another controller keeps {what}; left alone for {} s: a second Fairway with the same \
             --gateway-controller-name and another --election-id does so, give it a name and a GatewayClass of its own",
            pause.as_secs()
        );
        tracing::warn!(
            kind = which.kind().name(), namespace = %key.namespace, name = %key.name, "{message}"
        );
        Some(message)
    }

    /// Tells that something stays which nobody needs as far as is known, if there may be one more line.
    pub(super) fn tell_kept(&mut self, (_, key): &Id, reason: &str, now: Moment) {
        if self.may_tell(&key.namespace, now) {
            tracing::warn!(
                namespace = %key.namespace, gateway = %key.name, reason = cut(reason),
                "the Service of a Gateway stays, and nothing of the Gateway is served here; it is looked at again in a minute"
            );
        }
    }

    /// Whether there may be one more line about a namespace; tells of those that were left out.
    fn may_tell(&mut self, namespace: &Arc<str>, now: Moment) -> bool {
        let (untold, may) = self.take(namespace, now);
        for (namespace, left_out) in untold {
            tracing::error!(
                %namespace, left_out,
                "more of this namespace is not written, and not told here, nor what follows within a minute"
            );
        }
        may
    }

    /// Whose lines are left out, and how many, and whether there may be one more about a namespace.
    fn take(&mut self, namespace: &Arc<str>, now: Moment) -> (Vec<(Arc<str>, usize)>, bool) {
        let mut untold = self.0.renew(now).unwrap_or_default();
        let may = self.0.take(Arc::clone(namespace));
        untold.extend(self.0.close());
        (untold, may)
    }
}

fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON)]
}

#[cfg(test)]
mod tests {
    use super::{Arc, Moment, REASON, Refusals, Which, cut};
    use crate::lines::{LINES, SPAN};
    use objects::ObjectKey;

    #[test]
    fn a_namespace_whose_statuses_are_refused_has_a_minute_s_share_of_the_log() {
        let (mut refusals, start) = (Refusals::default(), Moment::now());
        let [many, few] = ["many", "few"].map(Arc::<str>::from);
        let told = (0..1000).map(|_| refusals.take(&many, start)).collect::<Vec<_>>();
        assert_eq!(told.iter().filter(|(_, may)| *may).count(), LINES);
        // The first one that is left out is told of, and how many were in the next minute.
        let closing: Vec<_> = told.into_iter().flat_map(|(untold, _)| untold).collect();
        assert_eq!(closing, [(many.clone(), 1)]);
        assert_eq!(refusals.take(&few, start), (Vec::new(), true));
        let left_out = 1000 - LINES - 1;
        assert_eq!(refusals.take(&many, start + SPAN), (vec![(many, left_out)], true));
    }

    #[test]
    fn who_is_contested_is_told_what_to_do_about_it_as_often_as_of_what_is_refused() {
        let (mut refusals, now) = (Refusals::default(), Moment::now());
        let id = (Which::Gateway, ObjectKey::new("shop", "web"));
        let told = (0..1000).filter_map(|_| refusals.contested(&id, SPAN, now)).collect::<Vec<_>>();
        assert_eq!(told.len(), LINES);
        let remedy =
            "left alone for 60 s: a second Fairway with the same --gateway-controller-name";
        assert!(told[0].contains(remedy), "{}", told[0]);
        assert!(
            told[0].starts_with("another controller keeps replacing what we say in its status")
        );
        let id = (Which::Service, ObjectKey::new("other", "web"));
        let told = refusals.contested(&id, SPAN, now).expect("a line");
        assert!(told.contains("changing the Service of this Gateway, or its EndpointSlices; left"));
    }

    #[test]
    fn a_reason_is_told_up_to_a_bound() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ä".repeat(10_000)).len(), REASON);
    }
}
