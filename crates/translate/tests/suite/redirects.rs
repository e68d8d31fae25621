//! What the annotations of redirects mean, odd values and their combinations included.

use crate::builders::*;
use model::policy::TlsRedirect;
use model::{Backend, PathKind, ServerName};
use translate::{Options, Translation, translate};

fn with(annotations: &[(&str, &str)], options: &Options) -> Translation {
    let mut snapshot = cluster();
    let mut shop = simple("demo", "shop", "shop.test", "/", "s");
    for (name, value) in annotations {
        annotate(&mut shop, name, value);
    }
    put_ingress(&mut snapshot, shop);
    translate(&snapshot, options)
}

/// `status target` of the redirect, `-` for none, `denied` or `refused`.
fn redirect(annotations: &[(&str, &str)], options: &Options) -> String {
    let found = with(annotations, options);
    let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix).expect("a root");
    match (&root.backend, &root.policy.redirect) {
        (Backend::Denied(_), _) if found.problems.to_string().contains("is not taken") => {
            "refused".to_owned()
        }
        (Backend::Denied(_), _) => "denied".to_owned(),
        (_, Some(redirect)) => format!("{} {}", redirect.status, *redirect.target),
        (_, None) => "-".to_owned(),
    }
}

#[test]
fn targets_and_statuses_are_read_as_ingress_nginx_does() {
    let (t, p) = ("temporal-redirect", "permanent-redirect");
    let (tc, pc) = ("temporal-redirect-code", "permanent-redirect-code");
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[(p, "https://a.test/x?y=1&z=2")], "301 https://a.test/x?y=1&z=2"),
        (&[(p, "/x")], "301 /x"),
        (&[(p, "/x"), (pc, "308")], "308 /x"),
        (&[(p, "/x"), (pc, "+303")], "303 /x"),
        (&[(p, "/x"), (pc, "304")], "301 /x"),
        (&[(p, "/x"), (pc, "-5")], "301 /x"),
        (&[(p, "/x"), (pc, "99999999999999999999")], "refused"),
        (&[(p, "/x"), (pc, " 308")], "refused"),
        (&[(p, "/x"), (pc, "")], "301 /x"),
        (&[(p, "/x y")], "refused"),
        (&[(p, "/x\n")], "refused"),
        (&[(p, "")], "-"),
        (&[(pc, "302")], "-"),
        (&[(pc, "moved")], "refused"),
        (&[(pc, " ")], "refused"),
        (&[(pc, "")], "-"),
        (&[(t, ""), (pc, "moved")], "refused"),
        (&[(t, "https://t.test"), (pc, "moved")], "302 https://t.test"),
        (&[(tc, "moved")], "-"),
        (&[(p, " ")], "refused"),
        (&[(t, " ")], "refused"),
        (&[(t, "https://t.test"), (p, "/x")], "302 https://t.test"),
        (&[(t, "https://t.test"), (tc, "307")], "307 https://t.test"),
        (&[(t, "https://t.test"), (tc, "308")], "302 https://t.test"),
        (&[(t, "HTTPS://t.test")], "302 HTTPS://t.test"),
        (&[(t, "ftp://t.test"), (p, "/x")], "301 /x"),
        (&[(t, "/t")], "-"),
        (&[(t, "https://t.test/$host")], "refused"),
    ];
    for (annotations, expected) in cases {
        assert_eq!(redirect(annotations, &Options::default()), *expected, "{annotations:?}");
    }
}

#[test]
fn without_validation_variables_count_and_lines_still_do_not_end() {
    let options = Options { validate_annotations: false, ..Options::default() };
    let p = "permanent-redirect";
    assert_eq!(redirect(&[(p, "https://a.test/~$uri")], &options), "301 https://a.test/~${uri}");
    assert_eq!(redirect(&[(p, "https://a.test/$nope")], &options), "denied");
    assert_eq!(redirect(&[(p, "/a\nX: y")], &options), "-");
    assert_eq!(redirect(&[(p, "/a"), ("permanent-redirect-code", "x")], &options), "-");
    assert_eq!(redirect(&[("permanent-redirect-code", "x")], &options), "-");
    assert_eq!(redirect(&[(p, " ")], &options), "-");
}

#[test]
fn what_no_ingress_owns_is_never_redirected() {
    let mut snapshot = cluster();
    let settings = [("force-ssl-redirect", "true")];
    put_config_map(&mut snapshot, config_map("demo", "settings", &settings));
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/a", "s"));
    let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
    let found = translate(&snapshot, &options).configuration;
    let of =
        |host| location(&found, host, "/", PathKind::Prefix).expect("a root").policy.tls_redirect;
    assert_eq!(of("_"), TlsRedirect::NEVER);
    assert!(of("shop.test").always, "the implicit root has what its Ingress has");
}

#[test]
fn the_catch_all_has_no_redirect_and_no_app_root() {
    let mut snapshot = cluster();
    let mut all = ingress("demo", "all");
    all.default_backend = Some(Box::new(backend("s", Some(objects::PortRef::Number(80)))));
    for (name, value) in [("permanent-redirect", "/x"), ("app-root", "/x"), ("upstream-vhost", "v")]
    {
        annotate(&mut all, name, value);
    }
    put_ingress(&mut snapshot, all);
    let found = translate(&snapshot, &Options::default()).configuration;
    let root = location(&found, "_", "/", PathKind::Prefix).expect("a root");
    assert_eq!(root.policy.redirect, None);
    assert!(root.policy.upstream_host.is_some());
    assert_eq!(found.servers[&ServerName::catch_all()].app_root, None);
}

#[test]
fn app_root_is_an_absolute_path_and_upstream_vhost_any_name() {
    let app_root = |value: &str| {
        let found = with(&[("app-root", value)], &Options::default()).configuration;
        found.servers[&ServerName::new("shop.test")].app_root.as_ref().map(ToString::to_string)
    };
    assert_eq!(app_root("/app").as_deref(), Some("/app"));
    assert_eq!(app_root("//app").as_deref(), Some("//app"));
    for ignored in ["app", "https://a.test/", "/app ", "/a?b", ""] {
        assert_eq!(app_root(ignored), None, "{ignored:?}");
    }
    let host = |value: &str, options: &Options| {
        let found = with(&[("upstream-vhost", value)], options);
        let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        let policy = &root.expect("a root").policy;
        policy.upstream_host.as_ref().map(ToString::to_string)
    };
    let usual = Options::default();
    let lax = Options { validate_annotations: false, ..Options::default() };
    assert_eq!(host(" $host.inner ", &usual).as_deref(), Some("${host}.inner"));
    assert_eq!((host("a b", &usual), host("a b", &lax).as_deref()), (None, Some("a b")));
    assert_eq!(host("a\nb", &lax), None, "a line never ends inside a header field");
}
