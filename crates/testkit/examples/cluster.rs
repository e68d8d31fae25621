//! A test cluster by hand: `cargo run -p testkit --example cluster [-- [--gateway-api] COMMAND...]`,
//! see tests/cluster/README.md.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Context, Result};
use testkit::cluster::{self, Cluster};
use testkit::kubelet::Images;

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

/// Runs the command of the command line, or waits for Ctrl-C.
async fn serve(cluster: &Cluster) -> Result<ExitCode> {
    let admin = cluster.admin_kubeconfig()?;
    let fairway = cluster.fairway_kubeconfig().await?;
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == "--gateway-api").is_some() {
        cluster.define(&cluster.gateway_api()?).await?;
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
