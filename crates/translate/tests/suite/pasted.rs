//! Snippets whose words ingress-nginx pastes: what its nginx makes of them, and Fairway does not.

use crate::check::{ALLOWED, checked, checked_with, ingress, of};
use translate::{Check, Finding, Standing};

const ONE: &str = "nginx.ingress.kubernetes.io";

pub(crate) fn with(name: &str, annotations: &[(&str, &str)]) -> String {
    let all = annotations.iter().map(|(name, text)| format!("{ONE}/{name}: {text:?}"));
    ingress(name, &all.collect::<Vec<_>>().join(", "), &format!("{name}.test"), "/")
}

pub(crate) fn found(annotations: &[(&str, &str)]) -> Finding {
    of(&checked_with(ALLOWED, &[with("one", annotations)]), "one").clone()
}

pub(crate) fn reasons(finding: &Finding) -> Vec<&str> {
    finding.reasons.iter().map(|reason| reason.message.as_str()).collect()
}

const HEEDED: &str = "has no effect here, and nginx heeds it";
pub(crate) const TWICE: &str = "its nginx takes no configuration with it";

#[test]
fn what_nginx_heeds_and_is_not_heeded_here_is_a_difference_with_its_line() {
    for text in [
        "server_name foo.example;",
        "merge_slashes off;",
        "ssl_reject_handshake on;",
        "proxy_ignore_client_abort on;",
        "ssl_ciphers HIGH;",
        "location /a { send_timeout 5m; }",
    ] {
        let finding = found(&[("server-snippet", &format!("etag on;\n\n{text}"))]);
        assert_eq!(finding.standing, Standing::Differs, "{text}: {finding:?}");
        let [reason] = reasons(&finding)[..] else { panic!("{finding:?}") };
        assert!(reason.starts_with("line ") && reason.contains(HEEDED), "{reason}");
        let vain = finding.notes.iter().filter(|note| note.message.contains("has no effect"));
        assert_eq!(vain.count(), 1, "of etag: {finding:?}");
    }
    for text in ["merge_slashes on;", "tcp_nodelay on;", "send_timeout 60s;", "server_tokens off;"]
    {
        let finding = found(&[("server-snippet", text)]);
        assert_eq!(finding.standing, Standing::Identical, "{text}: {finding:?}");
    }
    let ignored = checked(&[with("one", &[("server-snippet", "merge_slashes off;")])]);
    assert_ne!(of(&ignored, "one").standing, Standing::Differs, "it does not count: {ignored:?}");
}

#[test]
fn what_the_template_says_already_is_a_difference_with_its_line() {
    let snippet = "configuration-snippet";
    for text in [
        "client_max_body_size 50m;",
        "proxy_read_timeout 300;",
        "proxy_http_version 1.1;",
        "proxy_pass http://shop.demo.svc.cluster.local;",
        "proxy_buffering off;",
        "proxy_cookie_path / /a;",
        "proxy_redirect off;",
        "proxy_busy_buffers_size 8k; proxy_buffers 4 8k;",
    ] {
        let finding = found(&[(snippet, &format!("\n{text}"))]);
        assert_eq!(finding.standing, Standing::Differs, "{text}: {finding:?}");
        let told = reasons(&finding).iter().filter(|it| it.starts_with("line 2, column 1")).count();
        assert_eq!(told, usize::from(!text.starts_with("proxy_busy")), "{text}: {finding:?}");
        assert!(reasons(&finding).iter().all(|it| it.contains(TWICE)), "{finding:?}");
    }
    let within = "if ($arg_a) { proxy_pass http://upstream_balancer; }\nproxy_set_header X 1;";
    assert_eq!(found(&[(snippet, within)]).standing, Standing::Identical);
    // With another annotation, or without it.
    for (annotation, text) in [
        (("satisfy", "any"), "satisfy all;"),
        (("backend-protocol", "GRPC"), "grpc_read_timeout 9s;"),
        (("auth-url", "http://shop.demo.svc.cluster.local/a"), "auth_request off;"),
        (("proxy-busy-buffers-size", "8k"), "proxy_busy_buffers_size 8k;"),
    ] {
        let (alone, both) = (found(&[(snippet, text)]), found(&[annotation, (snippet, text)]));
        assert!(!reasons(&alone).iter().any(|it| it.contains(TWICE)), "{text}: {alone:?}");
        assert!(reasons(&both).iter().any(|it| it.contains(TWICE)), "{text}: {both:?}");
    }
    let cookies = [("proxy-cookie-path", "/a /b"), (snippet, "proxy_cookie_path / /c;")];
    assert_eq!(found(&cookies).standing, Standing::Identical, "one may stand beside another");
    let server = found(&[("server-snippet", "http2 off;")]);
    assert!(matches!(reasons(&server)[..], [one] if one.contains(TWICE)), "{server:?}");
}

#[test]
fn conditions_of_the_next_upstream_stand_beside_those_of_the_controller() {
    let text = |text: &str| found(&[("configuration-snippet", text)]);
    let adds = text("proxy_next_upstream http_503;");
    assert!(reasons(&adds)[0].contains("which counts error timeout, too"), "{adds:?}");
    for same in ["proxy_next_upstream error timeout http_503;", "proxy_next_upstream off;"] {
        assert_eq!(text(same).standing, Standing::Identical, "{same}");
    }
}

#[test]
fn snippets_of_the_config_map_differ_for_all_and_are_told_once() {
    let plain = || [ingress("plain", "", "plain.test", "/")];
    let told = |found: &Check, words: &str| {
        found.objects.iter().filter(|it| it.message.contains(words)).count()
    };
    for (data, words) in [
        ("http-snippet: 'keepalive_timeout 9s;'", TWICE),
        ("location-snippet: 'proxy_read_timeout 9s;'", TWICE),
        ("server-snippet: 'merge_slashes off;'", HEEDED),
    ] {
        let found = checked_with(&format!("{ALLOWED}, {data}"), &plain());
        let finding = of(&found, "plain");
        assert_eq!(finding.standing, Standing::Differs, "{data}: {finding:?}");
        assert!(reasons(finding)[0].contains(words), "{data}: {finding:?}");
        assert_eq!(told(&found, words), 1, "{data}: {:?}", found.objects);
    }
    let data = format!("{ALLOWED}, location-snippet: 'satisfy any;', server-snippet: 'etag off;'");
    let found = checked_with(&data, &[with("one", &[("satisfy", "all")]), plain()[0].clone()]);
    assert!(reasons(of(&found, "one"))[0].contains(TWICE), "{found:?}");
    assert_eq!(of(&found, "plain").standing, Standing::Identical, "{found:?}");
}

#[test]
fn what_answers_before_guards_is_noted() {
    let list = ("whitelist-source-range", "10.0.0.0/8");
    let notes = |annotations: &[(&str, &str)]| {
        let finding = found(annotations);
        assert_eq!(finding.standing, Standing::Identical, "{finding:?}");
        let told = finding.notes.iter().filter(|it| it.message.contains("kept out by nobody"));
        told.map(|it| it.message.clone()).collect::<Vec<_>>()
    };
    let early = "set $a 1;\nif ($request_uri ~ ^/api) {\n  return 200 open;\n}";
    let told = notes(&[list, ("configuration-snippet", early)]);
    assert_eq!(
        told,
        [
            "line 3, column 3: return answers before whitelist-source-range is asked, as in nginx: whoever it answers is kept \
          out by nobody"
        ]
    );
    let bots = "if ($http_user_agent ~ bot) { return 403; }";
    assert_eq!(notes(&[list, ("configuration-snippet", bots)]).len(), 0, "it keeps out more");
    let both = format!("{bots}\nreturn 200 open;");
    let told = notes(&[list, ("configuration-snippet", both.as_str())]);
    assert!(told.len() == 1 && told[0].starts_with("line 2, column 1: return "), "{told:?}");
    let rewrite = "rewrite ^/a /b redirect;";
    assert_eq!(notes(&[list, ("server-snippet", rewrite)]).len(), 1);
    assert_eq!(notes(&[("configuration-snippet", early)]).len(), 0, "there is no guard");
    assert_eq!(notes(&[list, ("configuration-snippet", "rewrite ^/a /b break;")]).len(), 0);
}
