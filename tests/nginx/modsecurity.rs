//! ModSecurity: who has it, which rules, what they look at, and where that is written down.

use crate::nginx::bed::{ALLOWED, Bed, header, ingress};
use anyhow::{Context, Result, ensure};
use testkit::exchange::Request;

/// What every set of core rules takes for an attack.
const ATTACK: &str = "/?q=%3Cscript%3Ealert(1)%3C/script%3E&file=../../../etc/passwd";
/// The engine refuses, with Debian's settings for the rest.
const REFUSE: &str = "Include /etc/nginx/modsecurity.conf\nSecRuleEngine On";
/// A rule of somebody.
const RULE: &str = "SecRuleEngine On\nSecRequestBodyAccess On\n\
    SecRule ARGS:secret \"@streq sesame\" \"id:1001,phase:2,deny,status:403,log,msg:'somebody knows'\"";

fn settings<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    ALLOWED.iter().chain(more).copied().collect()
}

/// The status of a form that is sent to the Ingress with a rule of its own.
async fn post(bed: &Bed, body: &str) -> Option<u16> {
    let form = ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned());
    let request = Request {
        url: "http://rule.test/".to_owned(),
        method: Some("POST".to_owned()),
        headers: vec![form],
        body: Some(body.to_owned()),
        ..Request::default()
    };
    bed.send(request).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_that_asks_for_modsecurity_has_it_and_the_others_do_not() -> Result<()> {
    let beside = testkit::builders::ingress("beside").host("core.test").path("/open", "echo:80");
    let on = |name: &str, host: &str| ingress(name, host).annotate("enable-modsecurity", "true");
    let objects = [
        on("watching", "watching.test").annotate("enable-owasp-core-rules", "true").build(),
        on("core", "core.test")
            .annotate("enable-owasp-core-rules", "true")
            .annotate("modsecurity-snippet", REFUSE)
            .annotate("modsecurity-transaction-id", "$request_id")
            .annotate("configuration-snippet", "more_set_headers \"X-Id: $request_id\";")
            .build(),
        beside.build(),
        on("rule", "rule.test").annotate("modsecurity-snippet", RULE).build(),
        // Rules alone do not turn it on.
        ingress("off", "off.test").annotate("modsecurity-snippet", RULE).build(),
    ];
    let mut bed = Bed::start(&settings(&[]), &objects, &[]).await?;
    bed.expect("core.test", "/?q=shoes", 200).await?;
    let refused = bed.expect("core.test", ATTACK, 403).await?;
    bed.expect("core.test", &format!("/open{}", &ATTACK[1..]), 200).await?;
    // Debian's settings say DetectionOnly.
    bed.expect("watching.test", ATTACK, 200).await?;
    bed.says(&["\"transaction\"", "watching.test", "DetectionOnly"]).await?;

    bed.expect("rule.test", "/?secret=shoes", 200).await?;
    bed.expect("rule.test", "/?secret=sesame", 403).await?;
    bed.expect("off.test", "/?secret=sesame", 200).await?;
    ensure!(post(&bed, "secret=sesame").await == Some(403));
    ensure!(post(&bed, "secret=shoes").await == Some(200));
    let id = header(&refused, "x-id").context("an id")?.to_owned();
    bed.says(&["ModSecurity: Access denied", "core.test", &format!("unique_id \"{id}\"")]).await?;

    // Loaded for everybody, and an Ingress that is stricter than Debian's settings.
    let everybody = [("enable-modsecurity", "true"), ("enable-owasp-modsecurity-crs", "true")];
    bed.configure(&settings(&everybody)).await?;
    bed.apply(&[ingress("strict", "strict.test")
        .annotate("modsecurity-snippet", "SecRuleEngine On")
        .build()])
        .await?;
    for (host, status) in [("strict.test", 403), ("core.test", 403), ("watching.test", 200)] {
        bed.expect(host, ATTACK, status).await?;
        bed.expect(host, "/?q=shoes", 200).await?;
    }
    bed.configure(&settings(&[
        ("enable-modsecurity", "true"),
        ("enable-owasp-modsecurity-crs", "true"),
        ("modsecurity-snippet", REFUSE),
    ]))
    .await?;
    let objects = [
        ingress("exempt", "exempt.test").annotate("enable-modsecurity", "false").build(),
        ingress("plain", "plain.test").build(),
    ];
    bed.apply(&objects).await?;
    for (host, status) in [("plain.test", 403), ("exempt.test", 200), ("off.test", 403)] {
        bed.expect(host, ATTACK, status).await?;
        bed.expect(host, "/?q=shoes", 200).await?;
    }
    // Rules of an Ingress count besides those of everybody.
    bed.expect("off.test", "/?secret=sesame", 403).await?;
    bed.expect("plain.test", "/?secret=sesame", 200).await?;
    bed.expect("core.test", &format!("/open{}", &ATTACK[1..]), 403).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_nobody_can_read_open_nothing() -> Result<()> {
    let objects = [
        ingress("plain", "plain.test").build(),
        ingress("exempt", "exempt.test").annotate("enable-modsecurity", "false").build(),
    ];
    let broken =
        settings(&[("enable-modsecurity", "true"), ("modsecurity-snippet", "SecNoSuchThing On")]);
    let mut bed = Bed::start(&broken, &objects, &[]).await?;
    bed.expect("plain.test", "/", 503).await?;
    bed.expect("exempt.test", "/", 200).await?;
    bed.says(&["ConfigMap", "modsecurity-snippet", "SecNoSuchThing", "503"]).await?;
    bed.configure(&settings(&[("enable-modsecurity", "true"), ("modsecurity-snippet", RULE)]))
        .await?;
    bed.expect("plain.test", "/?secret=sesame", 403).await?;
    // The rules before stay in force.
    bed.configure(&broken).await?;
    bed.expect("plain.test", "/?secret=sesame", 403).await?;
    bed.expect("plain.test", "/?secret=shoes", 200).await?;
    bed.says(&["ConfigMap", "modsecurity-snippet", "the one before stays"]).await
}
