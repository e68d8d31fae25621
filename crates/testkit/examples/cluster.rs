//! A test cluster by hand: `cargo run -p testkit --example cluster [-- [--gateway-api] COMMAND...]`,
//! see tests/cluster/README.md.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Context, Result};
use kube::Api;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use testkit::cluster::{self, Cluster, eventually};
use testkit::kubelet::Images;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode> {
    if !cluster::is_private().await? {
        println!("process {} is in the network that is made now", std::process::id());
        let error = cluster::private_again()?.args(std::env::args_os().skip(1)).exec();
        return Err(error).context("start again in a private network");
    }
    let cluster = Cluster::start(Images::default()).await?;
    let code = serve(&cluster).await;
    cluster.stop().await?;
    code
}

/// Applies the definitions of the Gateway API, and waits until routes can be made.
async fn define(cluster: &Cluster) -> Result<()> {
    for definition in cluster.gateway_api()? {
        cluster.apply_value(&definition).await?;
    }
    let group = "gateway.networking.k8s.io";
    for kind in ["GatewayClass", "Gateway", "HTTPRoute"] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let all: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
        eventually(format!("the definition of {kind}"), PATIENCE, async || {
            all.list(&Default::default()).await
        })
        .await?;
    }
    Ok(())
}

/// Runs the command of the command line, or waits for Ctrl-C.
async fn serve(cluster: &Cluster) -> Result<ExitCode> {
    let admin = cluster.admin_kubeconfig()?;
    let fairway = cluster.fairway_kubeconfig().await?;
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == "--gateway-api").is_some() {
        define(cluster).await?;
    }
    if let Some(program) = words.next() {
        let mut command = tokio::process::Command::new(&program);
        command.args(words).env("KUBECONFIG", &admin).env("FAIRWAY_KUBECONFIG", &fairway);
        let status = command.status().await.with_context(|| format!("start {program:?}"))?;
        let code = u8::try_from(status.code().unwrap_or(1)).unwrap_or(1);
        return Ok(ExitCode::from(code));
    }
    println!("the API server is ready; the administrator's kubeconfig is {}", admin.display());
    println!("Fairway's kubeconfig is {}", fairway.display());
    println!("a shell in this network: see tests/cluster/README.md; Ctrl-C ends it all");
    tokio::signal::ctrl_c().await.context("wait for Ctrl-C")?;
    Ok(ExitCode::SUCCESS)
}
