//! What nginx refuses to read twice in one place: two texts that ingress-nginx pastes into it, and what its template
//! says there. nginx itself is asked for each.

use crate::check::{ALLOWED, checked_with, ingress, of};
use crate::pasted::{TWICE, found, reasons, with};
use std::path::Path;
use std::process::Command;
use translate::{Check, Standing};

/// Whether nginx takes a text twice in such a place: what it says if it does not.
fn asked_of_nginx(place: &str, text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let usual = ["/usr/sbin/nginx", "/usr/bin/nginx"].map(Path::new);
    let program = usual.into_iter().find(|path| path.exists()).expect("scripts/need nginx");
    let in_place = |wanted: &str| if place == wanted { text } else { "" };
    let conf = format!(
        "pid {folder}/pid; error_log stderr; {main}\nevents {{}}\nhttp {{ access_log off;\n\
         limit_req_zone $uri zone=a:1m rate=1r/s; limit_conn_zone $uri zone=a2:1m;\n{http}\n\
         server {{ listen 127.0.0.1:1; {server}\nlocation /x {{ {location}\n}} }} }}",
        folder = folder.path().display(),
        main = in_place("main"),
        http = in_place("http"),
        server = in_place("server"),
        location = in_place("location"),
    );
    let file = folder.path().join("nginx.conf");
    std::fs::write(&file, conf).expect("the file is written");
    let mut asked = Command::new(program);
    asked.args(["-t", "-q", "-p"]).arg(folder.path()).arg("-c").arg(&file);
    let output = asked.output().expect("nginx runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

/// Asserts what nginx makes of two texts, each of which it takes alone.
fn takes(place: &str, one: &str, other: &str, both: bool) {
    for alone in [one, other] {
        assert_eq!(asked_of_nginx(place, alone), Ok(()), "{place}: {alone}");
    }
    match asked_of_nginx(place, &format!("{one}\n{other}")) {
        Ok(()) => assert!(both, "{place}: nginx takes {one} and {other}"),
        Err(said) => {
            let is_twice = said.contains("duplicate") || said.contains("conflicting");
            assert!(!both && is_twice, "{place}: {one} and {other}: {said}");
        }
    }
}

/// What is found where the ConfigMap says one text, and an Ingress another in the same place.
fn both(place: &str, of_all: &str, own: &str) -> Check {
    let (key, name) = match place {
        "server" => ("server-snippet", "server-snippet"),
        _ => ("location-snippet", "configuration-snippet"),
    };
    checked_with(&format!("{ALLOWED}, {key}: {of_all:?}"), &[with("one", &[(name, own)])])
}

fn told(found: &Check) -> Vec<&str> {
    reasons(of(found, "one")).into_iter().filter(|it| it.contains(TWICE)).collect()
}

#[test]
fn what_the_config_map_and_an_ingress_say_both_in_one_place_is_a_duplicate() {
    for (place, one, other) in [
        ("location", "send_timeout 60s;", "send_timeout 1m;"),
        ("location", "satisfy any;", "satisfy all;"),
        ("location", "expires 1h;", "expires 2h;"),
        ("location", "auth_basic off;", "auth_basic off;"),
        ("location", "limit_rate 1k;", "limit_rate 2k;"),
        ("location", "internal;", "internal;"),
        ("location", "limit_except GET { deny all; }", "limit_except PUT { deny all; }"),
        ("location", "proxy_cookie_flags off;", "proxy_cookie_flags a secure;"),
        ("location", "proxy_ssl_verify_depth 2;", "proxy_ssl_verify_depth 3;"),
        ("location", "charset utf-8;", "charset utf-8;"),
        ("location", "valid_referers none a.test;", "valid_referers b.test a.test;"),
        ("server", "proxy_redirect /a /b;", "proxy_redirect off;"),
        ("server", "keepalive_timeout 9s;", "keepalive_timeout 10s;"),
        ("server", "proxy_buffering off;", "proxy_buffering off;"),
        ("server", "merge_slashes on;", "merge_slashes on;"),
        ("server", "location = /metrics { return 403; }", "location = /metrics { return 404; }"),
        ("server", "location /m { return 403; }", "location ^~ /m { return 404; }"),
    ] {
        takes(place, one, other, false);
        let found = both(place, one, &format!("\n{other}"));
        assert_eq!(of(&found, "one").standing, Standing::Differs, "{one} {other}: {found:?}");
        let [reason] = told(&found)[..] else { panic!("{one} {other}: {found:?}") };
        assert!(reason.starts_with("line 2, column 1: "), "{reason}");
        assert!(reason.contains("-snippet of the ConfigMap says"), "{reason}");
        assert!(told(&both(place, "", other)).is_empty(), "{other}");
    }
    let zones = "http-snippet: 'limit_req_zone $uri zone=a:1m rate=1r/s; limit_req_zone $uri zone=b:1m rate=1r/s;'";
    let limited = |zone: &str| {
        let data = format!("{ALLOWED}, {zones}, location-snippet: 'limit_req zone=a;'");
        let own = format!("limit_req burst=2 zone={zone};");
        checked_with(&data, &[with("one", &[("configuration-snippet", &own)])])
    };
    takes("location", "limit_req zone=a;", "limit_req burst=2 zone=a;", false);
    assert_eq!((told(&limited("a")).len(), told(&limited("b")).len()), (1, 0));
}

#[test]
fn what_nginx_takes_several_times_may_stand_in_both_texts() {
    for (place, one, other) in [
        ("location", "proxy_set_header A 1;", "proxy_set_header A 1;"),
        ("location", "add_header A 1;", "add_header A 1;"),
        ("location", "allow 10.0.0.0/8;", "allow 10.0.0.0/8;"),
        ("location", "if ($arg_a) { return 403; }", "if ($arg_a) { return 403; }"),
        ("location", "set $a 1;", "set $a 1;"),
        ("location", "proxy_hide_header A;", "proxy_hide_header A;"),
        ("location", "proxy_ignore_headers Expires;", "proxy_ignore_headers Vary;"),
        ("location", "sub_filter a b;", "sub_filter a b;"),
        ("location", "sub_filter_types text/a;", "sub_filter_types text/b;"),
        ("location", "gzip_types text/a;", "gzip_types text/b;"),
        ("location", "gzip_proxied any;", "gzip_proxied auth;"),
        ("location", "charset_types text/a;", "charset_types text/b;"),
        ("location", "error_page 404 /a;", "error_page 404 /a;"),
        ("location", "types { a/b c; }", "types { a/b d; }"),
        ("location", "access_log off;", "access_log off;"),
        ("location", "keepalive_disable none;", "keepalive_disable msie6;"),
        ("location", "proxy_no_cache $uri;", "proxy_no_cache $uri;"),
        ("location", "valid_referers none a.test;", "valid_referers b.test;"),
        ("location", "set_real_ip_from 10.0.0.0/8;", "set_real_ip_from 10.0.0.0/8;"),
        ("location", "proxy_cookie_flags a secure;", "proxy_cookie_flags b secure;"),
        ("location", "fastcgi_param A 1;", "fastcgi_param A 1;"),
        (
            "location",
            "fastcgi_split_path_info ^(.+)(/.+)$;",
            "fastcgi_split_path_info ^(.+)(/.+)$;",
        ),
        ("location", "stub_status;", "stub_status;"),
        ("location", "dav_methods off;", "dav_methods off;"),
        ("server", "proxy_redirect /a /b;", "proxy_redirect /c /d;"),
        ("server", "ssl_session_cache off;", "ssl_session_cache off;"),
        ("server", "location = /m { return 403; }", "location /m { return 404; }"),
        ("server", "location ~ /m { return 403; }", "location ~ /m { return 404; }"),
        ("server", "location @m { return 403; }", "location @n { return 404; }"),
    ] {
        takes(place, one, other, true);
        let found = both(place, one, other);
        assert_eq!(told(&found), [""; 0], "{one} {other}");
        let standing = of(&found, "one").standing;
        assert!(matches!(standing, Standing::Identical | Standing::Differs), "{found:?}");
    }
    // In places that are two.
    let data = format!("{ALLOWED}, server-snippet: 'send_timeout 60s;'");
    let one = with("one", &[("configuration-snippet", "send_timeout 60s;")]);
    assert_eq!(told(&checked_with(&data, &[one])), [""; 0]);
}

#[test]
fn of_the_texts_of_a_host_the_oldest_is_pasted() {
    let data = format!("{ALLOWED}, server-snippet: 'etag off;'");
    let of_host = |name: &str, host: &str, annotations: &str| {
        ingress(name, annotations, host, &format!("/{name}"))
    };
    let text = "nginx.ingress.kubernetes.io/server-snippet: 'http2 on; etag off;'";
    let all = |host: &str| [of_host("one", host, text), of_host("two", "two.test", text)];
    let canary = |host: &str| {
        let annotations = format!("{text}, nginx.ingress.kubernetes.io/canary: 'true'");
        [of_host("one", host, &annotations), of_host("one0", host, "")]
    };
    let told_of = |found: &Check| told(found).len();
    assert_eq!(told_of(&checked_with(&data, &canary("one.test"))), 0, "nobody pastes it");
    let of_one = |found: &Check| {
        ["one", "two"]
            .map(|name| reasons(of(found, name)).iter().filter(|it| it.contains(TWICE)).count())
    };
    assert_eq!(of_one(&checked_with(&data, &all("one.test"))), [2, 2]);
    assert_eq!(
        of_one(&checked_with(&data, &all("two.test"))),
        [0, 2],
        "the last by name is the oldest"
    );
}

/// How many lines of a text of the ConfigMap are said to be duplicates for an Ingress.
fn of_all(data: &str, annotations: &[(&str, &str)]) -> usize {
    told(&checked_with(&format!("{ALLOWED}, {data}"), &[with("one", annotations)])).len()
}

#[test]
fn what_the_template_says_by_keys_of_the_config_map_is_a_duplicate() {
    for (place, text) in [
        ("http", "aio_write off;"),
        ("http", "real_ip_header X-Real-IP;"),
        ("http", "real_ip_recursive off;"),
        ("http", "grpc_buffer_size 8k;"),
        ("http", "log_format upstreaminfo '$uri';"),
        ("http", "proxy_intercept_errors on;"),
        ("main", "worker_processes 4;"),
        ("main", "worker_rlimit_nofile 65535;"),
        ("main", "worker_shutdown_timeout 60s;"),
        ("main", "worker_cpu_affinity auto;"),
    ] {
        takes(place, text, text, false);
    }
    let snippet = |text: &str| format!("http-snippet: '{text}'");
    for (text, more, times) in [
        ("aio_write off;", "", 1),
        ("aio_write off;", ", enable-aio-write: 'false'", 0),
        ("real_ip_header X-Real-IP;", "", 0),
        ("real_ip_header X-Real-IP;", ", enable-real-ip: 'true'", 1),
        ("real_ip_header X-Real-IP;", ", use-forwarded-headers: 'true'", 1),
        ("real_ip_recursive off;", ", use-proxy-protocol: 'true'", 1),
        ("real_ip_recursive off;", ", use-proxy-protocol: 'false'", 0),
        ("grpc_buffer_size 8k;", "", 0),
        ("grpc_buffer_size 8k;", ", grpc-buffer-size-kb: '0'", 0),
        ("grpc_buffer_size 8k;", ", grpc-buffer-size-kb: '4'", 1),
        ("log_format upstreaminfo $uri;", "", 1),
        ("log_format another $uri;", "", 0),
        ("proxy_intercept_errors on;", "", 0),
        ("proxy_intercept_errors on;", ", custom-http-errors: '404'", 1),
        (
            "proxy_intercept_errors on;",
            ", custom-http-errors: '404', disable-proxy-intercept-errors: 'true'",
            0,
        ),
    ] {
        assert_eq!(of_all(&format!("{}{more}", snippet(text)), &[]), times, "{text}{more}");
    }
    for (data, times) in [
        ("main-snippet: 'worker_processes 4;'", 1),
        ("main-snippet: 'worker_rlimit_nofile 65535;'", 1),
        ("main-snippet: 'worker_shutdown_timeout 60s;'", 1),
        ("main-snippet: 'worker_cpu_affinity auto;'", 0),
        ("main-snippet: 'worker_cpu_affinity auto;', worker-cpu-affinity: auto", 1),
        ("main-snippet: 'worker_priority 1;'", 0),
        ("stream-snippet: 'resolver 127.0.0.1;'", 1),
        ("stream-snippet: 'log_format log_stream $status;'", 1),
        ("stream-snippet: 'log_format another $status;'", 0),
    ] {
        assert_eq!(of_all(data, &[]), times, "{data}");
    }
}

#[test]
fn what_the_template_says_for_a_number_stands_there_above_zero() {
    for name in ["limit-rate", "limit-rate-after"] {
        let text = format!("{} 1k;", name.replace('-', "_"));
        takes("location", &text, &text, false);
        let own = |value: &str| {
            let finding = found(&[(name, value), ("configuration-snippet", &text)]);
            reasons(&finding).iter().any(|it| it.contains(TWICE))
        };
        assert_eq!((own("0"), own("5")), (false, true), "{name}");
        let of_all = |data: &str| of_all(data, &[("configuration-snippet", &text)]);
        assert_eq!((of_all(&format!("{name}: '0'")), of_all(&format!("{name}: '5'"))), (0, 1));
        let hidden = [(name, "0"), ("configuration-snippet", text.as_str())];
        assert_eq!(self::of_all(&format!("{name}: '5'"), &hidden), 0, "{name}");
    }
    let errors =
        [("custom-http-errors", "404"), ("configuration-snippet", "proxy_intercept_errors on;")];
    let told = |annotations: &[(&str, &str)]| {
        reasons(&found(annotations)).iter().filter(|it| it.contains(TWICE)).count()
    };
    assert_eq!(told(&errors), 1);
    assert_eq!(told(&[errors[0], errors[1], ("disable-proxy-intercept-errors", "true")]), 0);
    let asked = |more: &[(&str, &str)]| {
        let url = ("auth-url", "http://shop.demo.svc.cluster.local/a");
        told(&[&[url, ("auth-snippet", "proxy_cache off;")], more].concat())
    };
    assert_eq!((asked(&[]), asked(&[("auth-cache-key", "$remote_user")])), (0, 1));
    let text = ("configuration-snippet", "proxy_redirect off;");
    let (from, to) = (("proxy-redirect-from", "/a"), ("proxy-redirect-to", "/b"));
    assert_eq!([told(&[text]), told(&[text, from]), told(&[text, from, to])], [1, 0, 1]);
    // The one for all is another one.
    let url = ("auth-url", "http://shop.demo.svc.cluster.local/a");
    let own = with("one", &[url, ("auth-snippet", "proxy_method POST;")]);
    let kept = [url, ("auth-keepalive", "5"), ("configuration-snippet", "auth_request off;")];
    assert_eq!(told(&kept), 1);
    assert_eq!(of_all("use-http2: 'false'", &kept), 0, "a program asks");
    let data = format!("{ALLOWED}, global-auth-method: GET");
    assert_eq!(self::told(&checked_with(&data, &[own])), [""; 0]);
}

/// A Secret for `proxy-ssl-secret` or `auth-tls-secret`, with authorities or without.
fn secret(name: &str, has_authority: bool) -> String {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("it can be made");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let mut data = vec![("tls.crt", &certificate), ("tls.key", &key)];
    data.extend(has_authority.then_some(("ca.crt", &certificate)));
    let data: Vec<String> = data.iter().map(|(key, text)| format!("{key}: {text:?}")).collect();
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: demo}}\n\
         stringData: {{{}}}\n",
        data.join(", ")
    )
}

/// How many directives of Ingress `one` are duplicates where a Secret is there, too.
fn beside(has_authority: bool, data: &str, ingresses: &[String]) -> usize {
    let all = [ingresses, &[secret("upstream", has_authority)]].concat();
    told(&checked_with(&format!("{ALLOWED}{data}"), &all)).len()
}

#[test]
fn what_is_asked_of_upstreams_stands_there_with_authorities() {
    let named = ("proxy-ssl-secret", "demo/upstream");
    let text = "proxy_ssl_verify on; proxy_ssl_verify_depth 2; proxy_ssl_ciphers HIGH;";
    for place in ["server", "location"] {
        for once in ["verify on", "verify_depth 2", "ciphers HIGH", "name a.test", "server_name on"]
        {
            let text = format!("proxy_ssl_{once};");
            takes(place, &text, &text, false);
        }
        takes(place, "proxy_ssl_protocols TLSv1.2;", "proxy_ssl_protocols TLSv1.3;", true);
    }
    let location = |has_authority: bool, text: &str, more: &[(&str, &str)]| {
        let all = [&[named, ("configuration-snippet", text)], more].concat();
        beside(has_authority, "", &[with("one", &all)])
    };
    assert_eq!((location(true, text, &[]), location(false, text, &[])), (3, 0));
    let names = "proxy_ssl_server_name on; proxy_ssl_name b.test;";
    let name = ("proxy-ssl-name", "a.test");
    assert_eq!((location(false, names, &[]), location(false, names, &[name])), (1, 2));
    // Of whoever has the host, unless it is for locations alone.
    let host = |has_authority: bool, data: &str, text: &str, more: &[(&str, &str)]| {
        let one = with("one", &[("server-snippet", text)]);
        let annotations = [&[named], more].concat();
        let annotations = annotations
            .iter()
            .map(|(name, text)| format!("nginx.ingress.kubernetes.io/{name}: {text:?}"));
        let annotations = annotations.collect::<Vec<_>>().join(", ");
        beside(has_authority, data, &[one, ingress("two", &annotations, "one.test", "/two")])
    };
    assert_eq!((host(true, "", text, &[]), host(false, "", text, &[])), (3, 0));
    assert_eq!(host(true, ", proxy-ssl-location-only: 'true'", text, &[]), 0);
    assert_eq!((host(true, "", names, &[]), host(true, "", names, &[name])), (0, 2));
    assert_eq!(host(false, "", names, &[name]), 0);
    // And of all, where the ConfigMap says it.
    let of_all = |has_authority: bool| {
        let data = format!(", server-snippet: {text:?}");
        beside(has_authority, &data, &[with("one", &[named])])
    };
    assert_eq!((of_all(true), of_all(false)), (3, 0));
    let suites = |host: &str| {
        let ciphers = "nginx.ingress.kubernetes.io/ssl-ciphers: HIGH";
        let one = with("one", &[("server-snippet", "ssl_ciphers HIGH;")]);
        beside(true, "", &[one, ingress("two", ciphers, host, "/two")])
    };
    assert_eq!((suites("one.test"), suites("two.test")), (1, 0));
}

#[test]
fn versions_for_upstreams_stand_beside_those_of_the_controller() {
    let adds = |annotations: &[(&str, &str)], has_authority: bool| {
        let all = [&[("proxy-ssl-secret", "demo/upstream")], annotations].concat();
        let objects = [with("one", &all), secret("upstream", has_authority)];
        let found = checked_with(ALLOWED, &objects);
        let added = |it: &&&str| it.contains("which counts TLSv1.2, too");
        reasons(of(&found, "one")).iter().filter(added).count()
    };
    for name in ["configuration-snippet", "server-snippet"] {
        let newest = (name, "proxy_ssl_protocols TLSv1.3;");
        assert_eq!((adds(&[newest], true), adds(&[newest], false)), (1, 0), "{name}");
        assert_eq!(adds(&[newest, ("proxy-ssl-protocols", "TLSv1.3")], true), 0, "{name}");
        assert_eq!(adds(&[(name, "proxy_ssl_protocols TLSv1.2 TLSv1.3;")], true), 0, "{name}");
    }
}

#[test]
fn what_adds_up_in_nginx_and_not_here_is_a_difference() {
    for (place, one, other, lost) in [
        ("location", "proxy_ignore_headers Expires;", "proxy_ignore_headers Vary;", "Expires"),
        ("location", "gzip_types text/a text/b;", "gzip_types text/b;", "text/a"),
        ("location", "valid_referers none a.test;", "valid_referers none b.test;", "a.test"),
        ("location", "proxy_next_upstream http_503;", "proxy_next_upstream off;", ""),
        ("server", "gzip_types text/a;", "gzip_types text/b;", "text/b"),
        ("server", "sub_filter_types text/a text/b;", "sub_filter_types text/b;", ""),
        ("server", "sub_filter_types *;", "sub_filter_types text/b;", ""),
    ] {
        takes(place, one, other, true);
        let found = both(place, one, other);
        let told = reasons(of(&found, "one"));
        let said = told.iter().filter(|it| it.contains("adds up in nginx")).collect::<Vec<_>>();
        let expected = format!("-snippet of the ConfigMap says; here {lost} does not count");
        match said[..] {
            [] => assert_eq!(lost, "", "{one} {other}: {found:?}"),
            [one] => assert!(!lost.is_empty() && one.ends_with(&expected), "{one}"),
            _ => panic!("{found:?}"),
        }
    }
    let of_http = |text: &str, more: &str| {
        let data = format!("{ALLOWED}, http-snippet: '{text}'{more}");
        let found = checked_with(&data, &[with("one", &[])]);
        let told = reasons(of(&found, "one"));
        told.iter()
            .map(|it| it.split(" counts ").nth(1).unwrap_or(it).to_owned())
            .collect::<Vec<_>>()
    };
    let then = ", too; here it replaces that";
    let on = ", use-gzip: 'true'";
    assert_eq!(of_http("gzip_types text/a;", ""), [""; 0]);
    let usual = "application/atom+xml application/javascript application/json application/rss+xml and 13 more";
    assert_eq!(of_http("gzip_types text/a;", on), [format!("{usual}{then}")]);
    let own = format!("{on}, gzip-types: 'text/html text/a text/b'");
    assert_eq!(of_http("gzip_types text/a;", &own), [format!("text/b{then}")]);
    assert_eq!(of_http("gzip_types *;", on), [""; 0]);
    assert_eq!(of_http("gzip_proxied expired;", on), [format!("any{then}")]);
    assert_eq!(of_http("gzip_proxied any;", on), [""; 0]);
    let brotli = ", enable-brotli: 'true', brotli-types: text/b";
    assert_eq!(of_http("brotli_types text/a;", brotli), [format!("text/b{then}")]);
}
