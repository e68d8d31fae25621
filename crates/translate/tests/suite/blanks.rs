//! Annotations of blanks, and space around and within values: what it takes to switch a guard off.

use crate::builders::*;
use crate::check::{checked, checked_with, ingress as written, of};
use model::{Backend, PathKind};
use objects::Snapshot;
use translate::{Options, RefusedBy, Standing, Translator, annotation_rows, translate};

const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// Annotations of which ingress-nginx refuses blanks, since none of its own checks takes them: Go reads no boolean and
/// no number of them, and the pattern takes nothing when the spaces are gone.
const REFUSED: [&str; 22] = [
    "allowlist-source-range",
    "auth-type",
    "client-body-buffer-size",
    "connection-proxy-header",
    "default-backend",
    "denylist-source-range",
    "fastcgi-index",
    "from-to-www-redirect",
    "limit-allowlist",
    "limit-connections",
    "limit-rpm",
    "limit-rps",
    "limit-whitelist",
    "load-balance",
    "permanent-redirect",
    "permanent-redirect-code",
    "relative-redirects",
    "ssl-passthrough",
    "temporal-redirect",
    "upstream-hash-by-subset",
    "upstream-hash-by-subset-size",
    "whitelist-source-range",
];

fn shop(annotations: &[(&str, &str)], data: &[(&str, &str)]) -> Snapshot {
    let mut snapshot = cluster();
    put_service(&mut snapshot, service("demo", "s", 80));
    let mut shop = simple("demo", "shop", "shop.test", "/", "s");
    for (name, value) in annotations {
        annotate(&mut shop, name, value);
    }
    put_ingress(&mut snapshot, shop);
    put_config_map(&mut snapshot, config_map("demo", "settings", data));
    snapshot
}

fn options() -> Options {
    Options { config_map: Some(key("demo", "settings")), ..Options::default() }
}

fn denies(snapshot: &Snapshot, options: &Options) -> bool {
    is_denied(&translate(snapshot, options).configuration, "shop.test", "/")
}

#[test]
fn blanks_are_no_way_to_switch_a_guard_off() {
    for annotation in ["auth-type", "limit-rps", "limit-rpm", "limit-connections"] {
        for blank in [" ", "\t", "\n", " \n "] {
            let mut translator = Translator::new(options());
            let good = [(annotation, if annotation == "auth-type" { "basic" } else { "1" })];
            let secret = ("auth-secret", "users");
            let mut snapshot = shop(&[good[0], secret], &[]);
            put_secret(&mut snapshot, secret_with_a_user());
            let root = |found: &translate::Translation| {
                let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
                root.expect("a root").policy.clone()
            };
            let before = root(&translator.update(&snapshot));
            assert!(before.auth_basic.is_some() || before.limits != Default::default());
            put_ingress(&mut snapshot, {
                let mut shop = simple("demo", "shop", "shop.test", "/", "s");
                annotate(&mut shop, annotation, blank);
                annotate(&mut shop, secret.0, secret.1);
                shop
            });
            let found = translator.update(&snapshot);
            assert_eq!(root(&found), before, "{annotation}: {blank:?}: {}", found.problems);
            let said = found.problems.to_string();
            assert!(said.contains(annotation) && said.contains("not taken"), "{said}");
            // Where no valid version is known nobody gets in.
            assert!(denies(&snapshot, &options()), "{annotation}: {blank:?}");
        }
    }
}

fn secret_with_a_user() -> objects::Secret {
    secret("demo", "users", &[("auth", "me:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=")])
}

#[test]
fn blanks_take_an_ingress_out_where_ingress_nginx_takes_them_for_a_bad_value() {
    let all = [("annotations-risk-level", "Critical"), ("allow-snippet-annotations", "true")];
    let rows = annotation_rows();
    let names = rows.iter().flat_map(|row| row.aliases.iter().copied().chain([row.name]));
    let mut denied: Vec<&str> =
        names.filter(|name| denies(&shop(&[(*name, "  ")], &all), &options())).collect();
    denied.sort_unstable();
    denied.dedup();
    assert_eq!(denied, REFUSED);
    // Beside what they belong to.
    let secret = ("auth-secret", "users");
    for (beside, name, refused) in [
        (&[("auth-type", "basic"), secret][..], "auth-secret-type", true),
        (&[("auth-type", "basic"), secret], "auth-realm", false),
        (&[("temporal-redirect", "https://t.test")], "temporal-redirect-code", true),
        (&[("auth-tls-secret", "demo/ca")], "auth-tls-match-cn", true),
        (&[("auth-tls-secret", "demo/ca")], "auth-tls-pass-certificate-to-upstream", true),
        (&[("auth-tls-secret", "demo/ca")], "auth-tls-error-page", false),
    ] {
        let mut snapshot = shop(&[beside, &[(name, " ")]].concat(), &[]);
        put_secret(&mut snapshot, secret_with_a_user());
        assert_eq!(denies(&snapshot, &options()), refused, "{name}");
    }
    // Where values are not validated, it reads such a text as none.
    let free = Options { validate_annotations: false, ..options() };
    for name in ["auth-type", "limit-rps", "permanent-redirect"] {
        assert!(!denies(&shop(&[(name, " ")], &[]), &free), "{name}");
    }
}

#[test]
fn blanks_hide_the_other_name_of_a_list_and_nothing_does_not() {
    let (first, other) = ("allowlist-source-range", ("whitelist-source-range", "127.0.0.1"));
    for validate_annotations in [true, false] {
        let options = Options { validate_annotations, ..options() };
        assert!(denies(&shop(&[(first, " "), other], &[]), &options));
        assert!(denies(&shop(&[(first, ""), (other.0, " ")], &[]), &options));
        assert!(denies(&shop(&[(first, "")], &[]), &options));
        let found = translate(&shop(&[(first, ""), other], &[]), &options);
        let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        let allow = root.expect("a root").policy.access.allow.clone();
        assert!(allow.is_some_and(|allow| format!("{allow:?}").contains("127.0.0.1")));
    }
    let limit = ("limit-rps", "1");
    assert!(denies(
        &shop(&[limit, ("limit-allowlist", " "), ("limit-whitelist", "10.0.0.1")], &[]),
        &options()
    ));
    assert!(!denies(
        &shop(&[limit, ("limit-allowlist", ""), ("limit-whitelist", "10.0.0.1")], &[]),
        &options()
    ));
}

#[test]
fn who_takes_himself_out_of_the_guard_of_all_writes_it_without_space() {
    let data = [("global-auth-url", "http://auth.example/")];
    let is_asked = |value: &str, validate_annotations: bool| {
        let snapshot = shop(&[("enable-global-auth", value)], &data);
        let options = Options { validate_annotations, ..options() };
        let found = translate(&snapshot, &options);
        let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        root.expect("a root").policy.auth_external.is_some()
    };
    for validate in [true, false] {
        for on in [" false", "false ", "false\n", "no", "", " ", "true"] {
            assert!(is_asked(on, validate), "{on:?}");
        }
        for off in ["false", "F", "0"] {
            assert!(!is_asked(off, validate), "{off:?}");
        }
    }
}

#[test]
fn a_weight_of_a_canary_has_no_space_around_it() {
    let share = |weight: &str, total: &str, validate_annotations: bool| {
        let mut snapshot = shop(&[], &[]);
        put_service(&mut snapshot, service("demo", "next", 80));
        let mut canary = simple("demo", "canary", "shop.test", "/", "next");
        let asked = [("canary", "true"), ("canary-weight", weight), ("canary-weight-total", total)];
        for (name, value) in asked {
            annotate(&mut canary, name, value);
        }
        put_ingress(&mut snapshot, canary);
        let found = translate(&snapshot, &Options { validate_annotations, ..options() });
        let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        let canary = root.expect("a root").canary.clone().expect("a canary");
        (canary.rules.weight, canary.rules.weight_total)
    };
    for validate in [true, false] {
        assert_eq!(share("30", "200", validate), (30, 200));
        assert_eq!(share(" 30", "200", validate), (0, 200));
        assert_eq!(share("30\n", "200 ", validate), (0, 100));
    }
}

#[test]
fn space_that_makes_no_value_of_it_to_ingress_nginx_is_a_difference() {
    let verdict = |annotations: &[(&str, &str)], data: &str| {
        let texts = annotations.iter().map(|(name, value)| format!("{PREFIX}/{name}: \"{value}\""));
        let texts = texts.collect::<Vec<_>>().join(", ");
        let found = checked_with(data, &[written("one", &texts, "a.test", "/")]);
        let one = of(&found, "one");
        let told =
            one.reasons.iter().any(|reason| reason.message.contains("for the space around it"));
        (one.standing, told)
    };
    let (differs, same) = ((Standing::Differs, true), (Standing::Identical, false));
    for (name, value, expected) in [
        ("enable-cors", " true", differs),
        ("enable-cors", "true", same),
        ("enable-cors", " false", same),
        ("enable-cors", " maybe", same),
        ("proxy-read-timeout", " 5", differs),
        ("proxy-read-timeout", " 60", same),
        ("limit-rps", "5 ", differs),
        ("ssl-passthrough", " false", differs),
        ("enable-access-log", "false\\n", differs),
        // These are read there as they are here.
        ("enable-global-auth", " false", same),
        ("ssl-redirect", " false", same),
        ("affinity", " cookie ", same),
    ] {
        assert_eq!(verdict(&[(name, value)], ""), expected, "{name}: {value:?}");
    }
    // What it falls back to is the ConfigMap's.
    assert_eq!(verdict(&[("proxy-read-timeout", " 5")], "proxy-read-timeout: '5'"), same);
    assert_eq!(verdict(&[("proxy-read-timeout", " 60")], "proxy-read-timeout: '5'"), differs);
}

#[test]
fn both_refuse_a_blank_guard() {
    let annotation = format!("{PREFIX}/auth-type: ' '");
    let found = checked(&[written("one", &annotation, "a.test", "/")]);
    let one = of(&found, "one");
    assert_eq!((one.standing, one.refused_by), (Standing::Refused, Some(RefusedBy::Both)));
}

#[test]
fn a_size_with_space_within_it_is_nginx_s_own_and_not_that_of_all() {
    const MIB: Option<u64> = Some(1 << 20);
    for (own, of_all, expected) in [
        ("1 k", "2m", MIB),
        ("1 k", "0", MIB),
        ("5 b", "0", MIB),
        ("5b", "0", MIB),
        ("1 0", "0", MIB),
        ("3m", "0", Some(3 << 20)),
        (" 3m ", "0", Some(3 << 20)),
        ("3 mm", "2m", Some(2 << 20)),
        ("k", "2m", Some(2 << 20)),
        ("", "1 k", MIB),
        ("", "0", None),
    ] {
        let snapshot = shop(&[("proxy-body-size", own)], &[("proxy-body-size", of_all)]);
        let found = translate(&snapshot, &options());
        let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        let most = root.expect("a root").policy.body.max_size;
        assert_eq!(most, expected, "{own:?} {of_all:?}");
        let is_told = found.problems.to_string().contains("nginx's default of 1m counts");
        assert_eq!(is_told, expected == MIB, "{own:?}: {}", found.problems);
    }
}

/// ingress-nginx takes it and tells nginx nothing, so that the size is that of the process.
#[test]
fn a_size_of_a_buffer_with_space_within_it_is_none_of_its_own() {
    for (own, expected) in [("2k", Some(2048)), (" 2K ", Some(2048)), ("2 k", None), ("2b", None)] {
        let found = translate(&shop(&[("client-body-buffer-size", own)], &[]), &options());
        let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        assert_eq!(root.expect("a root").policy.body.request_buffer, expected, "{own}");
    }
}

#[test]
fn a_level_of_risk_that_is_none_is_the_strictest_however_empty_it_is() {
    for (level, taken) in [
        (Some("High"), true),
        (Some("high"), true),
        (None, true),
        (Some("Low"), false),
        (Some("bogus"), false),
        (Some(""), false),
        (Some(" "), false),
        (Some("High "), false),
        (Some("High\n"), false),
    ] {
        let data: Vec<_> =
            level.map(|level| ("annotations-risk-level", level)).into_iter().collect();
        let found = translate(&shop(&[("server-alias", "x.test")], &data), &options());
        let root = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        let is_taken = !matches!(root.expect("a root").backend, Backend::Denied(_));
        assert_eq!(is_taken, taken, "{level:?}");
        let is_told = found.problems.to_string().contains("it counts as Low, the strictest");
        assert_eq!(is_told, !taken && level != Some("Low"), "{level:?}: {}", found.problems);
    }
}
