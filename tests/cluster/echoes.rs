//! The fixtures of the recorded exchanges as endpoints of a real cluster, at addresses of this machine.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use testkit::certificates::Certificates;
use testkit::cluster::Cluster;
use testkit::fixtures::{Places, secrets, service_objects};
use testkit::upstreams::Upstreams;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::objects::GROUND;

/// An address of this machine that is not its loopback one, which no slice may have.
pub(crate) const HERE: &str = "10.77.0.1";

/// Starts the fixtures, and applies namespace and class, these Services of theirs, and the Secret `tls-test`.
pub(crate) async fn echoes(cluster: &Cluster, services: &[&str]) -> Result<Upstreams> {
    addresses().await?;
    let certificates = Certificates::shared();
    let upstreams = Upstreams::start(&certificates, Places::recorded()).await?;
    cluster.apply(GROUND).await?;
    let named = |name: &str| {
        services.iter().any(|service| name == *service || name == format!("{service}-0"))
    };
    let all = service_objects(&upstreams.places).into_iter().chain(secrets(&certificates));
    for object in all {
        let name = object["metadata"]["name"].as_str().context("an object without a name")?;
        if named(name) || name == "tls-test" {
            cluster.apply_value(&object).await?;
        }
    }
    Ok(upstreams)
}

/// Gives the loopback interface the addresses of the fixtures.
pub(crate) async fn addresses() -> Result<()> {
    let lines: String =
        (1..=40).map(|last| format!("address add 10.77.0.{last}/32 dev lo\n")).collect();
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .context("start ip")?;
    child.stdin.take().context("ip takes no input")?.write_all(lines.as_bytes()).await?;
    ensure!(child.wait().await?.success(), "the loopback interface takes no addresses");
    Ok(())
}
