//! Whether the API server has the kinds of the Gateway API: their definitions may be absent, come later, or go. One
//! answer that says so takes nothing away: an API server that starts does not know yet what it has.

use crate::client::reason;
use crate::watch::{News, WatchId, backoff};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, GroupVersionForDiscovery};
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use objects::Kind;
use objects::gateway::GROUP;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How often it is asked: small answers, which take no rights.
const PERIOD: Duration = Duration::from_secs(10);
/// How soon it is asked again where a kind is missing that was there.
const AGAIN: Duration = Duration::from_secs(5);
/// In which of so many rounds it is asked what else there is.
const ROUNDS: u32 = 3;
/// How often in a row a kind is missing that is gone.
const MISSED: u8 = 2;

const VERSIONS: [&str; 2] = ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"];

/// The kinds of the Gateway API, and who follows them.
pub(super) struct Kinds {
    client: Client,
    /// Where it is told that a kind appears or goes, before its watch says anything.
    told: mpsc::Sender<(WatchId, News)>,
    all: Vec<Followed>,
    /// How often in a row nobody might ask for the kinds.
    forbidden: u8,
}

/// A kind, and who follows it.
struct Followed {
    kind: Kind,
    /// The only namespace in which it may be listed.
    namespace: Option<String>,
    watches: Vec<WatchId>,
    known: Known,
    there: watch::Sender<Option<bool>>,
}

/// What the API server says of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    There,
    Missing,
    /// Nothing that could be relied on.
    Nothing,
}

/// What is believed of a kind.
#[derive(Debug, Default)]
struct Known {
    /// Until the first answer nobody knows, and a first Snapshot waits for it.
    there: Option<bool>,
    missed: u8,
}

impl Known {
    /// Takes an answer; whether something else is believed now.
    fn hear(&mut self, said: Said) -> bool {
        match said {
            Said::There => self.missed = 0,
            Said::Missing => self.missed += 1,
            Said::Nothing => return false,
        }
        let is_there = said == Said::There;
        let is_believed = is_there || self.there != Some(true) || self.missed >= MISSED;
        if !is_believed {
            return false;
        }
        self.missed = 0;
        self.there.replace(is_there) != Some(is_there)
    }

    /// Whether a list of the kind has to say more.
    fn is_doubtful(&self, said: Said) -> bool {
        said == Said::Nothing || (said == Said::Missing && self.there != Some(false))
    }

    /// What a list of the kind says, where its definition is not to be seen (`said`).
    fn judge(&self, said: Said, listed: Listed) -> Said {
        match listed {
            Listed::Good => Said::There,
            Listed::Failed(404) => Said::Missing,
            // What may not be listed is there as far as anybody knows: what depends on it is closed.
            Listed::Failed(403) if said == Said::Nothing && self.there.is_none() => Said::There,
            // Nor is what is forbidden gone: whoever asks has lost a right, or the API server starts.
            Listed::Failed(403) if self.there != Some(true) => said,
            Listed::Failed(_) => Said::Nothing,
        }
    }
}

/// Whether something has just become so twice in a row.
fn lasts(times: &mut u8, is_so: bool) -> bool {
    *times = if is_so { times.saturating_add(1) } else { 0 };
    *times == 2
}

/// What became of a list; 0 stands for no answer.
enum Listed {
    Good,
    Failed(u16),
}

impl Kinds {
    pub(super) fn new(client: Client, told: mpsc::Sender<(WatchId, News)>) -> Self {
        Self { client, told, all: Vec::new(), forbidden: 0 }
    }

    /// Whether the kind that a watch follows is there; in this namespace, where it may be listed in one only.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        namespace: Option<&str>,
        watch: WatchId,
    ) -> watch::Receiver<Option<bool>> {
        if let Some(known) = self.all.iter_mut().find(|one| one.kind == kind) {
            known.watches.push(watch);
            return known.there.subscribe();
        }
        let there = watch::Sender::new(None);
        let receiver = there.subscribe();
        let (namespace, known) = (namespace.map(str::to_owned), Known::default());
        self.all.push(Followed { kind, namespace, watches: vec![watch], known, there });
        receiver
    }

    /// Asks from now on.
    pub(super) fn follow(mut self, tasks: &mut JoinSet<()>) {
        tasks.spawn(async move {
            let (mut pauses, mut unserved, mut round) = (backoff(), Unserved::default(), 0);
            let kinds: Vec<Kind> = self.all.iter().map(|one| one.kind).collect();
            loop {
                let pause = match self.ask().await {
                    Ok(said) => {
                        pauses = backoff();
                        // Before anybody goes on: who looks once hears of it, too.
                        if round == 0 {
                            unserved.follow(&self.client, &kinds).await;
                        }
                        round = (round + 1) % ROUNDS;
                        self.tell(&said).await;
                        let is_in_doubt =
                            self.forbidden == 1 || self.all.iter().any(|one| one.known.missed > 0);
                        if is_in_doubt { AGAIN } else { PERIOD }
                    }
                    // What is there stays; whether the API server can be reached is told by the watches.
                    Err(error) => {
                        tracing::debug!(
                            reason = reason(&error),
                            "cannot ask for the kinds of the Gateway API"
                        );
                        pauses.next().unwrap_or(PERIOD)
                    }
                };
                #[expect(clippy::disallowed_methods, reason = "asked again now and then")]
                sleep(pause).await;
            }
        });
    }

    /// What the API server says of each kind now. One that is not to be seen is listed, unless it was known to be
    /// missing: an API server that starts does not know yet what it has, and says so of a list alone. So is each where
    /// nobody may ask which there are.
    async fn ask(&mut self) -> kube::Result<Vec<Said>> {
        let served = served(&self.client).await?;
        let is_forbidden = served.values().any(Option::is_none);
        // An API server that starts forbids for a moment what it allows.
        if lasts(&mut self.forbidden, is_forbidden) {
            tracing::warn!(
                "the API server does not say which kinds of the Gateway API it has (403), so that each is listed to \
                 find out: bind the ServiceAccount to the ClusterRole system:discovery"
            );
        }
        let mut all = Vec::with_capacity(self.all.len());
        for one in &self.all {
            let said = said(&served, one.kind);
            let is_doubtful = one.known.is_doubtful(said);
            all.push(if is_doubtful { one.known.judge(said, self.list(one).await) } else { said });
        }
        Ok(all)
    }

    /// Lists no more than one object of a kind.
    async fn list(&self, one: &Followed) -> Listed {
        let named = GroupVersionKind::gvk(GROUP, one.kind.version(), one.kind.name());
        let resource = ApiResource::from_gvk_with_plural(&named, one.kind.plural());
        let client = self.client.clone();
        let api: Api<DynamicObject> = match &one.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Listed::Good,
            Err(kube::Error::Api(status)) => Listed::Failed(status.code),
            Err(_) => Listed::Failed(0),
        }
    }

    /// Tells what is news: first of all kinds that they appear or go, so that nothing is published between the list of
    /// one and that of another.
    async fn tell(&mut self, said: &[Said]) {
        let mut turned = Vec::new();
        for (one, said) in self.all.iter_mut().zip(said) {
            if one.known.hear(*said) {
                turned.push(&*one);
            }
        }
        for watch in turned.iter().flat_map(|one| &one.watches) {
            // Without anybody who listens this ends soon.
            drop(self.told.send((*watch, News::Turns)).await);
        }
        for one in turned {
            one.there.send_replace(one.known.there);
        }
    }
}

/// The resources that the API server has, by version; none: it does not say.
type Served = BTreeMap<&'static str, Option<BTreeSet<String>>>;

fn said(served: &Served, kind: Kind) -> Said {
    match served.get(kind.api_version()) {
        Some(None) => Said::Nothing,
        Some(Some(names)) if names.contains(kind.plural()) => Said::There,
        Some(Some(_)) | None => Said::Missing,
    }
}

/// Kinds of the Gateway API that are defined in the cluster, and whose objects nobody here looks at.
#[derive(Default)]
struct Unserved {
    told: BTreeSet<String>,
}

/// In which versions the API server has a kind.
struct Defined {
    kind: String,
    versions: Vec<String>,
}

impl Unserved {
    /// Says which they are, as often as there are others. That it cannot be asked is no reason for a word.
    async fn follow(&mut self, client: &Client, wanted: &[Kind]) {
        let Ok(versions) = versions(client).await else { return };
        let mut defined: BTreeMap<String, Defined> = BTreeMap::new();
        for version in versions {
            let asked = client.list_api_group_resources(&version.group_version).await;
            let Ok(list) = asked else { return };
            for found in list.resources.into_iter().filter(|found| !found.name.contains('/')) {
                let new = || Defined { kind: found.kind, versions: Vec::new() };
                let versions = &mut defined.entry(found.name).or_insert_with(new).versions;
                versions.push(version.version.clone());
            }
        }
        for (is_ours, line) in self.news(&defined, wanted) {
            if is_ours { tracing::warn!("{line}") } else { tracing::info!("{line}") }
        }
    }

    /// A line for each kind that was not told yet, and whether its objects would be served in another version.
    fn news(
        &mut self,
        defined: &BTreeMap<String, Defined>,
        wanted: &[Kind],
    ) -> Vec<(bool, String)> {
        let mut lines = Vec::new();
        let mut told = BTreeSet::new();
        for (name, Defined { kind, versions }) in defined {
            let needed = wanted.iter().find(|wanted| wanted.plural() == name);
            let needed = needed.map(|wanted| wanted.version());
            let there = versions.join(", ");
            let line = match needed {
                Some(needed) if versions.iter().any(|version| version == needed) => continue,
                Some(needed) => format!(
                    "no {kind} of the Gateway API is served: its definition has {there}, and {needed} is needed; install \
                     version 1.6 of the definitions or a later one (docs/gateway-api.md)"
                ),
                None => format!(
                    "{kind} of the Gateway API ({there}) is defined in the cluster and not served: see \
                     docs/gateway-api.md"
                ),
            };
            if !self.told.contains(&line) {
                lines.push((needed.is_some(), line.clone()));
            }
            told.insert(line);
        }
        self.told = told;
        lines
    }
}

/// Asks for the versions of the group alone: what other groups there are makes no answer longer.
async fn versions(client: &Client) -> kube::Result<Vec<GroupVersionForDiscovery>> {
    let asked = http::Request::get(format!("/apis/{GROUP}")).body(Vec::new());
    match client.request::<APIGroup>(asked.map_err(kube::Error::HttpError)?).await {
        Ok(group) => Ok(group.versions),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Asks which resources there are. A version that is not there has none.
async fn served(client: &Client) -> kube::Result<Served> {
    let mut served = Served::new();
    for version in VERSIONS {
        match client.list_api_group_resources(version).await {
            Ok(list) => {
                let names = list.resources.into_iter().map(|found| found.name);
                served.insert(version, Some(names.collect()));
            }
            Err(kube::Error::Api(status)) if status.code == 404 => break,
            // An API server that starts says so of all it has.
            Err(kube::Error::Api(status)) if status.code == 403 => {
                served.insert(version, None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::{Defined, Known, Listed, Said, Served, Unserved, VERSIONS, lasts, said};
    use objects::Kind;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_kind_that_is_there_is_gone_when_it_is_missing_twice_in_a_row() {
        let mut known = Known::default();
        assert!(!known.hear(Said::Nothing) && known.there.is_none(), "that is no answer");
        assert!(known.hear(Said::There));
        assert!(!known.hear(Said::Missing) && !known.hear(Said::Nothing));
        assert_eq!((known.there, known.missed), (Some(true), 1));
        assert!(!known.hear(Said::There) && !known.hear(Said::Missing), "it was there between");
        assert!(known.hear(Said::Missing) && known.there == Some(false));
        assert!(!known.hear(Said::Missing) && known.missed == 0);
        assert!(known.hear(Said::There), "that it is there is believed at once");
        assert!(
            Known::default().hear(Said::Missing),
            "and so is the first one, which a list bears out"
        );
    }

    #[test]
    fn what_is_forbidden_for_a_moment_is_no_word_and_what_stays_so_is_one() {
        let mut times = 0;
        let told = [true, false, true, true, true].map(|is_so| lasts(&mut times, is_so));
        assert_eq!(told, [false, false, false, true, false]);
    }

    #[test]
    fn what_nobody_says_is_found_by_a_list() {
        let served = Served::from([
            (VERSIONS[0], Some(BTreeSet::from(["gateways".to_owned()]))),
            (VERSIONS[1], None),
        ]);
        let kinds = [Kind::Gateway, Kind::HttpRoute, Kind::ReferenceGrant];
        let expected = [Said::There, Said::Missing, Said::Nothing];
        assert_eq!(kinds.map(|kind| said(&served, kind)), expected);
        assert_eq!(said(&Served::new(), Kind::Gateway), Said::Missing);
        let (new, old) = (Known::default(), Known { there: Some(true), missed: 0 });
        for (known, said, listed, judged) in [
            (&old, Said::Missing, Listed::Good, Said::There),
            (&old, Said::Missing, Listed::Failed(404), Said::Missing),
            (&old, Said::Missing, Listed::Failed(403), Said::Nothing),
            (&old, Said::Missing, Listed::Failed(503), Said::Nothing),
            (&old, Said::Nothing, Listed::Failed(403), Said::Nothing),
            (&new, Said::Nothing, Listed::Failed(404), Said::Missing),
            (&new, Said::Nothing, Listed::Failed(403), Said::There),
            (&new, Said::Nothing, Listed::Failed(0), Said::Nothing),
            (&new, Said::Missing, Listed::Good, Said::There),
            (&new, Said::Missing, Listed::Failed(404), Said::Missing),
            (&new, Said::Missing, Listed::Failed(403), Said::Missing),
            (&new, Said::Missing, Listed::Failed(503), Said::Nothing),
        ] {
            assert!(known.is_doubtful(said), "{said:?}");
            assert_eq!(known.judge(said, listed), judged, "{said:?}");
        }
        let absent = Known { there: Some(false), missed: 0 };
        assert!(!absent.is_doubtful(Said::Missing), "it is listed once, not each time");
        assert!(!new.is_doubtful(Said::There) && !old.is_doubtful(Said::There));
    }

    #[test]
    fn kinds_in_versions_that_are_too_old_are_warned_of_once() {
        let defined = |tcp: &[&str]| {
            let kinds: [(&str, &str, &[&str]); 4] = [
                ("gateways", "Gateway", &["v1", "v1beta1"]),
                ("referencegrants", "ReferenceGrant", &["v1beta1"]),
                ("tcproutes", "TCPRoute", tcp),
                ("xmeshes", "XMesh", &["v1alpha1"]),
            ];
            let defined = kinds.map(|(name, kind, versions)| {
                let versions = versions.iter().map(|it| (*it).to_owned()).collect();
                (name.to_owned(), Defined { kind: kind.to_owned(), versions })
            });
            BTreeMap::from(defined)
        };
        let wanted = [Kind::Gateway, Kind::ReferenceGrant, Kind::TcpRoute];
        let mut unserved = Unserved::default();
        let lines = unserved.news(&defined(&["v1alpha2"]), &wanted);
        let [(true, tcp), (false, mesh)] = &lines[..] else { panic!("{lines:?}") };
        let said = "no TCPRoute of the Gateway API is served: its definition has v1alpha2, and v1 is needed;";
        assert!(tcp.starts_with(said), "{tcp}");
        assert!(mesh.starts_with("XMesh of the Gateway API (v1alpha1)"), "{mesh}");
        assert!(unserved.news(&defined(&["v1alpha2"]), &wanted).is_empty(), "it was said");
        assert!(unserved.news(&defined(&["v1", "v1alpha2"]), &wanted).is_empty());
        assert_eq!(unserved.news(&defined(&["v1alpha2"]), &wanted).len(), 1, "it is so again");
    }
}
