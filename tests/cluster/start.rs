//! Ready means: everything that existed at the start is being served.

use anyhow::{Context, Result, ensure};
use testkit::cluster;

use crate::fairway::Fairway;
use crate::objects::{GROUND, numbered, one_host, pod_behind_service};

#[test]
fn with_no_ingress_it_is_ready_and_answers_404() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.expect("a.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn with_one_ingress_the_first_request_after_ready_is_served() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let told = fairway.expect("a.test", "/first", 200).await?.json()?;
        ensure!(told["pod"] == "a" && told["uri"] == "/first", "{told}");
        fairway.expect("other.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn with_a_thousand_ingresses_every_one_is_served_as_soon_as_it_is_ready() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        pod_behind_service(cluster, "a").await?;
        cluster.create_all((0..1000).map(numbered)).await?;
        let fairway = Fairway::start(cluster).await?;
        for number in 0..1000 {
            let host = format!("host-{number}.test");
            let served = fairway.expect(&host, "/", 200).await;
            served.with_context(|| format!("after {number} of 1000 hosts"))?;
        }
        fairway.expect("host-1000.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn without_an_api_server_it_is_not_ready_and_becomes_so_when_there_is_one() {
    cluster::test(async |cluster| -> Result<()> {
        one_host(cluster).await?;
        cluster.wire().down();
        let mut fairway = Fairway::begin(cluster, &[]).await?;
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
        for _ in 0..30 {
            looks.tick().await;
            ensure!(fairway.healthy().await.is_err(), "ready without ever having seen the cluster");
        }
        let why = fairway.healthy().await.err().context("ready")?.to_string();
        ensure!(why.contains("the first configuration (the API server: "), "{why}");
        cluster.wire().up();
        fairway.ready().await?;
        fairway.expect("a.test", "/", 200).await?;
        fairway.stop().await
    });
}

#[test]
fn what_flags_and_environment_name_has_to_be_there() {
    const OWN: [(&str, &str); 2] = [("POD_NAMESPACE", "fairway"), ("POD_NAME", "fairway-0")];
    const INSIDE: [(&str, &str); 1] = [("KUBERNETES_SERVICE_HOST", "127.0.0.1")];
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let kubeconfig = cluster.fairway_kubeconfig().await?;
        type Environment = &'static [(&'static str, &'static str)];
        let cases: [(Environment, &[&str], &str); 6] = [
            (
                &[],
                &["--publish-service=demo/none"],
                "there is no Service demo/none; create it, or name another with --publish-service",
            ),
            (
                &[],
                &["--default-backend-service=demo/none"],
                "there is no Service demo/none; create it, or name another with --default-backend-service",
            ),
            (
                &[],
                &["--watch-namespace=none"],
                "there is no namespace none; create it, or name another with --watch-namespace",
            ),
            (
                &[],
                &["--publish-service=demo/a", "--publish-status-address=192.0.2.1"],
                "--publish-service and --publish-status-address exclude each other; give one of them",
            ),
            (
                &INSIDE,
                &[],
                "POD_NAME and POD_NAMESPACE are not set: let the Pod have them as environment variables, from metadata.name and metadata.namespace",
            ),
            (
                &OWN,
                &[],
                "cannot read Pod fairway/fairway-0, which POD_NAMESPACE and POD_NAME say this is: 404 NotFound: pods \"fairway-0\" not found",
            ),
        ];
        for (environment, flags, expected) in cases {
            let mut fairway = Fairway::begin_with(cluster, &kubeconfig, environment, flags)?;
            let ended =
                tokio::time::timeout(crate::fairway::PATIENCE, fairway.process().ended()).await;
            let ended = ended.with_context(|| format!("{flags:?} is taken"))??;
            let log = fairway.process().log();
            let last = log.lines().last().unwrap_or_default();
            ensure!(
                ended.code() == Some(1) && last == format!("fairway: {expected}"),
                "{ended} {last}"
            );
        }
        Ok(())
    });
}
