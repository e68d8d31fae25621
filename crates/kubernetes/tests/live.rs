//! Against a real API server, named by KUBECONFIG: run with `--ignored`. Each test has a namespace of its own.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::networking::v1 as networking;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kubernetes::{ClientOptions, ClusterOptions, Error, Feed, Following, Referrer};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, from_value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

struct Shop {
    client: kube::Client,
    namespace: String,
}

impl Shop {
    async fn open(name: &str) -> Self {
        let client =
            kubernetes::client(&ClientOptions::default()).await.expect("KUBECONFIG is set");
        let namespace = format!("{name}-{}", std::process::id());
        let object = from_value(json!({"metadata": {"name": namespace}})).expect("fits");
        let namespaces: Api<core::Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &object).await.expect("creates");
        Self { client, namespace }
    }

    fn options(&self) -> ClusterOptions {
        ClusterOptions {
            client: self.client.clone(),
            namespace: None,
            namespace_selector: None,
            pinned: Vec::new(),
            guards: None,
            secrets_of: Arc::new(|referrer| match referrer {
                Referrer::Ingress(ingress) => {
                    let names = ingress.tls.iter().filter_map(|tls| tls.secret.as_deref());
                    let namespace = &ingress.meta.key.namespace;
                    names.map(|name| ObjectKey::new(namespace.clone(), name)).collect()
                }
                Referrer::ConfigMap(_) | Referrer::Gateway(_) | Referrer::ListenerSet(_) => {
                    Vec::new()
                }
            }),
            patience: Duration::from_secs(20),
            once: false,
            server: String::new(),
            watch: kubernetes::WATCH,
            relist: Duration::from_secs(1800),
            following: Following::default(),
        }
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.namespace.as_str(), name)
    }

    async fn create_secret(&self, name: &str, kind: &str) {
        let secrets: Api<core::Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let secret = json!({"metadata": {"name": name}, "type": kind, "stringData": {"v": "1"}});
        let secret = from_value(secret).expect("fits");
        secrets.create(&PostParams::default(), &secret).await.expect("creates");
    }

    async fn patch_secret(&self, name: &str, patch: Value) {
        let secrets: Api<core::Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let patch = Patch::Merge(patch);
        secrets.patch(name, &PatchParams::default(), &patch).await.expect("patches");
    }

    fn ingresses(&self) -> Api<networking::Ingress> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create_ingress(&self, name: &str, secret: &str) {
        let ingress = from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "tls": [{"hosts": ["a.test"], "secretName": secret}],
                "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
            },
        }));
        let ingress = ingress.expect("fits");
        self.ingresses().create(&PostParams::default(), &ingress).await.expect("creates");
    }

    async fn label(&self, team: Option<&str>) {
        let namespaces: Api<core::Namespace> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": {"team": team}}}));
        let name = &self.namespace;
        namespaces.patch(name, &PatchParams::default(), &patch).await.expect("patches");
    }
}

async fn until(feed: &mut Feed, what: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let waiting = feed.snapshots.wait_for(|snapshot| what(snapshot));
    let found = timeout(Duration::from_secs(10), waiting).await.expect("it comes in time");
    found.expect("the feed goes on").clone()
}

fn value(snapshot: &Snapshot, key: &ObjectKey) -> Option<Vec<u8>> {
    snapshot.secrets.get(key)?.data.as_ref()?.get("v").cloned()
}

#[tokio::test]
#[ignore = "needs KUBECONFIG"]
async fn a_secret_has_data_while_an_ingress_refers_to_it_and_rotates() {
    let shop = Shop::open("secrets").await;
    shop.create_secret("before", "Opaque").await;
    shop.create_ingress("first", "before").await;
    shop.create_secret("idle", "Opaque").await;
    shop.create_secret("release", "helm.sh/release.v1").await;
    let (before, idle) = (shop.key("before"), shop.key("idle"));
    let mut feed = kubernetes::cluster(shop.options()).await.expect("a feed");
    let first = feed.snapshots.borrow().clone();
    assert_eq!(value(&first, &before).as_deref(), Some(&b"1"[..]));
    assert_eq!(first.secrets[&idle].data, None);
    assert!(!first.secrets.contains_key(&shop.key("release")));
    shop.patch_secret("before", json!({"stringData": {"v": "2"}})).await;
    until(&mut feed, |snapshot| value(snapshot, &before).as_deref() == Some(b"2")).await;
    // Never is the Ingress there without the data of the Secret that it names.
    let created = shop.create_ingress("second", "idle");
    let key = shop.key("second");
    let waiting = until(&mut feed, |snapshot| snapshot.ingresses.contains_key(&key));
    let (snapshot, ()) = tokio::join!(waiting, created);
    assert_eq!(value(&snapshot, &idle).as_deref(), Some(&b"1"[..]));
    shop.ingresses().delete("first", &DeleteParams::default()).await.expect("deletes");
    let last = until(&mut feed, |snapshot| value(snapshot, &before).is_none()).await;
    assert!(last.secrets.contains_key(&before));
}

#[tokio::test]
#[ignore = "needs KUBECONFIG"]
async fn a_namespace_comes_and_goes_with_its_labels() {
    let shop = Shop::open("selector").await;
    shop.create_secret("tls", "Opaque").await;
    shop.create_ingress("web", "tls").await;
    let team = shop.namespace.clone();
    let namespace_selector = Some(format!("team={team}"));
    let options = ClusterOptions { namespace_selector, ..shop.options() };
    let mut feed = kubernetes::cluster(options).await.expect("a feed");
    assert!(feed.snapshots.borrow().ingresses.is_empty());
    shop.label(Some(&team)).await;
    let shown = until(&mut feed, |snapshot| !snapshot.ingresses.is_empty()).await;
    assert_eq!(value(&shown, &shop.key("tls")).as_deref(), Some(&b"1"[..]));
    shop.label(None).await;
    until(&mut feed, |snapshot| snapshot.ingresses.is_empty()).await;
}

#[tokio::test]
#[ignore = "needs KUBECONFIG"]
async fn only_one_namespace_is_watched_but_what_is_pinned_comes_from_anywhere() {
    let (here, there) = (Shop::open("here").await, Shop::open("there").await);
    there.create_secret("default", "Opaque").await;
    there.create_secret("other", "Opaque").await;
    there.create_ingress("web", "other").await;
    here.create_ingress("web", "none").await;
    let options = ClusterOptions {
        namespace: Some(here.namespace.clone()),
        pinned: vec![objects::Reference::Secret(there.key("default"))],
        ..here.options()
    };
    let mut feed = kubernetes::cluster(options).await.expect("a feed");
    let first = feed.snapshots.borrow().clone();
    assert_eq!(first.ingresses.keys().collect::<Vec<_>>(), [&here.key("web")]);
    assert_eq!(first.secrets.keys().collect::<Vec<_>>(), [&there.key("default")]);
    there.patch_secret("default", json!({"stringData": {"v": "2"}})).await;
    let key = there.key("default");
    until(&mut feed, |snapshot| value(snapshot, &key).as_deref() == Some(b"2")).await;
}

#[tokio::test]
#[ignore = "needs KUBECONFIG"]
async fn what_cannot_work_is_told_at_once() {
    let shop = Shop::open("errors").await;
    let namespace = Some("nowhere".to_owned());
    let error = kubernetes::cluster(ClusterOptions { namespace, ..shop.options() }).await;
    assert!(matches!(error, Err(Error::NoNamespace { .. })), "{error:?}");
    let namespace_selector = Some("team==,".to_owned());
    let error = kubernetes::cluster(ClusterOptions { namespace_selector, ..shop.options() }).await;
    assert!(matches!(error, Err(Error::Refused { .. })), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_after_some_patience() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = closed.local_addr().expect("has an address");
    drop(closed);
    let options = ClientOptions {
        apiserver_host: Some(format!("http://{address}")),
        ..ClientOptions::default()
    };
    let client = kubernetes::client(&options).await.expect("a client");
    let error = kubernetes::cluster(ClusterOptions {
        client,
        namespace: None,
        namespace_selector: None,
        pinned: Vec::new(),
        guards: None,
        secrets_of: Arc::new(|_| Vec::new()),
        patience: Duration::from_secs(2),
        once: false,
        server: String::new(),
        watch: kubernetes::WATCH,
        relist: Duration::from_secs(1800),
        following: Following::default(),
    });
    let error = error.await.expect_err("nobody is there").to_string();
    assert_eq!(
        error,
        "cannot reach the API server: Connection refused (os error 111); check its address, and \
         that it runs"
    );
}

#[tokio::test]
#[ignore = "needs KUBECONFIG"]
async fn the_zone_of_a_pod_is_that_of_its_node() {
    let shop = Shop::open("zone").await;
    let node = format!("zoned-{}", std::process::id());
    let nodes: Api<core::Node> = Api::all(shop.client.clone());
    let labels = json!({"topology.kubernetes.io/zone": "a"});
    let object = from_value(json!({"metadata": {"name": node, "labels": labels}})).expect("fits");
    nodes.create(&PostParams::default(), &object).await.expect("creates");
    let pods: Api<core::Pod> = Api::namespaced(shop.client.clone(), &shop.namespace);
    let containers = json!([{"name": "web", "image": "web"}]);
    let spec =
        json!({"nodeName": node, "containers": containers, "automountServiceAccountToken": false});
    let pod = from_value(json!({"metadata": {"name": "web"}, "spec": spec})).expect("fits");
    let made = async {
        // The service account of a new namespace comes a little later.
        while pods.create(&PostParams::default(), &pod).await.is_err() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a pause between tries, which end with the condition"
            )]
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(20), made).await.expect("creates");
    let zone = |pod| kubernetes::zone(&shop.client, &shop.namespace, pod);
    assert_eq!(zone("web").await, Ok("a".to_owned()));
    assert!(zone("nobody").await.is_err());
    nodes.delete(&node, &DeleteParams::default()).await.expect("deletes");
}
