//! Snippets at every level, seen by requests; those that are not allowed, and those that nginx does not take.

use crate::nginx::bed::{ALLOWED, Bed, header, ingress};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testkit::exchange::{Answer, Body, Request};

/// One snippet of each level that the ConfigMap has.
const LEVELS: [(&str, &str); 6] = [
    ("main-snippet", "env LEVEL=main;"),
    ("http-snippet", "map $http_x_color $color { default none; red rot; }"),
    ("server-snippet", "location = /of-every-server { return 200 every; }"),
    ("location-snippet", "more_set_headers \"X-Location: $color\";"),
    ("global-auth-snippet", "proxy_set_header X-Asked-By everybody;"),
    ("stream-snippet", "upstream nobody { server 127.0.0.1:1; }"),
];
const AUTHENTICATOR: &str = "http://auth.demo.svc.cluster.local/auth";

fn settings<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    ALLOWED.iter().chain(more).copied().collect()
}

fn with_snippets() -> Value {
    ingress("own", "own.test")
        .annotate("server-snippet", "location = /of-this-server { return 200 this; }")
        .annotate(
            "configuration-snippet",
            "set_by_lua_block $level { return os.getenv(\"LEVEL\") }\n\
             more_set_headers \"X-Configuration: $level\" \"X-Who: $namespace/$ingress_name\";",
        )
        .annotate("stream-snippet", "upstream somebody { server 127.0.0.1:1; }")
        .build()
}

fn asking() -> [Value; 2] {
    let own = ingress("asking", "asking.test")
        .annotate("auth-url", AUTHENTICATOR)
        .annotate("auth-snippet", "proxy_set_header X-Asked-By itself;");
    let everybody = ingress("asked", "asked.test");
    [own.build(), everybody.build()]
}

fn text(answer: &Answer) -> Option<&str> {
    match answer.body.as_ref()? {
        Body::Text(text) => Some(text),
        Body::Digest { .. } => None,
    }
}

/// What the authenticator was told in X-Asked-By for a request.
async fn asked_by(bed: &Bed, host: &str) -> Result<Option<String>> {
    let _before = bed.upstreams.journal.drain();
    bed.expect(host, "/", 200).await?;
    let seen = bed.upstreams.journal.drain();
    let question = seen.into_iter().find(|seen| seen.service == "auth");
    let headers = question.context("the authenticator is asked")?.headers.unwrap_or_default();
    Ok(headers.into_iter().find(|(name, _)| name == "X-Asked-By").map(|(_, value)| value))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snippet_counts_at_its_level_where_it_is_allowed_and_nowhere_else() -> Result<()> {
    let [asking, asked] = asking();
    let objects = [with_snippets(), asking, asked, ingress("other", "other.test").build()];
    let mut bed = Bed::start(&settings(&LEVELS), &objects, &[]).await?;
    let own = bed.expect("own.test", "/", 200).await?;
    ensure!(header(&own, "x-configuration") == Some("main"), "{own:?}");
    ensure!(header(&own, "x-who") == Some("demo/own"), "{own:?}");
    let other = bed.expect("other.test", "/", 200).await?;
    ensure!(header(&other, "x-location") == Some("none"), "{other:?}");
    ensure!(header(&other, "x-configuration").is_none(), "{other:?}");
    for (host, target, body) in [
        ("own.test", "/of-this-server", "this"),
        ("own.test", "/of-every-server", "every"),
        ("other.test", "/of-every-server", "every"),
    ] {
        let answer = bed.expect(host, target, 200).await?;
        ensure!(text(&answer) == Some(body), "{host}{target}: {answer:?}");
    }
    let elsewhere = bed.expect("other.test", "/of-this-server", 200).await?;
    ensure!(text(&elsewhere) != Some("this"), "{elsewhere:?}");
    ensure!(asked_by(&bed, "asking.test").await?.as_deref() == Some("itself"));
    bed.says(&["demo/own", "stream-snippet", "no effect"]).await?;
    bed.says(&["ConfigMap", "stream-snippet", "no effect"]).await?;

    let everybody = [&LEVELS[..], &[("global-auth-url", AUTHENTICATOR)]].concat();
    bed.configure(&settings(&everybody)).await?;
    ensure!(asked_by(&bed, "asked.test").await?.as_deref() == Some("everybody"));
    ensure!(asked_by(&bed, "asking.test").await?.as_deref() == Some("itself"));

    bed.configure(&[("annotations-risk-level", "Critical")]).await?;
    let own = bed.expect("own.test", "/of-this-server", 200).await?;
    ensure!(text(&own) != Some("this") && header(&own, "x-configuration").is_none(), "{own:?}");
    bed.says(&["demo/own", "configuration-snippet", "allow-snippet-annotations"]).await?;
    ensure!(!bed.conf()?.contains("os.getenv"), "it is not written");

    // ingress-nginx does not take an Ingress that is too risky; what it was before stays.
    bed.configure(&[("allow-snippet-annotations", "true")]).await?;
    bed.apply(&[ingress("risky", "risky.test")
        .annotate("configuration-snippet", "deny all;")
        .build()])
        .await?;
    bed.expect("risky.test", "/", 503).await?;
    bed.says(&["demo/risky", "configuration-snippet", "annotations-risk-level"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snippet_of_a_location_says_more_of_hsts_than_the_config_map() -> Result<()> {
    const NAME: &str = "Strict-Transport-Security";
    const USUAL: Option<&str> = Some("max-age=31536000; includeSubDomains");
    let with = |name: &str, snippet: &str| {
        let host = format!("{name}.test");
        ingress(name, &host).annotate("configuration-snippet", snippet).build()
    };
    let objects = [
        ingress("plain", "plain.test").build(),
        with("sets", &format!("more_set_headers \"{NAME}: max-age=66\";")),
        with("ends", &format!("more_set_headers \"{NAME}: max-age=66\"; return 403 no;")),
        with("clears", &format!("more_clear_headers {NAME};")),
    ];
    let bed = Bed::start(&settings(&[("ssl-redirect", "false")]), &objects, &[]).await?;
    for (host, over_tls, in_clear) in [
        ("plain.test", USUAL, None),
        ("sets.test", Some("max-age=66"), Some("max-age=66")),
        ("ends.test", Some("max-age=66"), Some("max-age=66")),
        ("clears.test", None, None),
    ] {
        for (scheme, wanted) in [("https", over_tls), ("http", in_clear)] {
            let url = format!("{scheme}://{host}/");
            let answer = bed.send(Request { url: url.clone(), ..Request::default() }).await;
            ensure!(answer.status.is_some(), "{url}: {answer:?}");
            ensure!(header(&answer, NAME) == wanted, "{url}: {answer:?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_snippet_of_an_ingress_takes_only_its_own_paths_away() -> Result<()> {
    let broken = |key: &str, text: &str| {
        ingress("broken", "broken.test").path("/deep", "echo-b:80").annotate(key, text).build()
    };
    // The same host, a path of another Ingress.
    let beside =
        testkit::builders::ingress("beside").host("broken.test").path("/beside", "echo:80");
    let objects = [
        broken("configuration-snippet", "no_such_directive on;"),
        beside.build(),
        ingress("fine", "fine.test")
            .annotate("configuration-snippet", "more_set_headers 'X-Fine: yes';")
            .build(),
    ];
    let mut bed = Bed::start(&settings(&[]), &objects, &[]).await?;
    let texts = [
        ("configuration-snippet", "no_such_directive on;"),
        ("configuration-snippet", "} location /stolen { return 200;"),
        ("server-snippet", "location / {"),
        ("server-snippet", "location = / { no_such_directive; }"),
        ("server-snippet", "include nowhere.conf;"),
        ("modsecurity-snippet", "SecNoSuchThing On"),
    ];
    for (key, text) in texts {
        let mut object = broken(key, text);
        object["metadata"]["annotations"]["nginx.ingress.kubernetes.io/enable-modsecurity"] =
            "true".into();
        bed.apply(&[object]).await.context(text)?;
        bed.expect("broken.test", "/", 503).await.context(text)?;
        bed.expect("broken.test", "/deep", 503).await.context(text)?;
        bed.expect("broken.test", "/beside", 200).await.context(text)?;
        let fine = bed.expect("fine.test", "/", 200).await?;
        ensure!(header(&fine, "x-fine") == Some("yes"), "{text}: {fine:?}");
        bed.says(&["Ingress demo/broken", "503"]).await.context(text)?;
    }
    bed.says(&["Ingress demo/broken", "unknown directive", "no_such_directive"]).await?;
    bed.says(&["Ingress demo/broken", "SecNoSuchThing"]).await?;
    bed.apply(&[broken("configuration-snippet", "more_set_headers 'X-Mended: yes';")]).await?;
    let mended = bed.expect("broken.test", "/", 200).await?;
    ensure!(header(&mended, "x-mended") == Some("yes"), "{mended:?}");
    bed.says(&["solved", "Ingress demo/broken"]).await?;
    // What nginx refuses to have twice is the text's: the path of the other Ingress gives way to it.
    bed.apply(&[broken("server-snippet", "location /beside/ { return 418; }")]).await?;
    bed.expect("broken.test", "/beside/x", 418).await?;
    bed.expect("broken.test", "/", 200).await.map(|_| ())
}

/// Texts that nginx does not take, each at its level.
const BROKEN: [(&str, &str); 6] = [
    ("main-snippet", "load_module nowhere.so;"),
    ("main-snippet", "worker_processes 3;"),
    ("http-snippet", "map $http_x_color $color { default none; "),
    (
        "http-snippet",
        "proxy_cache_path /proc/nobody/may keys_zone=mine:1m;\nmap $host $other { default x; }",
    ),
    ("server-snippet", "no_such_directive on;"),
    ("location-snippet", "more_set_headers \"X-Location: $nowhere_set\";"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_snippet_of_the_config_map_leaves_the_one_before_and_everything_else() -> Result<()>
{
    let uses = ingress("uses", "uses.test")
        .annotate("configuration-snippet", "more_set_headers \"X-Color: $color\";")
        .build();
    let objects = [uses, ingress("other", "other.test").build()];
    // Nothing to fall back to: the first start.
    let first = [BROKEN[0], BROKEN[2], BROKEN[4], BROKEN[5]];
    let mut bed = Bed::start(&settings(&first), &objects, &[]).await?;
    bed.expect("other.test", "/", 200).await?;
    // It relied on what is missing.
    bed.expect("uses.test", "/", 503).await?;
    for (key, _) in first {
        bed.says(&["ConfigMap ingress-nginx/ingress-nginx-controller", key, "left out"]).await?;
    }
    bed.configure(&settings(&LEVELS)).await?;
    bed.says(&["solved", "ConfigMap", "http-snippet"]).await?;
    for (key, text) in BROKEN {
        let changed: Vec<_> =
            LEVELS.iter().map(|level| if level.0 == key { (key, text) } else { *level }).collect();
        bed.configure(&settings(&changed)).await.context(text)?;
        let uses = bed.expect("uses.test", "/", 200).await.context(text)?;
        ensure!(header(&uses, "x-color") == Some("none"), "{text}: {uses:?}");
        let other = bed.expect("other.test", "/", 200).await.context(text)?;
        ensure!(header(&other, "x-location") == Some("none"), "{text}: {other:?}");
        bed.expect("other.test", "/of-every-server", 200).await.context(text)?;
        bed.says(&["ConfigMap", key, "the one before stays"]).await.context(text)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_of_loggable_stands_behind_that_of_the_list_and_keeps_requests_out_of_the_log()
-> Result<()> {
    let map = "map $request_uri $loggable { /quiet 0; default 1; }";
    let own = [("http-snippet", map), ("skip-access-log-urls", "/listed")];
    let said = ingress("said", "said.test")
        .annotate("configuration-snippet", "set $said $arg_x; if ($said) { set $loggable 0; }");
    let objects = [ingress("any", "any.test").build(), said.build()];
    let bed = Bed::start(&settings(&own), &objects, &[]).await?;
    for (host, target) in
        [("any.test", "/quiet"), ("said.test", "/unsaid?x=1"), ("any.test", "/listed")]
    {
        bed.expect(host, target, 200).await?;
    }
    bed.says(&["GET /listed "]).await?;
    let lines = bed.said();
    ensure!(!lines.contains("GET /quiet ") && !lines.contains("GET /unsaid"), "{lines}");
    Ok(())
}
