//! Faults of the control plane and of single objects; tests/faults/table.tsv says which test stands for which fault.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use testkit::cluster::{self, Cluster, eventually};

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{
    GROUND, ingress, ingress_with, one_host, pod, pod_behind_service, service, slice, tls_secret,
};

#[test]
fn etcd_stands_still_for_a_while() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("a.test");
        cluster.freeze_etcd(true)?;
        let new = ingress("new", "new.test", "/", "a");
        let refused = tokio::time::timeout(Duration::from_secs(3), cluster.apply(&new)).await;
        ensure!(!matches!(refused, Ok(Ok(()))), "nothing can be written without etcd");
        fairway.healthy().await.context("that is no reason to be unhealthy")?;
        cluster.freeze_etcd(false)?;
        eventually("the API server to write again", PATIENCE, async || cluster.apply(&new).await)
            .await?;
        fairway.answers("new.test", "/", 200).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn an_api_server_that_answers_late_delays_changes_and_nothing_else() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("a.test");
        for number in 0..3 {
            cluster.freeze_apiserver(true)?;
            #[expect(clippy::disallowed_methods, reason = "a fault that lasts two seconds")]
            tokio::time::sleep(Duration::from_secs(2)).await;
            fairway.healthy().await?;
            fairway.expect("a.test", "/", 200).await?;
            cluster.freeze_apiserver(false)?;
            let host = format!("late-{number}.test");
            cluster.apply(&ingress(&format!("late-{number}"), &host, "/", "a")).await?;
            fairway.answers(&host, "/", 200).await?;
        }
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn a_fairway_that_was_suspended_goes_on_with_what_happened_meanwhile() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        pod_behind_service(cluster, "b").await?;
        cluster.apply(&ingress("gone", "gone.test", "/", "b")).await?;
        let fairway = Fairway::start(cluster).await?;
        // Requests wait for ten seconds.
        let traffic = fairway.traffic("a.test");
        fairway.freeze(true)?;
        cluster.delete(&ingress("gone", "gone.test", "/", "b")).await?;
        cluster.apply(&ingress("new", "new.test", "/", "b")).await?;
        cluster.wire().cut();
        #[expect(clippy::disallowed_methods, reason = "a fault that lasts five seconds")]
        tokio::time::sleep(Duration::from_secs(5)).await;
        fairway.freeze(false)?;
        fairway.answers("new.test", "/", 200).await?;
        fairway.answers("gone.test", "/", 404).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn what_is_made_anew_has_nothing_of_what_had_its_name() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let key = "nginx.ingress.kubernetes.io/allowlist-source-range";
        let plain = ingress("again", "again.test", "/", "a");
        let closed = plain.replace(
            "namespace: demo}",
            &format!("namespace: demo, annotations: {{{key}: 192.0.2.0/24}}}}"),
        );
        cluster.apply(&closed).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.expect("again.test", "/", 403).await?;
        for (yaml, status) in [(&plain, 200), (&closed, 403), (&plain, 200)] {
            cluster.delete(&plain).await?;
            cluster.apply(yaml).await?;
            fairway.answers("again.test", "/", status).await?;
        }
        fairway.stop().await
    });
}

#[test]
fn endpoints_that_flap_disturb_nobody_else() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        pod_behind_service(cluster, "b").await?;
        cluster.apply(&ingress("b", "b.test", "/", "b")).await?;
        let address = pod(cluster, "b").await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.answers("b.test", "/", 200).await?;
        let traffic = fairway.traffic("a.test");
        for number in 0..200 {
            cluster.apply(&slice("b", address, number % 2 == 0)).await?;
        }
        // The last one says that it is not ready.
        fairway.answers("b.test", "/", 503).await?;
        cluster.apply(&slice("b", address, true)).await?;
        fairway.answers("b.test", "/", 200).await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn an_endpoint_that_moves_from_slice_to_slice_is_never_missed() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let address = pod(cluster, "a").await?;
        let second = slice("a", address, true).replace("{name: a,", "{name: a-second,");
        let fairway = Fairway::start(cluster).await?;
        let traffic = fairway.traffic("a.test");
        for _ in 0..10 {
            cluster.apply(&second).await?;
            cluster.delete(&slice("a", address, true)).await?;
            cluster.apply(&slice("a", address, true)).await?;
            cluster.delete(&second).await?;
        }
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn pods_that_are_leaving_are_asked_only_while_nobody_else_is_left() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let (a, b) = (pod(cluster, "a").await?, pod(cluster, "b").await?);
        cluster.apply(&service("web", 80)).await?;
        cluster.apply(&ingress("web", "web.test", "/", "web")).await?;
        let leaving = |address: IpAddr| {
            slice("web", address, false)
                .replace("serving: false", "serving: true, terminating: true")
                .replace("{name: web,", "{name: web-leaving,")
        };
        cluster.apply(&leaving(a)).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.reaches("web.test", "/", "a").await?;
        cluster.apply(&slice("web", b, true)).await?;
        fairway.reaches("web.test", "/", "b").await?;
        for _ in 0..30 {
            let told = fairway.expect("web.test", "/", 200).await?.json()?;
            ensure!(told["pod"] == "b", "a Pod that is leaving was asked: {told}");
        }
        cluster.delete(&slice("web", b, true)).await?;
        fairway.reaches("web.test", "/", "a").await?;
        fairway.stop().await
    });
}

#[test]
fn a_pair_stays_in_use_until_a_certificate_and_a_key_belong_together_again() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let tls = "ingressClassName: nginx\n  tls: [{hosts: [a.test], secretName: cert}]";
        cluster.apply(&ingress_with("a", tls, "a.test", "/", "a")).await?;
        let made = || generate_simple_self_signed(vec!["a.test".to_owned()]);
        let (first, second) = (made()?, made()?);
        let pem = |made: &CertifiedKey<rcgen::KeyPair>| {
            (made.cert.pem(), made.signing_key.serialize_pem())
        };
        let ((old, old_key), (new, new_key)) = (pem(&first), pem(&second));
        cluster.apply(&tls_secret("cert", &old, &old_key)).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.get_tls("a.test", "/", &old).await?;
        // The API server takes any certificate with any key.
        cluster.apply(&tls_secret("cert", &new, &old_key)).await?;
        eventually("the mistake to be told", PATIENCE, async || {
            let wanted = "does not belong to tls.crt";
            ensure!(fairway.said().contains(wanted), "nothing was said: {}", fairway.said());
            let shown = fairway.get_tls("a.test", "/", &new).await;
            ensure!(shown.is_err(), "half of a pair is shown");
            fairway.get_tls("a.test", "/", &old).await
        })
        .await?;
        fairway.healthy().await?;
        cluster.apply(&tls_secret("cert", &new, &new_key)).await?;
        eventually("the new pair", PATIENCE, async || fairway.get_tls("a.test", "/", &new).await)
            .await?;
        fairway.stop().await
    });
}

#[test]
fn a_certificate_that_has_expired_is_shown_all_the_same() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let tls = "ingressClassName: nginx\n  tls: [{hosts: [a.test], secretName: cert}]";
        cluster.apply(&ingress_with("a", tls, "a.test", "/", "a")).await?;
        let mut old = rcgen::CertificateParams::new(vec!["a.test".to_owned()])?;
        (old.not_before, old.not_after) =
            (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
        let key = rcgen::KeyPair::generate()?;
        let pem = old.self_signed(&key)?.pem();
        cluster.apply(&tls_secret("cert", &pem, &key.serialize_pem())).await?;
        let fairway = Fairway::start(cluster).await?;
        let Err(refused) = fairway.get_tls("a.test", "/", &pem).await else {
            anyhow::bail!("the client takes a certificate of 2020");
        };
        ensure!(format!("{refused:#}").to_lowercase().contains("expired"), "{refused:#}");
        fairway.stop().await
    });
}

#[test]
fn an_ingress_that_waits_for_its_finalizer_goes_with_its_object() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let held = ingress("held", "held.test", "/", "a")
            .replace("namespace: demo}", "namespace: demo, finalizers: [example.test/hold]}");
        cluster.apply(&held).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.expect("held.test", "/", 200).await?;
        let ingresses: Api<Ingress> = Api::namespaced(cluster.client(), "demo");
        ingresses.delete("held", &DeleteParams::default()).await?;
        cluster.apply(&ingress("mark", "mark.test", "/", "a")).await?;
        fairway.answers("mark.test", "/", 200).await?;
        // The object is there until whoever holds it lets go, as with ingress-nginx.
        fairway.expect("held.test", "/", 200).await?;
        let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        ingresses.patch("held", &PatchParams::default(), &released).await?;
        fairway.answers("held.test", "/", 404).await?;
        fairway.stop().await
    });
}

#[test]
fn what_is_changed_and_changed_back_at_once_ends_as_it_was() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let fairway = Fairway::start(cluster).await?;
        let there = ingress("web", "web.test", "/", "a");
        let elsewhere = ingress("web", "web.test", "/only", "a");
        for _ in 0..20 {
            cluster.apply(&there).await?;
            cluster.apply(&elsewhere).await?;
        }
        fairway.answers("web.test", "/", 404).await?;
        fairway.expect("web.test", "/only", 200).await?;
        cluster.apply(&there).await?;
        fairway.answers("web.test", "/", 200).await?;
        fairway.stop().await
    });
}

/// Rights without IngressClasses, for ServiceAccount `poor`.
const POOR: &str = "
{apiVersion: v1, kind: ServiceAccount, metadata: {name: poor, namespace: fairway}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: poor}
rules:
- {apiGroups: [networking.k8s.io], resources: [ingresses], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [''], resources: [services, secrets, configmaps, namespaces], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: poor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: poor}
subjects: [{kind: ServiceAccount, name: poor, namespace: fairway}]
";

#[test]
fn a_kind_that_may_not_be_listed_is_told_and_the_rest_is_served() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        cluster.fairway_kubeconfig().await?;
        cluster.apply(POOR).await?;
        let key = "kubernetes.io/ingress.class";
        let by_annotation = ingress_with("old", "", "old.test", "/", "a").replace(
            "namespace: demo}",
            &format!("namespace: demo, annotations: {{{key}: nginx}}}}"),
        );
        cluster.apply(&by_annotation).await?;
        let kubeconfig = cluster.kubeconfig_of("fairway", "poor").await?;
        let one_namespace = ["--watch-namespace", "demo"];
        let mut fairway = Fairway::begin_as(cluster, &kubeconfig, &one_namespace)?;
        fairway.ready().await?;
        fairway.answers("old.test", "/", 200).await?;
        ensure!(fairway.said().contains("ingressclasses"), "it does not say what it may not do");
        fairway.stop().await
    });
}

/// The right to IngressClasses, for ServiceAccount `poor`.
const CLASSES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: poor-classes}
rules: [{apiGroups: [networking.k8s.io], resources: [ingressclasses], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: poor-classes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: poor-classes}
subjects: [{kind: ServiceAccount, name: poor, namespace: fairway}]
";

#[test]
fn a_replica_without_the_right_to_classes_that_ingresses_name_is_not_ready() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        cluster.fairway_kubeconfig().await?;
        cluster.apply(POOR).await?;
        let kubeconfig = cluster.kubeconfig_of("fairway", "poor").await?;
        let mut fairway = Fairway::begin_as(cluster, &kubeconfig, &["--enable-metrics"])?;
        eventually("it to say what it waits for", PATIENCE, async || {
            let page = fairway.page("/healthz").await?;
            let wanted = "waiting for the first configuration (IngressClass: 403 Forbidden)\n";
            ensure!(page.status == 500 && page.text() == wanted, "{}", page.text());
            let page = fairway.page("/metrics").await?.text();
            let lost = "fairway_watch_synced{kind=\"IngressClass\"} 0";
            ensure!(page.lines().any(|line| line == lost), "{page}");
            Ok(())
        })
        .await?;
        ensure!(fairway.said().contains("list and watch ingressclasses"), "no remedy");
        cluster.apply(CLASSES).await?;
        fairway.ready().await?;
        fairway.answers("a.test", "/", 200).await?;
        fairway.stop().await
    });
}

/// The right to Secrets, for ServiceAccount `poor`.
const SECRETS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: poor-secrets}
rules: [{apiGroups: [''], resources: [secrets], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: poor-secrets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: poor-secrets}
subjects: [{kind: ServiceAccount, name: poor, namespace: fairway}]
";

#[test]
fn what_is_waited_for_is_said_and_a_right_that_comes_late_counts_within_seconds() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        cluster.fairway_kubeconfig().await?;
        cluster.apply(&POOR.replace("services, secrets, ", "services, ")).await?;
        cluster.apply(CLASSES).await?;
        let kubeconfig = cluster.kubeconfig_of("fairway", "poor").await?;
        let mut fairway = Fairway::begin_as(cluster, &kubeconfig, &["--enable-metrics"])?;
        eventually("it to say what it waits for", PATIENCE, async || {
            let page = fairway.page("/healthz").await?;
            let wanted = "waiting for the first configuration (Secret: 403 Forbidden)\n";
            ensure!(page.status == 500 && page.text() == wanted, "{}", page.text());
            let page = fairway.page("/metrics").await?.text();
            let lost = page.lines().any(|line| line == "fairway_watch_synced{kind=\"Secret\"} 0");
            ensure!(lost, "{page}");
            Ok(())
        })
        .await?;
        cluster.apply(SECRETS).await?;
        let began = std::time::Instant::now();
        fairway.ready().await?;
        ensure!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        fairway.stop().await
    });
}

/// A token of ServiceAccount `fairway` that dies with Secret `bond`.
async fn mortal_token(cluster: &Cluster) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "fairway");
    let bond = BoundObjectReference {
        kind: Some("Secret".to_owned()),
        api_version: Some("v1".to_owned()),
        name: Some("bond".to_owned()),
        uid: None,
    };
    let spec = TokenRequestSpec {
        expiration_seconds: Some(3600),
        bound_object_ref: Some(bond),
        ..Default::default()
    };
    let wanted = TokenRequest { spec: Some(spec), ..Default::default() };
    let made = accounts.create_token_request("fairway", &Default::default(), &wanted).await?;
    let token = made.status.and_then(|status| status.token);
    token.context("a token request without a token")
}

#[test]
#[ignore = "a minute: so long is a token remembered; make faults runs it"]
fn a_token_that_is_no_longer_good_is_read_again_from_its_file() {
    cluster::test(async |cluster| {
        const BOND: &str =
            "{apiVersion: v1, kind: Secret, metadata: {name: bond, namespace: fairway}}";
        one_host(cluster).await?;
        let kubeconfig = cluster.fairway_kubeconfig().await?;
        cluster.apply(BOND).await?;
        let file = cluster.folder().join("token");
        std::fs::write(&file, mortal_token(cluster).await?)?;
        let text = std::fs::read_to_string(&kubeconfig)?;
        let start = text.find("\"token\"").or(text.find("token:")).context("a token")?;
        let end = start + text[start..].find(['\n', '}']).context("its end")?;
        let from_file = if text[start..].starts_with('"') {
            format!("\"tokenFile\": \"{}\"", file.display())
        } else {
            format!("tokenFile: {}", file.display())
        };
        std::fs::write(&kubeconfig, [&text[..start], &from_file, &text[end..]].concat())?;
        let mut fairway = Fairway::begin_as(cluster, &kubeconfig, &[])?;
        fairway.ready().await?;
        let traffic = fairway.traffic("a.test");
        cluster.delete(BOND).await?;
        cluster.apply(BOND).await?;
        std::fs::write(&file, mortal_token(cluster).await?)?;
        // Only new requests show their token.
        cluster.wire().cut();
        cluster.apply(&ingress("new", "new.test", "/", "a")).await?;
        eventually("the new token to be used", Duration::from_secs(120), async || {
            fairway.expect("new.test", "/", 200).await
        })
        .await?;
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn a_pod_that_vanishes_without_a_word_is_passed_over() {
    cluster::test(async |cluster| {
        cluster.apply(GROUND).await?;
        let (a, b) = (pod(cluster, "a").await?, pod(cluster, "b").await?);
        let both = slice("web", a, true).replace(
            "endpoints: [",
            &format!("endpoints: [{{addresses: [{b}], conditions: {{ready: true}}}}, "),
        );
        cluster.apply(&service("web", 80)).await?;
        cluster.apply(&both).await?;
        let prefix = "nginx.ingress.kubernetes.io/proxy";
        let quick = ingress("web", "web.test", "/", "web").replace(
            "namespace: demo}",
            &format!(
                "namespace: demo, annotations: {{{prefix}-connect-timeout: '1', {prefix}-read-timeout: '2'}}}}"
            ),
        );
        cluster.apply(&quick).await?;
        let fairway = Fairway::start(cluster).await?;
        fairway.reaches("web.test", "/", "a").await?;
        fairway.reaches("web.test", "/", "b").await?;
        // The cable of the first Pod: its connections are neither closed nor reset.
        let IpAddr::V4(address) = a else { anyhow::bail!("{a} is not the first address") };
        let [_, _, high, low] = address.octets();
        let link = format!("pod{}", u16::from_be_bytes([high, low]));
        let mut ip = tokio::process::Command::new("ip");
        let down = ip.args(["link", "set", &link, "down"]).status().await?;
        ensure!(down.success(), "{link} cannot be taken down");
        for _ in 0..6 {
            let began = tokio::time::Instant::now();
            let told = fairway.expect("web.test", "/", 200).await?.json()?;
            ensure!(told["pod"] == "b", "{told}");
            ensure!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
        }
        fairway.stop().await
    });
}
