//! Which kinds of objects are followed, and for how long not: for readiness and for metrics.

use objects::Kind;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Knows how the watches of a cluster are. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct Following {
    all: Arc<Mutex<All>>,
    /// Something that was lost is followed again.
    again: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct All {
    /// Why the API server has not answered yet.
    unanswered: Option<String>,
    watches: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    kind: Kind,
    /// Being forbidden to list it is no reason to wait.
    optional: bool,
    /// It was listed once.
    listed: bool,
    /// Since when it is not followed, and why.
    lost: Option<(Instant, String)>,
    forbidden: bool,
}

impl Watched {
    /// We may not list it, and may do without.
    fn is_dispensed(&self) -> bool {
        self.optional && self.forbidden
    }
}

/// What one watch tells about itself.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    following: Following,
    number: usize,
}

impl Following {
    pub(crate) fn add(&self, kind: Kind, optional: bool) -> Report {
        let watches = &mut self.all.lock().watches;
        let lost = Some((Instant::now(), String::new()));
        watches.push(Watched { kind, optional, listed: false, lost, forbidden: false });
        Report { following: self.clone(), number: watches.len() - 1 }
    }

    /// The API server has answered, or why not yet.
    pub(crate) fn greeted(&self, unanswered: Option<String>) {
        self.all.lock().unanswered = unanswered;
    }

    /// Says whether a kind that need not be listed has to be for now.
    pub(crate) fn need(&self, kind: Kind, needed: bool) {
        for one in self.all.lock().watches.iter_mut().filter(|one| one.kind == kind) {
            one.optional = !needed;
        }
    }

    /// For how long each kind has not been followed; none: it is. A kind that we may do without, and may not list, is
    /// left out.
    pub fn kinds(&self) -> BTreeMap<&'static str, Option<Duration>> {
        let mut kinds = BTreeMap::new();
        let all = self.all.lock();
        let wanted = |one: &&Watched| one.listed || !one.is_dispensed();
        for one in all.watches.iter().filter(wanted) {
            let lost = one.lost.as_ref().map(|(since, _)| since.elapsed());
            let longest = kinds.entry(one.kind.name()).or_insert(None);
            *longest = lost.max(*longest);
        }
        kinds
    }

    /// What was never listed and has to be, with the reason where there is one: `Secret: 403 Forbidden, Service`.
    /// Before there are watches, why the API server does not answer.
    pub fn missing(&self) -> Option<String> {
        let all = self.all.lock();
        if let Some(reason) = &all.unanswered {
            return Some(format!("the API server: {reason}"));
        }
        let missing = all.watches.iter().filter(|one| !one.listed && !one.is_dispensed());
        let why = |one: &Watched| one.lost.as_ref().map(|(_, why)| why.clone());
        let mut missing: Vec<_> =
            missing.map(|one| (one.kind, why(one).filter(|why| !why.is_empty()))).collect();
        without_waiting_secrets(&mut missing);
        let text = |(kind, why): (Kind, Option<String>)| match why {
            Some(why) => format!("{kind}: {why}"),
            None => kind.to_string(),
        };
        let mut words: Vec<String> = missing.into_iter().map(text).collect();
        words.dedup();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Secrets wait for the others, which say which of them are wanted: that alone is no news.
pub(crate) fn without_waiting_secrets<T>(missing: &mut Vec<(Kind, Option<T>)>) {
    if missing.iter().any(|(kind, why)| *kind != Kind::Secret || why.is_some()) {
        missing.retain(|(kind, why)| *kind != Kind::Secret || why.is_some());
    }
}

impl Report {
    /// The list is complete.
    pub(crate) fn listed(&self) {
        self.change(|one| (one.listed, one.lost, one.forbidden) = (true, None, false));
        self.following.again.send_replace(());
    }

    /// The API server does not have the kind.
    pub(crate) fn absent(&self) {
        self.change(|one| (one.listed, one.lost, one.forbidden) = (false, None, true));
    }

    /// What was listed before is followed again.
    pub(crate) fn followed(&self) {
        self.change(|one| (one.lost, one.forbidden) = (None, false));
        self.following.again.send_replace(());
    }

    /// Hears when any of them is followed again: the API server is back, and nobody has to wait any longer.
    pub(crate) fn others(&self) -> watch::Receiver<()> {
        self.following.again.subscribe()
    }

    /// Whether it was listed once.
    pub(crate) fn was_listed(&self) -> bool {
        self.following.all.lock().watches[self.number].listed
    }

    /// It is not followed, for this reason.
    pub(crate) fn lost(&self, code: Option<u16>, reason: &str) {
        // What the API server says behind the colon names accounts, which is nobody's business who asks for health.
        let short =
            if code.is_some() { reason.split(": ").next().unwrap_or_default() } else { reason };
        self.change(|one| {
            let since = one.lost.as_ref().map_or_else(Instant::now, |(since, _)| *since);
            one.lost = Some((since, short.to_owned()));
            one.forbidden = code == Some(403);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Watched)) {
        change(&mut self.following.all.lock().watches[self.number]);
    }
}

#[cfg(test)]
mod tests {
    use super::Following;
    use objects::Kind;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_and_for_how_long_is_told_with_the_reason() {
        let following = Following::default();
        following.greeted(Some("Connection refused".to_owned()));
        assert_eq!(following.missing().as_deref(), Some("the API server: Connection refused"));
        following.greeted(None);
        assert_eq!(following.missing(), None);
        let [secrets, classes, services] =
            [(Kind::Secret, false), (Kind::IngressClass, true), (Kind::Service, false)]
                .map(|(kind, optional)| following.add(kind, optional));
        services.listed();
        assert_eq!(following.missing().as_deref(), Some("IngressClass"));
        for one in [&secrets, &classes] {
            one.lost(Some(403), "403 Forbidden: User \"system:serviceaccount:a:b\" cannot list");
        }
        assert_eq!(following.missing().as_deref(), Some("Secret: 403 Forbidden"));
        tokio::time::advance(Duration::from_secs(9)).await;
        secrets.lost(None, "Connection refused (os error 111)");
        let kinds = Vec::from_iter(following.kinds());
        assert_eq!(kinds, [("Secret", Some(Duration::from_secs(9))), ("Service", None)]);
        secrets.listed();
        services.lost(None, "Connection refused");
        assert_eq!(following.missing(), None, "it was listed once");
        assert_eq!(following.kinds()["Service"], Some(Duration::ZERO));
        services.followed();
        assert!(following.kinds().values().all(Option::is_none));
        following.need(Kind::IngressClass, true);
        assert_eq!(following.missing().as_deref(), Some("IngressClass: 403 Forbidden"));
        assert!(following.kinds()["IngressClass"].is_some(), "alerts see it");
        following.need(Kind::IngressClass, false);
        assert_eq!((following.missing(), following.kinds().get("IngressClass")), (None, None));
    }
}
