//! Values that hold the words of our own sentences: problems quote them, and nobody takes them for what a problem is.

use crate::check::{ALLOWED, checked, checked_by, checked_with, config_map, ingress, of};
use objects::{Snapshot, snapshot_of};
use std::path::Path;
use translate::{
    Options, RefusedBy, Standing, in_vain, left_out_of_host, not_heard_of_host, translate,
};

const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// What stands in sentences about problems of which something follows.
const WORDS: [&str; 14] = [
    "ingress-nginx took it",
    "the Ingress is not taken",
    "(--deep-inspect)",
    "allow-cross-namespace",
    "annotations-risk-level of the ConfigMap allows",
    "allow-snippet-annotations of the ConfigMap is not true",
    "is an address of this machine, of its links",
    "take it out, or run with --engine=nginx",
    "does not exist: create it",
    "every location answers 503",
    "holds other signs",
    "is not the name of a ConfigMap",
    "has no ca.crt",
    "are regular expressions, and it is none",
];

/// What becomes of an Ingress with one annotation, and who refuses it. With validation most values are refused for
/// their characters alone.
fn verdict(name: &str, value: &str) -> (Standing, Option<RefusedBy>) {
    let annotation = format!("{PREFIX}/{name}: \"{value}\"");
    let options = Options { validate_annotations: false, ..Options::default() };
    let objects = [ingress("one", &annotation, "a.test", "/"), config_map(ALLOWED)];
    let found = checked_by(&options, &objects);
    let found = of(&found, "one");
    (found.standing, found.refused_by)
}

#[test]
fn words_in_a_value_change_no_verdict() {
    let fairway = (Standing::Refused, Some(RefusedBy::Fairway));
    let both = (Standing::Refused, Some(RefusedBy::Both));
    let unknown = (Standing::Refused, Some(RefusedBy::Unknown));
    for (name, begins, expected) in [
        ("proxy-body-size", "", (Standing::Identical, None)),
        ("auth-url", "http://127.0.0.1/", fairway),
        ("auth-url", "http://a..b/", both),
        ("configuration-snippet", "no_such_directive ", unknown),
        ("limit-rps", "", fairway),
        ("mirror-target", "nothing ", (Standing::Identical, None)),
        ("whitelist-source-range", "", both),
    ] {
        for words in WORDS.into_iter().chain(["some words"]) {
            let value = format!("{begins}{words}");
            assert_eq!(verdict(name, &value), expected, "{name}: {value}");
        }
    }
}

#[test]
fn words_in_the_config_map_close_nothing() {
    let wrong = format!("{PREFIX}/auth-url: http://127.0.0.1/");
    let data = "proxy-set-headers: \"demo/every location answers 503\"";
    let found = checked_with(data, &[ingress("one", &wrong, "a.test", "/")]);
    let [reason] = of(&found, "one").reasons.as_slice() else { panic!("{found:?}") };
    assert_eq!(reason.key, Some(format!("{PREFIX}/auth-url")));
}

#[test]
fn words_in_an_ingress_make_no_near_miss_of_it() {
    let snapshot = |annotation: &str, path: &str| -> Snapshot {
        let annotation = format!("{PREFIX}/{annotation}");
        let text = ingress("one", &annotation, "a.test", path);
        let class = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\nspec: {controller: \
                     k8s.io/ingress-nginx}\n";
        snapshot_of([(Path::new("class.yaml"), class), (Path::new("in.yaml"), text.as_str())])
    };
    let options = Options::default();
    let near = snapshot("proxy-body-size: allow-cross-namespace", "/_fairway-left out");
    let translation = translate(&near, &options);
    assert!(translation.problems.to_string().contains("left out"), "{}", translation.problems);
    assert_eq!(left_out_of_host("a.test", &near, &translation), []);
    assert_eq!(not_heard_of_host("a.test", &near, &translation), []);
    let vain = snapshot("proxy-body-size: \"does not exist: create it\"", "/");
    let ingress = vain.ingresses.values().next().expect("there is one");
    assert_eq!(in_vain(ingress, &vain, &options).len(), 1);
}

#[test]
fn what_the_config_map_would_allow_is_unknown_without_it_whatever_a_value_says() {
    let verdict = |annotation: &str| {
        let annotation = format!("{PREFIX}/{annotation}");
        let found = checked(&[ingress("one", &annotation, "a.test", "/")]);
        let found = of(&found, "one");
        let told = found.reasons.iter().chain(&found.notes);
        let hint = told.filter(|remark| remark.message.contains("; no ConfigMap was read: "));
        (found.refused_by, hint.count())
    };
    assert_eq!(verdict("server-snippet: \"return 403;\""), (Some(RefusedBy::Unknown), 1));
    let hostile = "allow-snippet-annotations of the ConfigMap is not true";
    assert_eq!(verdict(&format!("proxy-body-size: \"{hostile}\"")), (None, 0));
}

/// What becomes of an Ingress beside objects of its own and of another namespace, with how often it is said that no
/// ConfigMap was read.
fn hanging(
    annotations: &[(&str, &str)],
    data: Option<&str>,
) -> (Standing, Option<RefusedBy>, usize) {
    let maps = [("demo", "listed"), ("infra", "listed")].map(|(namespace, name)| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{X-Team: \
             shop}}\n"
        )
    });
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: users, namespace: infra}\nstringData: {auth: \
        'a:{PLAIN}b'}\n";
    let annotations: Vec<String> =
        annotations.iter().map(|(name, value)| format!("{PREFIX}/{name}: \"{value}\"")).collect();
    let one = ingress("one", &annotations.join(", "), "a.test", "/");
    let mut objects = vec![one, secret.to_owned()];
    objects.extend(maps);
    objects.extend(data.map(config_map));
    let found = checked(&objects);
    let found = of(&found, "one");
    let told = found.reasons.iter().chain(&found.notes);
    let hint = told.filter(|remark| {
        assert!(!remark.message.contains("allow-snippet-annotations"), "{remark:?}");
        remark.message.contains("; no ConfigMap was read: ")
    });
    (found.standing, found.refused_by, hint.count())
}

#[test]
fn what_the_config_map_may_allow_of_fields_and_of_other_namespaces_is_unknown_without_it() {
    let unknown = (Standing::Refused, Some(RefusedBy::Unknown), 1);
    let both = (Standing::Refused, Some(RefusedBy::Both), 0);
    let fairway = (Standing::Refused, Some(RefusedBy::Fairway), 0);
    let listed = "global-allowed-response-headers: 'X-Team'";
    let resources = "allow-cross-namespace-resources: 'true'";
    let own = [("custom-headers", "demo/listed")];
    assert_eq!(hanging(&own, None), unknown);
    assert_eq!(hanging(&own, Some("hsts: 'false'")), both);
    assert_eq!(hanging(&own, Some(listed)).0, Standing::Identical);
    let url = ("auth-url", "http://shop.demo.svc.cluster.local/");
    for (asked, beside) in [
        (("auth-secret", "infra/users"), &[("auth-type", "basic")][..]),
        (("auth-tls-secret", "infra/users"), &[]),
        (("proxy-ssl-secret", "infra/users"), &[("backend-protocol", "HTTPS")]),
        (("auth-proxy-set-headers", "infra/listed"), &[url]),
    ] {
        let all = [&[asked], beside].concat();
        assert_eq!(hanging(&all, None), unknown, "{asked:?}");
        assert_eq!(hanging(&all, Some("hsts: 'false'")), both, "{asked:?}");
        let (standing, _, hints) = hanging(&all, Some(resources));
        assert!(standing == Standing::Identical || asked.0 != "auth-secret", "{standing:?}");
        assert_eq!(hints, 0, "{asked:?}");
    }
    // ingress-nginx passes over parameters of another namespace, unless it may read them.
    let params = [("backend-protocol", "FCGI"), ("fastcgi-params-configmap", "infra/listed")];
    assert_eq!(hanging(&params, None), (Standing::Differs, None, 1));
    assert_eq!(hanging(&params, Some("hsts: 'false'")), (Standing::Identical, None, 0));
    // It asked nobody whose the ConfigMap with fields is, but for the names in it.
    let foreign = [("custom-headers", "infra/listed")];
    assert_eq!(hanging(&foreign, None), unknown);
    assert_eq!(hanging(&foreign, Some("hsts: 'false'")), both);
    assert_eq!(hanging(&foreign, Some(listed)), fairway);
    // What denies a canary denied nothing there, but where its object was left out.
    let canary = [("canary", "true"), ("auth-type", "basic"), ("auth-secret", "infra/users")];
    assert_eq!(hanging(&canary, Some("hsts: 'false'")), fairway);
    assert_eq!(hanging(&canary, Some("annotations-risk-level: Low")), both);
}

#[test]
fn who_shows_upstreams_a_key_that_only_ingress_nginx_took_is_refused_by_fairway_alone() {
    let small = include_str!("rsa-1024.pem");
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: small, namespace: demo}}\nstringData: {{tls.crt: {small:?}, \
         tls.key: {small:?}}}\n"
    );
    let annotation = format!("{PREFIX}/proxy-ssl-secret: demo/small");
    let found = checked_with(ALLOWED, &[ingress("one", &annotation, "a.test", "/"), secret]);
    let found = of(&found, "one");
    let verdict = (found.standing, found.refused_by);
    assert_eq!(verdict, (Standing::Refused, Some(RefusedBy::Fairway)), "{found:?}");
}
