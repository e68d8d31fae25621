//! Every kind of change in the cluster shows on the wire.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use testkit::cluster::{self, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{
    GROUND, ingress, ingress_with, one_host, pod, pod_behind_service, service, slice, tls_secret,
};

#[test]
fn an_ingress_that_comes_changes_and_goes() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        pod_behind_service(cluster, "a").await?;
        pod_behind_service(cluster, "b").await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.expect("a.test", "/", 404).await?;

        cluster.apply(&ingress("web", "a.test", "/", "a")).await?;
        fairway.answers("a.test", "/", 200).await?;
        cluster.apply(&ingress("web", "a.test", "/only", "a")).await?;
        fairway.answers("a.test", "/", 404).await?;
        fairway.expect("a.test", "/only", 200).await?;
        cluster.apply(&ingress("web", "a.test", "/only", "b")).await?;
        fairway.reaches("a.test", "/only", "b").await?;
        cluster.apply(&ingress("web", "b.test", "/", "b")).await?;
        fairway.answers("b.test", "/", 200).await?;
        fairway.answers("a.test", "/only", 404).await?;

        cluster.delete(&ingress("web", "b.test", "/", "b")).await?;
        fairway.answers("b.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn an_annotation_that_changes() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let plain = ingress("a", "a.test", "/", "a");
        let key = "nginx.ingress.kubernetes.io/rewrite-target";
        let rewritten = plain.replace(
            "namespace: demo}",
            &format!("namespace: demo, annotations: {{{key}: /elsewhere}}}}"),
        );
        let sees = async |uri: &str| {
            eventually(format!("the Pod to see {uri}"), PATIENCE, async || {
                let told = fairway.expect("a.test", "/asked", 200).await?.json()?;
                ensure!(told["uri"] == uri, "{told}");
                Ok(())
            })
            .await
        };
        sees("/asked").await?;
        cluster.apply(&rewritten).await?;
        sees("/elsewhere").await?;
        cluster.apply(&plain).await?;
        sees("/asked").await?;
        fairway.stop().await
    });
}

#[test]
fn a_service_that_comes_changes_its_port_and_goes() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let address = pod(cluster, "a").await?;
        cluster.apply(&ingress("web", "a.test", "/", "late")).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.expect("a.test", "/", 503).await?;

        cluster.apply(&service("late", 80)).await?;
        cluster.apply(&slice("late", address, true)).await?;
        fairway.answers("a.test", "/", 200).await?;
        cluster.apply(&service("late", 81)).await?;
        cluster
            .apply(&ingress("other", "b.test", "/", "late").replace("number: 80", "number: 81"))
            .await?;
        fairway.answers("b.test", "/", 200).await?;
        fairway.answers("a.test", "/", 503).await?;
        cluster.delete(&service("late", 81)).await?;
        fairway.answers("b.test", "/", 503).await?;
        fairway.stop().await
    });
}

#[test]
fn endpoints_that_move_fall_ill_recover_and_go() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let (a, b) = (pod(cluster, "a").await?, pod(cluster, "b").await?);
        let fairway = Fairway::start(cluster).await?;
        fairway.reaches("a.test", "/", "a").await?;
        cluster.apply(&slice("a", b, true)).await?;
        fairway.reaches("a.test", "/", "b").await?;
        cluster.apply(&slice("a", b, false)).await?;
        fairway.answers("a.test", "/", 503).await?;
        cluster.apply(&slice("a", a, true)).await?;
        fairway.reaches("a.test", "/", "a").await?;
        cluster.delete(&slice("a", a, true)).await?;
        fairway.answers("a.test", "/", 503).await?;
        fairway.stop().await
    });
}

#[test]
fn a_secret_that_is_rotated_deleted_and_made_again() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let tls = "ingressClassName: nginx\n  tls: [{hosts: [a.test], secretName: cert}]";
        cluster.apply(&ingress_with("a", tls, "a.test", "/", "a")).await?;
        let certificate = || generate_simple_self_signed(vec!["a.test".to_owned()]);
        let rotate = async |made: &CertifiedKey<rcgen::KeyPair>| {
            let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
            cluster.apply(&tls_secret("cert", &pem, &key)).await
        };
        let (first, second) = (certificate()?, certificate()?);
        rotate(&first).await?;
        let fairway = Fairway::start(cluster).await?;
        let shows = async |made: &CertifiedKey<rcgen::KeyPair>| {
            let authority = made.cert.pem();
            eventually("the certificate", PATIENCE, async || {
                let answer = fairway.get_tls("a.test", "/", &authority).await?;
                ensure!(answer.status == 200, "{}", answer.status);
                Ok(())
            })
            .await
        };
        fairway.get_tls("a.test", "/", &first.cert.pem()).await?;
        rotate(&second).await?;
        shows(&second).await?;
        let old = fairway.get_tls("a.test", "/", &first.cert.pem()).await;
        ensure!(old.is_err(), "the old certificate is still shown");

        cluster.delete(&tls_secret("cert", "", "")).await?;
        eventually("another certificate", PATIENCE, async || {
            let shown = fairway.get_tls("a.test", "/", &second.cert.pem()).await;
            ensure!(shown.is_err(), "the certificate of a deleted Secret is still shown");
            Ok(())
        })
        .await?;
        rotate(&first).await?;
        shows(&first).await?;
        fairway.stop().await
    });
}

#[test]
fn the_configmap_that_comes_changes_and_goes() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let made = generate_simple_self_signed(vec!["a.test".to_owned()])?;
        let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        cluster.apply(&tls_secret("cert", &pem, &key)).await?;
        let tls = "ingressClassName: nginx\n  tls: [{hosts: [a.test], secretName: cert}]";
        cluster.apply(&ingress_with("a", tls, "a.test", "/", "a")).await?;
        let fairway = Fairway::start(cluster).await?;
        let config = |redirect: bool| {
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: fairway, namespace: fairway}}, \
                 data: {{ssl-redirect: '{redirect}'}}}}"
            )
        };
        fairway.expect("a.test", "/", 308).await?;
        cluster.apply(&config(false)).await?;
        fairway.answers("a.test", "/", 200).await?;
        cluster.apply(&config(true)).await?;
        fairway.answers("a.test", "/", 308).await?;
        cluster.apply(&config(false)).await?;
        fairway.answers("a.test", "/", 200).await?;
        cluster.delete(&config(false)).await?;
        fairway.answers("a.test", "/", 308).await?;
        fairway.says("ConfigMap fairway/fairway: it is gone, and --configmap names it").await?;
        fairway.stop().await
    });
}

#[test]
fn an_object_that_means_nothing_stops_no_other() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let key = "nginx.ingress.kubernetes.io/proxy-read-timeout";
        let strange = ingress("strange", "strange.test", "/", "nowhere").replace(
            "namespace: demo}",
            &format!("namespace: demo, annotations: {{{key}: 'as long as it takes'}}}}"),
        );
        cluster.apply(&strange).await?;
        cluster.apply(&ingress("next", "next.test", "/", "a")).await?;
        fairway.answers("next.test", "/", 200).await?;
        fairway.expect("a.test", "/", 200).await?;
        fairway.stop().await
    });
}

#[test]
fn a_service_that_gains_and_loses_its_second_address_family() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let v4 = pod(cluster, "a").await?.to_string();
        let pods: Api<Pod> = Api::namespaced(cluster.client(), "demo");
        let addresses = pods.get("a").await?.status.and_then(|status| status.pod_ips);
        let v6 = addresses.into_iter().flatten().find(|address| address.ip.contains(':'));
        let v6 = v6.context("this kernel is without IPv6: enable it to run this test")?.ip;
        let families = |policy: &str, families: &str| {
            format!(
                "{{apiVersion: v1, kind: Service, metadata: {{name: dual, namespace: demo}}, spec: \
                 {{selector: {{pod: a}}, ipFamilyPolicy: {policy}, ipFamilies: [{families}], \
                 ports: [{{port: 80, targetPort: web}}]}}}}"
            )
        };
        cluster.apply(&families("SingleStack", "IPv4")).await?;
        cluster.apply(&ingress("dual", "dual.test", "/", "dual")).await?;
        let fairway = Fairway::start(cluster).await?;
        let reaches = async |wanted: &[&str]| {
            eventually(format!("{wanted:?} to be reached"), PATIENCE, async || {
                let mut reached = BTreeSet::new();
                for _ in 0..10 {
                    let told = fairway.expect("dual.test", "/", 200).await?.json()?;
                    reached.insert(told["address"].as_str().unwrap_or_default().to_owned());
                }
                ensure!(reached.iter().eq(wanted), "reached {reached:?}");
                Ok(())
            })
            .await
        };
        reaches(&[&v4]).await?;
        cluster.apply(&families("RequireDualStack", "IPv4, IPv6")).await?;
        reaches(&[&v4, &v6]).await?;
        cluster.apply(&families("SingleStack", "IPv4")).await?;
        reaches(&[&v4]).await?;
        fairway.stop().await
    });
}
