//! cert-manager beside Fairway, with an authority that asks over ACME: certificates whatever applications ask for.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use testkit::cluster::{self, Cluster, Process, eventually, go_programs};
use testkit::kubelet::{Image, Images};
use testkit::ports;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::echoes::{HERE, addresses};
use crate::fairway::{Fairway, PATIENCE};
use crate::solvers::{APPLICATIONS, application, applications, closing_settings};

/// Where the program is made.
const MODULE: &str = "tests/ecosystem/acme";

/// What cert-manager asks whom for certificates, and how.
const ISSUER: &str = "
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: authority, namespace: demo}
spec:
  acme:
    server: DIRECTORY
    skipTLSVerify: true
    privateKeySecretRef: {name: account}
    solvers: [{http01: {ingress: {ingressClassName: nginx, serviceType: ClusterIP}}}]
";

/// cert-manager, and the authority that it asks.
struct Bed {
    controllers: Process,
    authority: Process,
    root: String,
    _port_80: JoinSet<()>,
}

impl Bed {
    async fn start(cluster: &Cluster, fairway: &Fairway) -> Result<Self> {
        let program = go_programs(MODULE)?.join("acme");
        let log = |name: &str| cluster.folder().join(name);
        let dns = format!("127.0.0.1:{}", ports::free());
        let out = log("authority.out");
        let mut command = Command::new(&program);
        command.arg("authority").envs([("DNS", dns.as_str()), ("ADDRESS", HERE)]);
        command.env("PEBBLE_VA_NOSLEEP", "1");
        let authority = Process::start_apart(&mut command, &log("authority.log"), &out)?;
        let said = eventually("the authority to say where it is", PATIENCE, async || {
            let said = std::fs::read_to_string(&out)?;
            ensure!(said.contains("-----END"), "it said {said:?}: {}", authority.log());
            anyhow::Ok(said)
        })
        .await?;
        let (directory, root) = said.split_once('\n').context("a line and a certificate")?;
        for definition in definitions().await? {
            cluster.apply(&std::fs::read_to_string(&definition)?).await?;
        }
        let issuer = ISSUER.replace("DIRECTORY", directory);
        eventually("the Issuer to be taken", PATIENCE, async || cluster.apply(&issuer).await)
            .await?;
        let mut command = Command::new(&program);
        command.arg("controllers").env("DNS", &dns).env("KUBECONFIG", cluster.admin_kubeconfig()?);
        let controllers = Process::start(&mut command, &log("cert-manager.log"))?;
        let _port_80 = port_80(fairway.http()).await?;
        Ok(Self { controllers, authority, root: root.to_owned(), _port_80 })
    }
}

/// The definitions of cert-manager's kinds, as its module has them.
async fn definitions() -> Result<Vec<PathBuf>> {
    let ask = ["list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager"];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(MODULE);
    let output = Command::new("go").args(ask).current_dir(folder).output().await?;
    let place = PathBuf::from(String::from_utf8(output.stdout)?.trim()).join("deploy/crds");
    let files = std::fs::read_dir(&place).with_context(|| format!("read {}", place.display()))?;
    let paths = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect())
}

/// Makes Fairway what answers at port 80 of the address that every name has.
async fn port_80(fairway: SocketAddr) -> Result<JoinSet<()>> {
    let listener = TcpListener::bind((HERE, 80)).await.context("listen at port 80")?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut server) = TcpStream::connect(fairway).await else { return };
                // Either end may have gone first.
                let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    Ok(tasks)
}

/// All that want a certificate: hosts, and the Ingress that says so.
fn wishes() -> Vec<(Vec<String>, String)> {
    let with_issuer = |name: &str, notes: &str| {
        let issuer = "annotations: {cert-manager.io/issuer: authority, ";
        application(name, notes).replace("annotations: {", issuer)
    };
    // Behind passthrough the application's own certificate is shown.
    let all = APPLICATIONS.iter().filter(|(name, _)| *name != "passed");
    let mut wishes: Vec<_> =
        all.map(|(name, notes)| (vec![format!("{name}.test")], with_issuer(name, notes))).collect();
    let edited = "force-ssl-redirect: 'true', acme.cert-manager.io/http01-edit-in-place: 'true'";
    wishes.push((vec!["edited.test".to_owned()], with_issuer("edited", edited)));
    let temporary = "ssl-redirect: 'false', cert-manager.io/issue-temporary-certificate: 'true'";
    wishes.push((vec!["temporary.test".to_owned()], with_issuer("temporary", temporary)));
    let both = with_issuer("site", "from-to-www-redirect: 'true'")
        .replace("hosts: [site.test]", "hosts: [site.test, www.site.test]");
    wishes.push((vec!["site.test".to_owned(), "www.site.test".to_owned()], both));
    wishes
}

/// Waits until nothing is left of any challenge.
async fn no_solver_is_left(cluster: &Cluster, fairway: &Fairway) -> Result<()> {
    let kind = GroupVersionKind::gvk("networking.k8s.io", "v1", "Ingress");
    let ingresses: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), "demo", &ApiResource::from_gvk(&kind));
    eventually("the solvers to be gone", PATIENCE, async || {
        let all = serde_json::to_string(&ingresses.list(&ListParams::default()).await?)?;
        ensure!(!all.contains("acme-challenge"), "{all}");
        let served = fairway.page("/configuration").await?.text();
        ensure!(!served.contains("cm-acme-http-solver"), "a challenge is still served");
        anyhow::Ok(())
    })
    .await
}

#[test]
#[ignore = "builds cert-manager and pebble from the Go module proxy: make ecosystem runs it"]
fn cert_manager_gets_certificates_whatever_applications_ask_for() {
    cluster::private_network(async || {
        let solver = Image::new(&go_programs(MODULE)?.join("acme")).args(["solver"]);
        let cluster =
            &Cluster::start(Images::default().with("fairway.test/solver", solver)).await?;
        addresses().await?;
        applications(cluster).await?;
        cluster.fairway_kubeconfig().await?;
        cluster.apply(closing_settings()).await?;
        let fairway = Fairway::start(cluster).await?;
        let bed = Bed::start(cluster, &fairway).await?;
        let wishes = wishes();
        for (_, ingress) in &wishes {
            cluster.apply(ingress).await?;
        }
        let patience = PATIENCE * 2;
        let mut count = 0;
        for host in wishes.iter().flat_map(|(hosts, _)| hosts) {
            eventually(format!("a certificate for {host}"), patience, async || {
                let shown = fairway.get_tls(host, "/", &bed.root).await;
                shown.with_context(|| bed.controllers.log().lines().last().unwrap_or("").to_owned())
            })
            .await?;
            count += 1;
        }
        no_solver_is_left(cluster, &fairway).await?;
        eprintln!("{count} hosts have certificates of the authority");
        let asked = bed.authority.log();
        ensure!(!asked.contains("invalid"), "the authority was refused at times: {asked}");
        fairway.stop().await
    });
}
