//! What nginx cannot do is said: which key or flag, and what to do instead. Guards among it close.

use crate::nginx::bed::{Bed, ingress};
use anyhow::{Result, ensure};
use serde_json::Value;

/// An Ingress whose authenticator answers with a status that has an error page of its own.
fn refused(name: &str, status: &str) -> Value {
    let url = format!("http://auth.demo.svc.cluster.local/auth?status={status}");
    ingress(name, &format!("{name}.test"))
        .annotate("auth-url", &url)
        .annotate("custom-http-errors", "401,403,500")
        .annotate("default-backend", "echo-b")
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nginx_cannot_do_is_said_and_opens_nothing() -> Result<()> {
    let secret = tempfile::NamedTempFile::new()?;
    let flag = format!("--trace-secret-file={}", secret.path().display());
    let objects = [
        ingress("traced", "traced.test").annotate("enable-opentelemetry", "true").build(),
        ingress("plain", "plain.test").build(),
        // Their error pages are a 200 (CVE-2026-24513).
        refused("unknown", "401"),
        refused("forbidden", "403"),
        refused("failing", "500"),
    ];
    let settings = [
        ("custom-http-errors", "401,403,500"),
        ("enable-opentelemetry", "true"),
        ("lua-shared-dicts", "mine:5,wrong:9999"),
    ];
    let bed = Bed::start(&settings, &objects, &[&flag, "--memory-limit=1000000000"]).await?;
    bed.expect("traced.test", "/", 200).await?;
    bed.expect("plain.test", "/", 200).await?;
    for host in ["unknown.test", "forbidden.test", "failing.test"] {
        let _before = bed.upstreams.journal.drain();
        let answer = bed.get(host, "/").await;
        let reached = bed.upstreams.journal.drain();
        let services: Vec<&str> = reached.iter().map(|seen| seen.service.as_str()).collect();
        ensure!(services == ["auth", "echo-b"], "{host} reaches {services:?}: {answer:?}");
    }
    bed.says(&["--trace-secret-file has no effect"]).await?;
    bed.says(&["--memory-limit has no effect"]).await?;
    bed.says(&["ConfigMap", "enable-opentelemetry", "no effect", "--engine=native"]).await?;
    bed.says(&["Ingress demo/traced", "enable-opentelemetry", "no effect", "--engine=native"])
        .await?;
    bed.says(&["ConfigMap", "lua-shared-dicts", "wrong:9999"]).await
}
