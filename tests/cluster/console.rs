//! `kubectl fairway top`: a Pod is asked through the API server's own proxy, with the token.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::cluster::{self, Cluster};
use tokio::process::Command;

use crate::fairway::{Fairway, binary};
use crate::objects::one_host;

/// A Pod at the address where the process is that stands for it. Its node is nobody's, so that nobody starts it.
async fn pod_of_the_process(cluster: &Cluster) -> Result<()> {
    cluster.fairway_kubeconfig().await?;
    let yaml = "
apiVersion: v1
kind: Pod
metadata: {name: fairway-0, namespace: fairway}
spec:
  nodeName: elsewhere
  automountServiceAccountToken: false
  containers: [{name: main, image: fairway.test/none}]
";
    cluster::eventually("the Pod to be taken", crate::fairway::PATIENCE, async || {
        cluster.apply(yaml).await
    })
    .await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "fairway");
    let address = testkit::kubelet::GATEWAY.to_string();
    let status =
        json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
    pods.patch_status("fairway-0", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

#[test]
fn top_asks_a_pod_through_the_api_server_with_the_token_and_not_without() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        pod_of_the_process(cluster).await?;
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
