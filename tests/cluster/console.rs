//! The page in a cluster: `kubectl fairway top` asks a Pod through the API server's own proxy, with the token; and the
//! replicas are beside each other.

use anyhow::{Context, ensure};
use testkit::cluster::{self, eventually};
use tokio::process::Command;

use crate::fairway::{Fairway, PATIENCE, binary};
use crate::objects::one_host;
use crate::replicas::{pod_of_a_process, replica};

#[test]
fn top_asks_a_pod_through_the_api_server_with_the_token_and_not_without() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        pod_of_a_process(cluster, "fairway-0", testkit::kubelet::GATEWAY.into()).await?;
        let [own, other] =
            [("own", "the-token-of-this-fairway"), ("other", "a-token-of-another-one")]
                .map(|(name, token)| (cluster.folder().join(name), token));
        for (file, token) in [&own, &other] {
            std::fs::write(file, token)?;
        }
        let token = format!("--admin-token-file={}", own.0.display());
        let fairway = Fairway::start_with(cluster, &[&token, "--enable-metrics=true"]).await?;
        let kubeconfig = cluster.admin_kubeconfig()?;
        let port = fairway.health().port().to_string();
        let top = async |file: &std::path::Path| {
            let mut command = Command::new(binary());
            command.args([
                "top",
                "--pod",
                "fairway/fairway-0",
                "--healthz-port",
                &port,
                "--token-file",
            ]);
            command.arg(file).arg("--kubeconfig").arg(&kubeconfig).output().await.context("it runs")
        };
        let seen = top(&own.0).await?;
        let (page, errors) = (String::from_utf8(seen.stdout)?, String::from_utf8(seen.stderr)?);
        ensure!(seen.status.success() && page.contains("a.test/"), "{page}{errors}");
        let refused = top(&other.0).await?;
        let errors = String::from_utf8(refused.stderr)?;
        ensure!(
            !refused.status.success()
                && errors.lines().count() == 1
                && errors.contains("not the token"),
            "{errors}"
        );
        fairway.stop().await
    });
}

#[test]
fn the_replicas_are_beside_each_other_with_what_each_says_of_itself() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        pod_of_a_process(cluster, "fairway-0", testkit::kubelet::GATEWAY.into()).await?;
        // Another one, in whose Pod nobody listens at the admin port.
        replica(cluster, "fairway-b").await?;
        let fairway = Fairway::start_as(cluster, "fairway-0", &["--enable-metrics=true"]).await?;
        eventually("both replicas to be seen", PATIENCE, async || {
            let page = fairway.page("/api/v1/overview").await?;
            let overview: serde_json::Value = serde_json::from_slice(&page.body)?;
            let beside = &overview["replicas"];
            let rows = beside["rows"].as_array().context("rows")?;
            ensure!(rows.len() == 2, "{beside}");
            let (own, other) = (&rows[0], &rows[1]);
            ensure!(own["pod"] == "fairway-0" && own["here"] == true, "{own}");
            ensure!(own["leads"] == true && own["ready"] == true, "{own}");
            ensure!(own["same"] == true && own["unreached"].is_null(), "{own}");
            ensure!(own["version"].is_string() && own["memory"].as_u64() > Some(0), "{own}");
            ensure!(own["rate"].is_number() && own["connections"].is_number(), "{own}");
            ensure!(other["pod"] == "fairway-b" && other["ready"] == true, "{other}");
            ensure!(other["leads"] == false && other["here"] == false, "{other}");
            ensure!(other["node"].is_string() && other["since"].is_number(), "{other}");
            ensure!(other["unreached"].is_string() && other["same"].is_null(), "{other}");
            Ok(())
        })
        .await?;
        fairway.stop().await
    });
}
