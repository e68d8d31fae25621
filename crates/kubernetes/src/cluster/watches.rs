//! Which watches a cluster needs, and whether its API server can be talked to at all.

use super::ClusterOptions;
use super::gateway_kinds::Kinds;
use crate::Error;
use crate::client::reason;
use crate::watch::{Guarded, News, Once, Right, Watch, WatchId, Watchable, backoff, watching};
use imbl::OrdSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use objects::gateway::{
    RawBackendTlsPolicy, RawGateway, RawGatewayClass, RawGrpcRoute, RawHttpRoute, RawListenerSet,
    RawReferenceGrant, RawTcpRoute, RawTlsRoute, RawUdpRoute,
};
use objects::{Kind, Object, ObjectKey, Reference};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// The pause that is said to have no end, should there be none.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The first version with discovery.k8s.io/v1, as which EndpointSlices are read.
const OLDEST: (u32, u32) = (1, 21);

/// How much later than a watch lasts the next one is asked for, where nothing is wrong.
const SLACK: Duration = Duration::from_secs(10);

/// Every message from the watches on its way; more than fits makes the watches wait, never grow.
const QUEUE: usize = 1024;

/// The Secrets that something refers to; none until that is known.
pub(super) type Wanted = watch::Receiver<Option<OrdSet<ObjectKey>>>;

/// What is known of a watch without it saying anything.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub(super) kind: Kind,
    /// Being forbidden to list it is no reason to wait.
    pub(super) optional: bool,
    /// It is one object of another namespace than the one that is watched, which a flag names.
    pub(super) is_named: bool,
}

/// All watches of a cluster.
pub(super) struct Watches {
    pub(super) watched: Vec<Watched>,
    pub(super) news: mpsc::Receiver<(WatchId, News)>,
}

/// Waits for an answer of the API server, and finds out whether it can stream lists.
pub(super) async fn greet(options: &ClusterOptions, patience: Instant) -> Result<bool, Error> {
    let (mut pauses, mut told) = (backoff(), None);
    let streaming = loop {
        let asked = timeout_at(patience, options.client.apiserver_version()).await;
        let reason = match asked {
            Ok(Ok(version)) => {
                let number = number(&version.major, &version.minor);
                if number.is_some_and(|number| number < OLDEST) {
                    return Err(Error::TooOld { version: version.git_version });
                }
                // Older servers take the question for a plain watch, and never say that the list is complete.
                break number.is_some_and(|number| number >= (1, 27));
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 401 => {
                return Err(Error::Unauthorized { reason: status.message.clone() });
            }
            // It answers; whether it lets us list is seen by listing.
            Ok(Err(kube::Error::Api(status))) if status.code == 403 || status.code == 404 => {
                break true;
            }
            Ok(Err(error)) => reason(&error),
            Err(_) => "it does not answer".to_owned(),
        };
        let pause = pauses.next().unwrap_or(LONGEST_PAUSE);
        if Instant::now() + pause >= patience {
            return Err(Error::Unreachable { reason });
        }
        // Who asks once is told by the error that ends it.
        if !options.once && told.as_ref() != Some(&reason) {
            tracing::warn!(
                server = options.server,
                reason,
                "cannot reach the API server; trying again"
            );
            options.following.greeted(Some(reason.clone()));
            told = Some(reason);
        }
        drop(timeout(pause, std::future::pending::<()>()).await);
    };
    options.following.greeted(None);
    if let Some(namespace) = &options.namespace {
        let namespaces: Api<Namespace> = Api::all(options.client.clone());
        // Only a clear no counts; asking may be forbidden.
        if let Ok(Ok(None)) = timeout_at(patience, namespaces.get_opt(namespace)).await {
            return Err(Error::NoNamespace { namespace: namespace.clone() });
        }
    }
    Ok(streaming)
}

/// The version of a server, such as 1 and `27+`.
fn number(major: &str, minor: &str) -> Option<(u32, u32)> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    Some((number(major)?, number(minor)?))
}

impl Watches {
    /// Starts all of them. Secrets begin when it is known which of them are wanted: so that the data of the others
    /// is never held, not even at start.
    pub(super) fn start(
        options: &ClusterOptions,
        streaming: bool,
        wanted: &Wanted,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (sender, news) = mpsc::channel(QUEUE);
        let mut start = Start { options, streaming, sender, tasks, watched: Vec::new() };
        let here = options.namespace.as_deref();
        start.namespaced::<Ingress>(here, start.config());
        start.classes();
        start.namespaced::<Service>(here, start.config());
        start
            .namespaced::<EndpointSlice>(here, start.config().labels("kubernetes.io/service-name"));
        start.namespaced::<ConfigMap>(here, start.config().labels("OWNER!=TILLER"));
        let config = start.config().fields("type!=helm.sh/release.v1");
        start.secrets(here, config, wanted, None);
        if let Some(selector) = &options.namespace_selector {
            start.namespaces(selector);
        }
        start.gateways(here);
        if let Some(here) = here {
            start.pinned_elsewhere(here, wanted);
        }
        Self { watched: start.watched, news }
    }
}

struct Start<'a> {
    options: &'a ClusterOptions,
    streaming: bool,
    sender: mpsc::Sender<(WatchId, News)>,
    tasks: &'a mut JoinSet<()>,
    watched: Vec<Watched>,
}

impl Start<'_> {
    fn config(&self) -> Config {
        let seconds = u32::try_from(self.options.watch.as_secs()).unwrap_or(u32::MAX);
        let config = Config::default().timeout(seconds);
        // A list that is streamed takes the right to watch.
        if self.streaming && !self.options.once { config.streaming_lists() } else { config }
    }

    /// A watch that is ready to run.
    fn watch<K: Watchable>(
        &mut self,
        api: impl FnOnce(Client) -> Api<Guarded<K>>,
        config: Config,
        optional: bool,
    ) -> Watch<K> {
        let id = self.watched.len();
        // As long as a connection that is dead without a word goes unnoticed.
        let (client, since) = watching(&self.options.client, self.options.watch + SLACK);
        self.watched.push(Watched { kind: K::KIND, optional, is_named: false });
        Watch {
            id,
            api: api(client),
            since,
            config,
            relist: self.options.relist,
            once: self.options.once.then_some(if optional { Once::Optional } else { Once::Needed }),
            keep: Box::new(|object| object),
            sender: self.sender.clone(),
            report: self.options.following.add(K::KIND, optional),
            right: Right::OfKind,
        }
    }

    fn namespaced<K: Watchable<Scope = NamespaceResourceScope>>(
        &mut self,
        namespace: Option<&str>,
        config: Config,
    ) {
        let watch = self.watch::<K>(|client| api(client, namespace), config, false);
        self.tasks.spawn(watch.run());
    }

    fn classes(&mut self) {
        let watch = self.watch::<IngressClass>(Api::all, self.config(), true);
        self.tasks.spawn(watch.run());
    }

    /// The kinds of the Gateway API, which need not be there; the labels of Namespaces matter only to them.
    fn gateways(&mut self, here: Option<&str>) {
        let mut kinds = Kinds::new(self.options.client.clone(), self.sender.clone());
        let config = self.config();
        let watch = self.watch::<RawGatewayClass>(Api::all, config.clone(), true);
        let present = kinds.add(Kind::GatewayClass, None, watch.id);
        self.tasks.spawn(watch.run_while(present));
        self.while_present::<RawGateway>(here, &mut kinds);
        self.while_present::<RawListenerSet>(here, &mut kinds);
        self.while_present::<RawHttpRoute>(here, &mut kinds);
        self.while_present::<RawGrpcRoute>(here, &mut kinds);
        self.while_present::<RawTcpRoute>(here, &mut kinds);
        self.while_present::<RawUdpRoute>(here, &mut kinds);
        self.while_present::<RawTlsRoute>(here, &mut kinds);
        self.while_present::<RawBackendTlsPolicy>(here, &mut kinds);
        self.while_present::<RawReferenceGrant>(None, &mut kinds);
        if self.options.namespace_selector.is_none() {
            let mut watch = self.watch::<Namespace>(Api::all, config, true);
            if here.is_some() {
                watch.right =
                    Right::Spare("listeners that choose namespaces by labels take no routes");
            }
            let present = kinds.add(Kind::Gateway, here, watch.id);
            self.tasks.spawn(watch.run_while(present));
        }
        kinds.follow(self.tasks);
    }

    fn while_present<K: Watchable<Scope = NamespaceResourceScope>>(
        &mut self,
        namespace: Option<&str>,
        kinds: &mut Kinds,
    ) {
        let watch = self.watch::<K>(|client| api(client, namespace), self.config(), true);
        let present = kinds.add(K::KIND, namespace, watch.id);
        self.tasks.spawn(watch.run_while(present));
    }

    /// The API server applies the selector: a namespace that no longer matches is told as gone.
    fn namespaces(&mut self, selector: &str) {
        let config = self.config().labels(selector);
        let watch = self.watch::<Namespace>(Api::all, config, false);
        self.tasks.spawn(watch.run());
    }

    fn secrets(
        &mut self,
        namespace: Option<&str>,
        config: Config,
        wanted: &Wanted,
        named: Option<&ObjectKey>,
    ) {
        let is_named = named.is_some();
        let mut watch = self.watch::<Secret>(|client| api(client, namespace), config, is_named);
        if let Some(key) = named {
            self.name(&mut watch, key, true);
        }
        let known = wanted.clone();
        watch.keep = Box::new(move |object| keep_wanted(object, &known));
        let mut wanted = wanted.clone();
        self.tasks.spawn(async move {
            if wanted.wait_for(Option::is_some).await.is_ok() {
                watch.run().await;
            }
        });
    }

    /// Pinned objects outside the only namespace that is watched, one watch for each.
    fn pinned_elsewhere(&mut self, here: &str, wanted: &Wanted) {
        for reference in self.options.pinned.clone() {
            let (Reference::Secret(key) | Reference::ConfigMap(key) | Reference::Service(key)) =
                &reference;
            if &*key.namespace == here {
                continue;
            }
            let named = self.config().fields(&format!("metadata.name={}", key.name));
            match &reference {
                Reference::Secret(key) => {
                    self.secrets(Some(&key.namespace), named, wanted, Some(key));
                }
                // Who only looks is told.
                Reference::ConfigMap(key) => {
                    let has_guards = self.options.guards.as_ref() == Some(key);
                    self.one::<ConfigMap>(key, named, self.options.once || !has_guards);
                }
                Reference::Service(key) => {
                    self.one::<Service>(key, named, true);
                    let label = format!("kubernetes.io/service-name={}", key.name);
                    self.one::<EndpointSlice>(key, self.config().labels(&label), true);
                }
            }
        }
    }

    fn one<K: Watchable<Scope = NamespaceResourceScope>>(
        &mut self,
        key: &ObjectKey,
        config: Config,
        optional: bool,
    ) {
        let mut watch =
            self.watch::<K>(|client| api(client, Some(&key.namespace)), config, optional);
        self.name(&mut watch, key, optional);
        self.tasks.spawn(watch.run());
    }

    fn name<K: Watchable>(&mut self, watch: &mut Watch<K>, key: &ObjectKey, optional: bool) {
        watch.right = Right::OfObject { key: key.clone(), optional };
        self.watched[watch.id].is_named = true;
    }
}

fn api<K: Watchable<Scope = NamespaceResourceScope>>(
    client: Client,
    namespace: Option<&str>,
) -> Api<Guarded<K>> {
    match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    }
}

fn keep_wanted(object: Object, wanted: &Wanted) -> Object {
    match object {
        Object::Secret(mut secret) => {
            let wanted = wanted.borrow();
            if !wanted.as_ref().is_some_and(|wanted| wanted.contains(&secret.meta.key)) {
                Arc::make_mut(&mut secret).data = None;
            }
            Object::Secret(secret)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Following;

    /// What a start that watches one namespace needs of ConfigMaps: of that namespace, and of these elsewhere.
    fn optional(once: bool, guards: Option<&ObjectKey>, pinned: &[&ObjectKey]) -> Vec<bool> {
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        let pinned = pinned.iter().map(|key| Reference::ConfigMap((*key).clone()));
        let options = ClusterOptions {
            client: Client::try_from(config).expect("a client"),
            server: String::new(),
            namespace: Some("apps".to_owned()),
            namespace_selector: None,
            pinned: pinned.collect(),
            guards: guards.cloned(),
            secrets_of: Arc::new(|_| Vec::new()),
            patience: Duration::ZERO,
            once,
            watch: Duration::from_secs(1),
            relist: Duration::from_secs(1),
            following: Following::default(),
        };
        let mut tasks = JoinSet::new();
        let all = Watches::start(&options, false, &watch::channel(None).1, &mut tasks).watched;
        let maps = all.into_iter().filter(|one| one.kind == Kind::ConfigMap);
        maps.map(|one| one.optional).collect()
    }

    /// Without its ports of TCP services it serves all else, as ingress-nginx does.
    #[tokio::test]
    async fn of_config_maps_elsewhere_a_start_needs_the_one_that_may_hold_guards() {
        let [guards, tcp, here] = [("fairway", "settings"), ("fairway", "tcp"), ("apps", "udp")]
            .map(|(namespace, name)| ObjectKey::new(namespace, name));
        let pinned = [&guards, &tcp, &here];
        assert_eq!(optional(false, Some(&guards), &pinned), [false, false, true]);
        assert_eq!(optional(true, Some(&guards), &pinned), [false, true, true]);
        assert_eq!(optional(false, None, &[&tcp]), [false, true]);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(number("1", "36"), Some((1, 36)));
        assert_eq!(number("1", "27+"), Some((1, 27)));
        assert!(number("1", "9") < Some(OLDEST) && number("2", "0") > Some(OLDEST));
        // It has Ingresses of version 1, and EndpointSlices of v1beta1 alone.
        assert!(number("1", "20") < Some(OLDEST) && number("1", "21+") >= Some(OLDEST));
        assert_eq!(number("", ""), None);
    }
}
