//! A Gateway behind a Service of type LoadBalancer with every kind of listener: through the ports that the Service
//! names, whatever somebody writes into it, and on two replicas.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::certificates::Certificates;
use testkit::cluster::{self, Cluster, Connection, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::echoes::echoes;
use crate::fairway::{Fairway, PATIENCE, free_addresses};
use crate::gateways::{api, told};
use crate::load_balancers::{
    FLAGS, OWN, REPLICA, balance, gateway, ground, prepare, serves, services, target, tells,
};
use crate::replicas::{leads, pod_of_a_process};

const HTTPS: u16 = 8443;
const FIXTURES: [&str; 6] = ["echo-b", "echo-tls", "tcp", "udp", "tls-demo", "tls-other"];

/// The Gateway with its routes; its HTTPS listeners have this port.
async fn apply_edge(cluster: &Cluster, https: u16) -> Result<()> {
    let objects = include_str!("edge.yaml").replace("PORT", &https.to_string());
    eventually("all kinds of routes", PATIENCE, async || cluster.apply(&objects).await).await
}

async fn service(cluster: &Cluster, name: &str) -> Result<Value> {
    Ok(json!(services(cluster).get(name).await?))
}

/// Where the Service leads from a port, once it has it.
async fn lead(cluster: &Cluster, transport: &str, port: u16) -> Result<u16> {
    eventually(format!("{transport} {port} of the Service"), PATIENCE, async || {
        let found = service(cluster, "gateway-edge").await?;
        let ports = found["spec"]["ports"].as_array().context("it has no ports")?;
        let is_it = |one: &&Value| one["port"] == port && one["protocol"] == transport;
        let found = ports.iter().find(is_it).with_context(|| format!("it has {ports:?}"))?;
        let name = format!("{}-{port}", transport.to_lowercase());
        ensure!(found["name"] == name, "it has {found}");
        Ok(u16::try_from(found["targetPort"].as_u64().context("no number")?)?)
    })
    .await
}

/// A connection over TLS whose certificate has this name.
async fn secure(at: IpAddr, port: u16, name: &str) -> Result<Connection> {
    let authority = Certificates::shared().get("ca").context("a fixture")?.certificate.clone();
    Connection::open_tls(SocketAddr::new(at, port), name, &authority).await
}

/// What is sent back of a line.
async fn line(tcp: &mut TcpStream) -> Result<()> {
    tcp.write_all(b"a line\n").await?;
    let mut said = [0; 13];
    tokio::time::timeout(PATIENCE, tcp.read_exact(&mut said)).await.context("nothing comes")??;
    ensure!(said == *b"tcp-0:a line\n", "it says {said:?}");
    Ok(())
}

async fn datagram(at: IpAddr, port: u16) -> Result<()> {
    let own = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(own).await?;
    socket.connect(SocketAddr::new(at, port)).await?;
    socket.send(b"a word").await?;
    let mut said = [0; 64];
    let received = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut said)).await;
    let length = received.context("nothing comes")??;
    ensure!(said[..length] == *b"udp-0:a word", "it says {:?}", &said[..length]);
    Ok(())
}

/// Where the Service of the Gateway leads, by transport and port.
struct Leads {
    https: u16,
    passed: u16,
    tcp: u16,
    udp: u16,
}

impl Leads {
    async fn of(cluster: &Cluster, https: u16) -> Result<Self> {
        Ok(Self {
            https: lead(cluster, "TCP", https).await?,
            passed: lead(cluster, "TCP", 8444).await?,
            tcp: lead(cluster, "TCP", 5353).await?,
            udp: lead(cluster, "UDP", 5353).await?,
        })
    }

    fn all(&self) -> [u16; 4] {
        [self.https, self.passed, self.tcp, self.udp]
    }

    /// Each listener answers at an address of a replica.
    async fn are_answered(&self, at: IpAddr) -> Result<()> {
        for name in ["demo", "other"] {
            let host = format!("{name}.test");
            eventually(format!("{host} at {at}"), PATIENCE, async || {
                let answer = secure(at, self.https, &host).await?.get(&host, "/").await?;
                ensure!(answer.status == 200, "it answers {}", answer.status);
                ensure!(answer.header("x-listener") == Some(name), "another listener answers");
                anyhow::Ok(())
            })
            .await?;
        }
        let crossed = secure(at, self.https, "demo.test").await?.get("other.test", "/").await?;
        ensure!(crossed.status == 421, "another listener's host is answered {}", crossed.status);
        ensure!(secure(at, self.https, "none.test").await.is_err(), "nobody has this name");
        // The certificate is the backend's own.
        eventually(format!("what is passed on at {at}"), PATIENCE, async || {
            let name = "echo-tls.demo.svc";
            let answer = secure(at, self.passed, name).await?.get(name, "/").await?;
            ensure!(answer.status == 200, "it answers {}", answer.status);
            anyhow::Ok(())
        })
        .await?;
        eventually(format!("TCP at {at}"), PATIENCE, async || {
            line(&mut TcpStream::connect((at, self.tcp)).await?).await
        })
        .await?;
        eventually(format!("UDP at {at}"), PATIENCE, async || datagram(at, self.udp).await).await
    }
}

#[test]
fn every_kind_of_listener_is_answered_through_its_ports_and_a_changed_one_touches_no_other() {
    cluster::test_with_gateway_api(async |cluster| {
        let _upstreams = echoes(cluster, &FIXTURES).await?;
        ground(cluster).await?;
        apply_edge(cluster, HTTPS).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        let before = Leads::of(cluster, HTTPS).await?;
        let made = service(cluster, "gateway-edge").await?;
        let (meta, spec) = (&made["metadata"], &made["spec"]);
        let labels = json!({
            "tier": "edge",
            "app.kubernetes.io/managed-by": "fairway",
            "gateway.networking.k8s.io/gateway-name": "edge",
        });
        let told = json!({
            "to": "us",
            "fairway/gateway-controller-name": "fairway/gateway-controller",
        });
        ensure!(meta["labels"] == labels && meta["annotations"] == told, "{meta}");
        let gateway = api(cluster, "Gateway").get("edge").await?;
        let owner = json!([{
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "edge",
            "uid": gateway.metadata.uid, "controller": true,
        }]);
        ensure!(meta["ownerReferences"] == owner, "{meta}");
        ensure!(spec["type"] == "LoadBalancer" && spec.get("selector").is_none(), "{spec}");
        // Nothing is said about it, so it is what the cluster has.
        ensure!(spec["ipFamilyPolicy"] == "SingleStack", "{spec}");
        ensure!(spec["ports"].as_array().is_some_and(|ports| ports.len() == 4), "{spec}");
        let here: IpAddr = REPLICA.parse()?;
        for at in [here, Ipv6Addr::LOCALHOST.into()] {
            before.are_answered(at).await?;
        }
        let mut kept = TcpStream::connect((here, before.tcp)).await?;
        line(&mut kept).await?;
        let mut passed = secure(here, before.passed, "echo-tls.demo.svc").await?;
        apply_edge(cluster, 9447).await?;
        let after = Leads::of(cluster, 9447).await?;
        after.are_answered(here).await?;
        ensure!(after.all()[1..] == before.all()[1..], "others were moved");
        line(&mut kept).await.context("the connection from before")?;
        let answer = passed.get("echo-tls.demo.svc", "/").await.context("from before")?;
        ensure!(answer.status == 200, "it answers {}", answer.status);
        eventually("the port before to go", PATIENCE, async || {
            let made = service(cluster, "gateway-edge").await?;
            let ports = made["spec"]["ports"].as_array().context("it has no ports")?;
            ensure!(ports.iter().all(|one| one["port"] != HTTPS) && ports.len() == 4, "{made}");
            let is_open = TcpStream::connect((here, before.https)).await.is_ok();
            ensure!(!is_open, "{} is open", before.https);
            anyhow::Ok(())
        })
        .await?;
        // Nobody is waited for at the end.
        drop((kept, passed));
        fairway.stop().await
    });
}

/// Writes into the Service of Gateway `one` as somebody with an editor does.
async fn edit(cluster: &Cluster, change: Value) -> Result<()> {
    let patch = Patch::Merge(change);
    services(cluster).patch("gateway-one", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// What Fairway has written into the Service and its EndpointSlice.
async fn ours(cluster: &Cluster) -> Result<Value> {
    let made = service(cluster, "gateway-one").await?;
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client(), "demo");
    let slice = json!(slices.get("gateway-one-v4").await?);
    let ports = made["spec"]["ports"].as_array().context("it has no ports")?.iter();
    let ports =
        ports.map(|one| json!([one["name"], one["protocol"], one["port"], one["targetPort"]]));
    Ok(json!({
        "tier": made["metadata"]["labels"]["tier"],
        "to": made["metadata"]["annotations"]["to"],
        "type": made["spec"]["type"],
        "ports": ports.collect::<Value>(),
        "endpoints": slice["endpoints"],
        "leads": slice["ports"],
    }))
}

/// A connection to this port of the replica, with an answer.
async fn opened(port: u16) -> Result<Connection> {
    eventually(format!("port {port}"), PATIENCE, async || {
        let mut opened = Connection::open(format!("{REPLICA}:{port}").parse()?).await?;
        opened.get("any.test", "/").await?;
        anyhow::Ok(opened)
    })
    .await
}

/// The same with another annotation.
fn ours_of(mut before: Value, to: &str) -> Value {
    before["to"] = to.into();
    before
}

/// Waits until what Fairway has written is there again.
async fn mended(cluster: &Cluster, what: &str, before: &Value) -> Result<()> {
    eventually(format!("{what} to be put right"), PATIENCE, async || {
        let now = ours(cluster).await?;
        ensure!(now == *before, "it is {now}");
        anyhow::Ok(())
    })
    .await
}

#[test]
fn what_somebody_writes_over_ours_in_the_service_is_put_right_and_what_else_they_write_stays() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        let infrastructure = "labels: {tier: one}, annotations: {to: us}";
        let made = gateway("one", "").replace("labels: {tier: one}", infrastructure);
        cluster.apply(&made).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        let port = target(cluster, "one", 8080).await?;
        serves("one", (REPLICA, port)).await?;
        // The EndpointSlice is written behind its Service.
        let before = eventually("what is written", PATIENCE, async || ours(cluster).await).await?;
        // The other listener is never touched.
        let other = target(cluster, "one", 9090).await?;
        let mut kept = opened(other).await?;
        let theirs = json!({
            "metadata": {"annotations": {"of": "them"}},
            "spec": {"externalTrafficPolicy": "Local", "ipFamilyPolicy": "PreferDualStack"},
        });
        edit(cluster, theirs.clone()).await?;
        let mut odd = service(cluster, "gateway-one").await?["spec"]["ports"].clone();
        odd[0]["port"] = 9999.into();
        let metadata = json!({"labels": {"tier": "other"}, "annotations": {"to": null}});
        let closed = json!({"type": "ClusterIP", "externalTrafficPolicy": null});
        for (what, change) in [
            ("its labels and annotations", json!({"metadata": metadata})),
            ("its type", json!({"spec": closed})),
            ("the number of a port", json!({"spec": {"ports": odd}})),
        ] {
            edit(cluster, change).await?;
            mended(cluster, what, &before).await?;
        }
        // What asks for something else is no quarrel.
        cluster.apply(&made.replace("to: us", "to: all")).await?;
        let before = ours_of(before, "all");
        mended(cluster, "another annotation", &before).await?;
        edit(cluster, theirs).await?;
        let another = json!({"spec": {"ports": [{"name": "more", "port": 7, "targetPort": 7}]}});
        let another = Patch::Strategic(another);
        services(cluster).patch("gateway-one", &PatchParams::default(), &another).await?;
        mended(cluster, "a port too many", &before).await?;
        let slices: Api<EndpointSlice> = Api::namespaced(cluster.client(), "demo");
        let empty = Patch::Merge(json!({"endpoints": []}));
        slices.patch("gateway-one-v4", &PatchParams::default(), &empty).await?;
        mended(cluster, "its endpoints", &before).await?;
        slices.delete("gateway-one-v4", &Default::default()).await?;
        mended(cluster, "an EndpointSlice that is gone", &before).await?;
        ensure!(kept.get("any.test", "/").await?.status == 200, "a connection was touched");
        let now = service(cluster, "gateway-one").await?;
        ensure!(now["metadata"]["annotations"]["of"] == "them", "it is {now}");
        ensure!(now["spec"]["externalTrafficPolicy"] == "Local", "it is {now}");
        ensure!(now["spec"]["ipFamilies"] == json!(["IPv4", "IPv6"]), "it is {now}");
        balance(cluster, "one", &["192.0.2.7", "2001:db8::7", "lb.test"]).await?;
        told(cluster, "Gateway", "one", |status| {
            status["addresses"]
                == json!([
                    {"type": "IPAddress", "value": "192.0.2.7"},
                    {"type": "IPAddress", "value": "2001:db8::7"},
                    {"type": "Hostname", "value": "lb.test"},
                ])
        })
        .await?;
        services(cluster).delete("gateway-one", &Default::default()).await?;
        mended(cluster, "a Service that is gone", &before).await?;
        serves("one", (REPLICA, port)).await?;
        // Nobody is waited for at the end.
        drop(kept);
        fairway.stop().await
    });
}

#[test]
fn a_service_of_somebody_else_is_not_taken_and_one_that_asks_for_ipv6_has_that_family() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        let foreign = "apiVersion: v1\nkind: Service\nmetadata: {name: gateway-one, namespace: demo}\n\
                       spec: {type: LoadBalancer, ports: [{port: 8080}]}\n";
        cluster.apply(foreign).await?;
        let theirs = services(cluster).get("gateway-one").await?;
        balance(cluster, "one", &["192.0.2.99"]).await?;
        cluster.apply(&gateway("one", "")).await?;
        let asks = "  addresses: [{type: IPAddress, value: '2001:db8::9'}]";
        cluster.apply(&gateway("two", asks)).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        told(cluster, "Gateway", "one", |status| {
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let mut programmed = conditions.iter().filter(|one| one["type"] == "Programmed");
            let says = "Service demo/gateway-one is somebody else's: delete it";
            programmed.any(|one| one["reason"] == "AddressNotAssigned" && one["message"] == says)
                && status["addresses"].as_array().is_none_or(Vec::is_empty)
        })
        .await?;
        // By now the other one is made, and so this one would have been.
        let port = target(cluster, "two", 8080).await?;
        serves("two", (REPLICA, port)).await?;
        let now = services(cluster).get("gateway-one").await?;
        ensure!(now.spec == theirs.spec, "it was changed: {:?}", now.spec);
        let of_ours = (now.metadata.labels, now.metadata.owner_references);
        ensure!(of_ours == (None, None), "it was taken: {of_ours:?}");
        let made = service(cluster, "gateway-two").await?;
        ensure!(made["spec"]["ipFamilies"] == json!(["IPv6"]), "it has {}", made["spec"]);
        ensure!(made["spec"]["loadBalancerIP"] == "2001:db8::9", "it has {}", made["spec"]);
        balance(cluster, "two", &["2001:db8::9"]).await?;
        tells(cluster, "two", "Programmed", &["2001:db8::9"]).await?;
        // The family stays when it asks for nothing any more, or for what cannot be.
        cluster.apply(&gateway("two", "")).await?;
        eventually("the Service to ask for nothing", PATIENCE, async || {
            let made = service(cluster, "gateway-two").await?;
            ensure!(made["spec"].get("loadBalancerIP").is_none(), "it has {}", made["spec"]);
            ensure!(made["spec"]["ipFamilies"] == json!(["IPv6"]), "it has {}", made["spec"]);
            anyhow::Ok(())
        })
        .await?;
        cluster.apply(&gateway("two", &asks.replace("2001:db8::9", "192.0.2.9"))).await?;
        tells(cluster, "two", "AddressNotUsable", &["2001:db8::9"]).await?;
        services(cluster).delete("gateway-one", &Default::default()).await?;
        let port = target(cluster, "one", 8080).await?;
        serves("one", (REPLICA, port)).await?;
        fairway.stop().await
    });
}

/// Where the two replicas are.
const PLACES: [&str; 2] = [REPLICA, "10.244.0.73"];

/// Both, each at the address of its Pod, where it takes everything. The first one of `order` leads.
async fn replicas(cluster: &Cluster, order: [usize; 2]) -> Result<[Fairway; 2]> {
    let [free] = free_addresses()?;
    let start = async |number: usize| {
        let (pod, at) = (format!("fairway-{number}"), PLACES[number]);
        let address: IpAddr = at.parse()?;
        pod_of_a_process(cluster, &pod, address).await?;
        let bind = format!("--bind-address={at}");
        let flags = [&FLAGS[..], &[&bind]].concat();
        Fairway::start_at(cluster, &pod, SocketAddr::new(address, free.port()), &flags).await
    };
    let first = start(order[0]).await?;
    leads(cluster, &format!("fairway-{}", order[0])).await?;
    Ok([first, start(order[1]).await?])
}

#[test]
fn two_replicas_open_the_same_ports_and_open_them_again_whoever_leads() {
    cluster::test_with_gateway_api(async |cluster| {
        prepare(cluster).await?;
        let both = OWN.replace(
            "endpoints: [",
            "endpoints: [{addresses: [10.244.0.73], conditions: {ready: true}}, ",
        );
        cluster.fairway_kubeconfig().await?;
        cluster.apply(&both).await?;
        let [first, second] = replicas(cluster, [0, 1]).await?;
        cluster.apply(&gateway("one", "")).await?;
        let port = target(cluster, "one", 8080).await?;
        let tcp = target(cluster, "one", 9090).await?;
        for place in PLACES {
            serves("one", (place, port)).await?;
        }
        balance(cluster, "one", &["192.0.2.1"]).await?;
        tells(cluster, "one", "Programmed", &["192.0.2.1"]).await?;
        // Both go, and come back in the other order: whoever leads, the ports are the same.
        first.stop().await?;
        second.stop().await?;
        let [first, second] = replicas(cluster, [1, 0]).await?;
        for place in PLACES {
            serves("one", (place, port)).await?;
        }
        ensure!(target(cluster, "one", 8080).await? == port, "it has another port");
        ensure!(target(cluster, "one", 9090).await? == tcp, "TCP has another port");
        first.stop().await?;
        second.stop().await
    });
}

/// How often Services were deleted, as the API server counts.
async fn deletions(cluster: &Cluster) -> Result<f64> {
    let ask = http::Request::get("/metrics").body(Vec::new())?;
    let page = cluster.client().request_text(ask).await?;
    let counts = page.lines().filter(|line| {
        line.starts_with("apiserver_request_total{")
            && line.contains("resource=\"services\"")
            && line.contains("verb=\"DELETE\"")
    });
    Ok(counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum())
}

#[test]
fn a_service_that_is_on_its_way_out_is_left_alone_until_it_is_gone() {
    cluster::test_with_gateway_api(async |cluster| {
        ground(cluster).await?;
        cluster.apply(&gateway("one", "")).await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &FLAGS).await?;
        target(cluster, "one", 8080).await?;
        // As the controller of a cloud holds it until its load balancer is gone.
        edit(cluster, json!({"metadata": {"finalizers": ["cloud.test/balancer"]}})).await?;
        let before = services(cluster).get("gateway-one").await?.metadata.uid;
        let api = api(cluster, "Gateway");
        api.delete("one", &DeleteParams::default()).await?;
        eventually("the Service to be on its way out", PATIENCE, async || {
            let found = services(cluster).get("gateway-one").await?;
            ensure!(found.metadata.deletion_timestamp.is_some(), "nobody deletes it");
            anyhow::Ok(())
        })
        .await?;
        let so_far = deletions(cluster).await?;
        // A Gateway of the same name is another one, and waits for a Service of its own.
        cluster.apply(&gateway("one", "")).await?;
        cluster.apply(&gateway("two", "")).await?;
        serves("two", (REPLICA, target(cluster, "two", 8080).await?)).await?;
        edit(cluster, json!({"metadata": {"finalizers": null}})).await?;
        eventually("a Service of its own", PATIENCE, async || {
            let found = services(cluster).get("gateway-one").await?.metadata;
            ensure!(found.uid != before && found.deletion_timestamp.is_none(), "it is the old one");
            anyhow::Ok(())
        })
        .await?;
        let since = deletions(cluster).await? - so_far;
        ensure!(since <= 2.0, "it was deleted {since} times meanwhile");
        fairway.stop().await
    });
}
