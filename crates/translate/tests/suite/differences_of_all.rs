//! What the ConfigMap makes different for all Ingresses: each has it as a reason, and it is said once.

use crate::check::{ALLOWED, checked_by, checked_with, config_map, ingress, of};
use translate::{Check, Options, Standing};

const MAP: &str = "ConfigMap ingress-nginx/ingress-nginx-controller";
const GUARD: &str = "nginx.ingress.kubernetes.io/configuration-snippet: 'if ($geoip2_country_code = XX) { return 403; }'";

/// The reasons of an Ingress with these words.
fn reasons(check: &Check, name: &str, words: &str) -> Vec<String> {
    let finding = of(check, name);
    let said = finding.reasons.iter().filter(|reason| reason.message.contains(words));
    said.filter_map(|reason| reason.key.clone()).collect()
}

#[test]
fn what_hangs_on_databases_differs_unless_they_are_there() {
    const WORDS: &str = "nothing is downloaded";
    let ingresses = [ingress("guarded", GUARD, "a.test", "/"), ingress("plain", "", "b.test", "/")];
    let on = format!("{ALLOWED}, use-geoip2: 'true'");
    let found = checked_with(&on, &ingresses);
    let standings = |check: &Check| ["guarded", "plain"].map(|name| of(check, name).standing);
    assert_eq!(standings(&found), [Standing::Differs, Standing::Identical], "{found:?}");
    assert_eq!(
        reasons(&found, "guarded", WORDS),
        ["nginx.ingress.kubernetes.io/configuration-snippet"]
    );
    // What all have is everybody's, but for a line of the log.
    let map = format!(
        "{on}, http-snippet: 'map $geoip2_country_code $x {{ default 0; XX 1; }}', log-format-upstream: \
         $geoip2_city_country_code"
    );
    let found = checked_with(&map, &ingresses);
    assert_eq!(standings(&found), [Standing::Differs, Standing::Differs], "{found:?}");
    assert_eq!(reasons(&found, "plain", WORDS), [format!("{MAP} http-snippet")]);
    let told = found.objects.iter().filter(|remark| remark.message.contains(WORDS));
    assert_eq!(told.count(), 1, "{:?}", found.objects);
    let fields = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fields, namespace: demo}\ndata: {X-Country: \
        '${geoip2_country_code}'}\n";
    let map = config_map(&format!("{on}, proxy-set-headers: demo/fields"));
    let all = [&ingresses[..], &[map, fields.to_owned()]].concat();
    let found = checked_by(&Options::default(), &all);
    assert_eq!(reasons(&found, "plain", WORDS), ["ConfigMap demo/fields X-Country"]);
    // With the databases nothing of it is true.
    let there = Options { has_databases: true, ..Options::default() };
    let found = checked_by(&there, &all);
    assert_eq!(standings(&found), [Standing::Identical; 2], "{found:?}");
}

/// nginx knows no such variable then, and takes no configuration with it.
#[test]
fn what_hangs_on_databases_that_are_not_switched_on_differs() {
    const WORDS: &str = "knows no such variable";
    let server = GUARD.replace("configuration-snippet", "server-snippet");
    let ingresses = [
        ingress("guarded", GUARD, "a.test", "/"),
        ingress("server", &server, "c.test", "/"),
        ingress("plain", "", "b.test", "/"),
    ];
    for options in [Options::default(), Options { has_databases: true, ..Options::default() }] {
        let found = checked_by(&options, &[&ingresses[..], &[config_map(ALLOWED)]].concat());
        let standings = ["guarded", "server", "plain"].map(|name| of(&found, name).standing);
        let wanted = [Standing::Differs, Standing::Differs, Standing::Identical];
        assert_eq!(standings, wanted, "{found:?}");
        let key = "nginx.ingress.kubernetes.io/configuration-snippet";
        assert_eq!(reasons(&found, "guarded", WORDS), [key]);
    }
    let log = format!("{ALLOWED}, log-format-upstream: $geoip2_city_country_code");
    assert_eq!(of(&checked_with(&log, &ingresses), "plain").standing, Standing::Identical);
    let map = format!("{ALLOWED}, http-snippet: 'map $geoip2_country_code $x {{ default 0; }}'");
    let found = checked_with(&map, &ingresses);
    assert_eq!(reasons(&found, "plain", WORDS), [format!("{MAP} http-snippet")]);
}

#[test]
fn keys_that_ingress_nginx_hears_otherwise_differ_for_all() {
    for (data, key, words) in [
        ("hsts: ''", "hsts", "is empty, which ingress-nginx takes for false"),
        ("ssl-redirect: ''", "ssl-redirect", "write \"false\""),
        ("SSL-Redirect: 'false'", "SSL-Redirect", "write ssl-redirect"),
        ("proxy-read-timeout: '010'", "proxy-read-timeout", "is 8 to ingress-nginx"),
        ("proxy-read-timeout: '0x10'", "proxy-read-timeout", "write 16"),
        ("keep-alive: '08'", "keep-alive", "is no number to ingress-nginx"),
        ("keep-alive: ''", "keep-alive", "is empty, which ingress-nginx takes for 0"),
        ("proxy-next-upstream-tries: ''", "proxy-next-upstream-tries", "the default counts, 3"),
    ] {
        let found = checked_with(data, &[ingress("plain", "", "a.test", "/")]);
        let keys = [format!("{MAP} {key}")];
        assert_eq!(reasons(&found, "plain", words), keys, "{data}: {found:?}");
        assert_eq!(of(&found, "plain").standing, Standing::Differs, "{data}");
        let told = found.objects.iter().filter(|remark| remark.key.as_ref() == keys.first());
        assert_eq!(told.count(), 1, "{data}: {:?}", found.objects);
    }
    for same in [
        "hsts: 'true'",
        "use-proxy-protocol: ''",
        "SSL-Redirect: 'true'",
        "SSL-Redirect: 'false', ssl-redirect: 'true'",
        "Global-Auth-URL: http://auth.test/",
        "proxy-read-timeout: '007'",
        "proxy-read-timeout: '60'",
        "proxy-read-timeout: ' '",
        "limit-rate: ''",
        "http-redirect-code: ''",
        "worker-processes: ''",
        "hsts-max-age: '010'",
    ] {
        let found = checked_with(same, &[ingress("plain", "", "a.test", "/")]);
        assert_eq!(of(&found, "plain").standing, Standing::Identical, "{same}: {found:?}");
    }
}
