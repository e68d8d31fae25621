//! Guards of the ConfigMap that are no longer understood.

use crate::builders::*;
use objects::Snapshot;
use std::sync::Arc;
use translate::{Options, Translation, Translator, translate};

const BAD: (&str, &str) = ("whitelist-source-range", "10.0.0.0/8,oops");
const GOOD: (&str, &str) = ("whitelist-source-range", "10.0.0.0/8");

fn options() -> Options {
    Options { config_map: Some(key("demo", "settings")), ..Options::default() }
}

fn shop() -> Snapshot {
    let mut snapshot = cluster();
    put_service(&mut snapshot, service("demo", "s", 80));
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/", "s"));
    snapshot
}

fn with(
    translator: &mut Translator,
    snapshot: &mut Snapshot,
    data: &[(&str, &str)],
) -> Translation {
    put_config_map(snapshot, config_map("demo", "settings", data));
    translator.update(snapshot)
}

/// The networks that are let in; none where the location is closed.
fn allowed(translation: &Translation, host: &str) -> Option<String> {
    if is_denied(&translation.configuration, host, "/") {
        return None;
    }
    let root = location(&translation.configuration, host, "/", model::PathKind::Prefix);
    Some(format!("{:?}", root.expect("a location").policy.access.allow))
}

#[test]
fn a_typo_in_a_guard_leaves_the_text_before_in_force_until_it_is_mended() {
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    let good = with(&mut translator, &mut snapshot, &[GOOD]);
    let ten = allowed(&good, "shop.test").expect("it is open");
    assert!(ten.contains("10.0.0.0/8"), "{ten}");
    let bad = with(&mut translator, &mut snapshot, &[BAD, ("proxy-read-timeout", "7")]);
    assert_eq!(allowed(&bad, "shop.test"), Some(ten.clone()));
    let said = "Error: ConfigMap demo/settings: whitelist-source-range: \"10.0.0.0/8,oops\" has the item \"oops\", \
                which is no network: write networks such as 10.0.0.0/8, comma separated; the text before stays in \
                force until it is mended; a Pod that starts meanwhile does not know it, and answers 503\n";
    assert_eq!(bad.problems.to_string(), said);
    let root = location(&bad.configuration, "shop.test", "/", model::PathKind::Prefix);
    assert_eq!(root.expect("a location").policy.timeouts.read.as_secs(), 7, "other keys count");
    // What comes later is guarded by it, too, and another typo changes nothing.
    put_ingress(&mut snapshot, simple("demo", "late", "late.test", "/", "s"));
    assert_eq!(allowed(&translator.update(&snapshot), "late.test"), Some(ten.clone()));
    let worse = with(&mut translator, &mut snapshot, &[("whitelist-source-range", "oops")]);
    assert_eq!(allowed(&worse, "late.test"), Some(ten));
    let mended = with(&mut translator, &mut snapshot, &[("whitelist-source-range", "11.0.0.0/8")]);
    assert!(allowed(&mended, "late.test").is_some_and(|it| it.contains("11.0.0.0/8")));
    assert!(mended.problems.is_empty(), "{}", mended.problems);
}

#[test]
fn a_guard_of_which_nothing_is_known_closes_everything() {
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    let start = with(&mut translator, &mut snapshot, &[BAD]);
    assert_eq!(allowed(&start, "shop.test"), None, "nothing is known at a start");
    assert!(start.problems.to_string().contains("every location answers 503"));
    assert!(start.closed.is_some_and(|why| why.starts_with("whitelist-source-range")));
    let other = with(&mut translator, &mut snapshot, &[("whitelist-source-range", "worse")]);
    assert_eq!(allowed(&other, "shop.test"), None, "nothing is known yet");
}

/// Whoever makes it says for the first time what is to be guarded.
#[test]
fn a_config_map_that_is_made_while_a_pod_runs_is_like_a_start() {
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    translator.update(&snapshot);
    for bad in [BAD, ("global-auth-url", "nowhere at all"), ("server-snippet", "deny nowhere;")] {
        let made = with(&mut translator, &mut snapshot, &[bad]);
        assert!(made.closed.is_some(), "{bad:?}: {}", made.problems);
        with(&mut translator, &mut snapshot, &[GOOD]);
        snapshot.config_maps.remove(&key("demo", "settings"));
        assert!(translator.update(&snapshot).closed.is_none(), "it is gone");
    }
}

/// Whether a Snapshot came in between that was without it is chance, and each replica has its own.
#[test]
fn a_config_map_that_was_made_anew_is_like_a_start_whether_or_not_it_was_seen_to_be_gone() {
    let made = |uid: &str, (name, text): (&str, &str)| {
        let mut map = config_map("demo", "settings", &[(name, text)]);
        map.meta.uid = uid.into();
        map
    };
    let snippets = (("server-snippet", "deny 192.0.2.1;"), ("server-snippet", "deny nowhere;"));
    let auth = (("global-auth-url", "http://auth.test/"), ("global-auth-url", "nowhere at all"));
    for (good, bad) in [(GOOD, BAD), snippets, auth] {
        for is_seen in [true, false] {
            let (mut translator, mut snapshot) = (Translator::new(options()), shop());
            put_config_map(&mut snapshot, made("a", good));
            assert!(translator.update(&snapshot).closed.is_none(), "{good:?}");
            put_config_map(&mut snapshot, made("a", bad));
            assert!(
                translator.update(&snapshot).closed.is_none(),
                "{bad:?}: the text before stays"
            );
            if is_seen {
                snapshot.config_maps.remove(&key("demo", "settings"));
                translator.update(&snapshot);
            }
            put_config_map(&mut snapshot, made("b", bad));
            let anew = translator.update(&snapshot);
            assert_eq!(anew.closed, translate(&snapshot, &options()).closed);
            assert!(anew.closed.is_some(), "{bad:?} {is_seen}: {}", anew.problems);
        }
    }
}

#[test]
fn a_snippet_that_was_not_there_a_moment_ago_is_not_there_until_it_is_understood() {
    let (wrong, worse) = (("server-snippet", "deny nowhere;"), ("server-snippet", "deny x;"));
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    let open = with(&mut translator, &mut snapshot, &[]).configuration;
    for snippet in [wrong, worse] {
        let still = with(&mut translator, &mut snapshot, &[snippet]);
        assert_eq!(still.configuration, open, "{snippet:?}");
        assert!(still.problems.to_string().contains("there was none before"), "{}", still.problems);
    }
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    for snippet in [wrong, worse] {
        let start = with(&mut translator, &mut snapshot, &[snippet]);
        assert!(start.closed.is_some_and(|why| why.contains("line 1")), "{snippet:?}");
    }
}

/// As in ingress-nginx, which takes no such change: what was open a moment ago stays so, and a new Pod is not ready.
#[test]
fn a_guard_that_was_not_there_a_moment_ago_is_not_there_until_it_can_be_read() {
    for bad in [BAD, ("block-cidrs", "1.2.3"), ("global-auth-url", "nowhere at all")] {
        let (mut translator, mut snapshot) = (Translator::new(options()), shop());
        let open = with(&mut translator, &mut snapshot, &[]);
        let still = with(&mut translator, &mut snapshot, &[bad]);
        assert_eq!(still.configuration, open.configuration, "{bad:?}");
        let said = still.problems.to_string();
        assert!(said.starts_with("Error: ") && said.contains("there was none before"), "{said}");
        let again = with(&mut translator, &mut snapshot, &[bad, ("proxy-read-timeout", "7")]);
        assert_eq!(again.problems.to_string(), said);
        with(&mut translator, &mut snapshot, &[GOOD]);
        with(&mut translator, &mut snapshot, &[]);
        let anew = with(&mut translator, &mut snapshot, &[bad]);
        assert_eq!(anew.configuration, open.configuration, "{bad:?}: it was taken away");
    }
}

/// Nobody is believed where that is what is written; everybody, by default, is another thing.
#[test]
fn who_believes_nobody_goes_on_to_do_so() {
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    let nobody = ("proxy-real-ip-cidr", "");
    let before = with(&mut translator, &mut snapshot, &[nobody]);
    assert!(before.configuration.global.real_ip.trusted.is_empty());
    let after = with(&mut translator, &mut snapshot, &[("proxy-real-ip-cidr", "oops")]);
    assert!(after.configuration.global.real_ip.trusted.is_empty());
}

#[test]
fn where_it_cannot_be_read_who_is_believed_it_stays_as_it_was_or_is_nobody() {
    let trusted =
        |translation: &Translation| translation.configuration.global.real_ip.trusted.clone();
    let (good, bad) =
        (("proxy-real-ip-cidr", "10.0.0.0/8"), ("proxy-real-ip-cidr", "10.0.0.0/8,11.0.0.0/33"));
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    let start = with(&mut translator, &mut snapshot, &[bad]);
    assert!(trusted(&start).is_empty());
    assert!(start.closed.is_none());
    let said = start.problems.to_string();
    assert!(said.starts_with("Error: ") && said.contains("nobody is believed"), "{said}");
    for asks in ["use-forwarded-headers", "enable-real-ip", "use-proxy-protocol"] {
        let closed = with(&mut translator, &mut snapshot, &[bad, (asks, "true")]);
        let why = closed.closed.as_deref().unwrap_or_default();
        assert!(why.starts_with("proxy-real-ip-cidr"), "{asks}: {why}");
        assert_eq!(allowed(&closed, "shop.test"), None, "{asks}");
    }
    let ten = trusted(&with(&mut translator, &mut snapshot, &[good]));
    assert!(!ten.is_empty());
    let kept = with(&mut translator, &mut snapshot, &[bad]);
    assert_eq!(trusted(&kept), ten);
    let said = kept.problems.to_string();
    assert!(
        said.contains("stays in force") && said.ends_with("if it is to believe anybody\n"),
        "{said}"
    );
}

#[test]
fn a_config_map_that_is_gone_is_told_of_until_it_is_there_again() {
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    let said = |problems: &translate::Problems| problems.to_string().contains("it is gone");
    assert!(!said(&translator.update(&snapshot).problems), "it never was there");
    with(&mut translator, &mut snapshot, &[GOOD]);
    snapshot.config_maps.remove(&key("demo", "settings"));
    assert!(said(&translator.update(&snapshot).problems));
    put_service(&mut snapshot, service("demo", "another", 80));
    assert!(said(&translator.update(&snapshot).problems), "as long as it is");
    assert!(!said(&with(&mut translator, &mut snapshot, &[GOOD]).problems));
}

/// Reports that something in a file could not be read, be it known what.
fn cannot_be_read(snapshot: &mut Snapshot, of: Option<(objects::Kind, objects::ObjectKey)>) {
    let label = of.iter().map(|(kind, key)| kind.label(key) + " ").collect::<String>();
    let malformed = objects::Malformed {
        kind: None,
        key: key("", "x.yaml:1:1"),
        of,
        why: objects::Unread::Wrong,
        message: "no text".to_owned(),
    };
    snapshot.malformed.clear();
    snapshot.malformed.insert((label + "x.yaml:1:1 no text").into(), Arc::new(malformed));
}

#[test]
fn a_config_map_that_cannot_be_read_at_a_start_closes_everything_until_it_can() {
    let settings = Some((objects::Kind::ConfigMap, key("demo", "settings")));
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    cannot_be_read(&mut snapshot, settings.clone());
    let shut = translator.update(&snapshot);
    assert_eq!(allowed(&shut, "shop.test"), None);
    assert!(shut.closed.is_some(), "the process is not ready");
    let said = "Error: ConfigMap demo/settings: it could not be read, and --configmap names it: every location answers \
                503 until it is mended, since nobody knows what it guards\n";
    assert!(shut.problems.to_string().contains(said), "{}", shut.problems);
    // While it is mended, the file may be such that nobody can tell what is in it.
    cannot_be_read(&mut snapshot, None);
    assert!(translator.update(&snapshot).closed.is_some());
    snapshot.malformed.clear();
    let good = with(&mut translator, &mut snapshot, &[GOOD]);
    assert!(allowed(&good, "shop.test").is_some_and(|it| it.contains("10.0.0.0/8")));
    assert!(good.closed.is_none() && good.problems.is_empty(), "{}", good.problems);
    // Its last good version counts from now on, and stays in the Snapshot.
    cannot_be_read(&mut snapshot, settings.clone());
    assert_eq!(translator.update(&snapshot).configuration, good.configuration);
    // Whoever takes it away opens what it guarded, and is told so.
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    cannot_be_read(&mut snapshot, settings);
    translator.update(&snapshot);
    snapshot.malformed.clear();
    let gone = translator.update(&snapshot);
    assert!(gone.closed.is_none() && gone.problems.to_string().contains("it is gone"));
}

#[test]
fn a_config_map_that_may_be_in_a_file_that_nobody_can_read_at_a_start_closes_everything() {
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    cannot_be_read(&mut snapshot, None);
    let shut = translator.update(&snapshot);
    assert!(shut.closed.is_some() && allowed(&shut, "shop.test").is_none());
    let said = "it is not to be seen, --configmap names it, and there is a file of which nothing can be read";
    assert!(shut.problems.to_string().contains(said), "{}", shut.problems);
    // It is not: there is none, and that is all right.
    snapshot.malformed.clear();
    assert!(translator.update(&snapshot).closed.is_none());
    // From then on it is known what there was.
    cannot_be_read(&mut snapshot, None);
    assert!(translator.update(&snapshot).closed.is_none());
    // Where it is there, and where none is named, another file closes nothing.
    let is_open = |snapshot: &Snapshot, options: &Options| {
        let found = translate(snapshot, options);
        assert!(found.closed.is_none(), "{}", found.problems);
    };
    is_open(&snapshot, &Options { config_map: None, ..options() });
    put_config_map(&mut snapshot, config_map("demo", "settings", &[]));
    is_open(&snapshot, &options());
}

#[test]
fn what_else_cannot_be_read_at_a_start_closes_nothing_for_all() {
    let whole = |of| {
        let mut snapshot = shop();
        cannot_be_read(&mut snapshot, of);
        translate(&snapshot, &options())
    };
    let open = translate(&shop(), &options()).configuration;
    for of in [
        Some((objects::Kind::Secret, key("demo", "settings"))),
        Some((objects::Kind::ConfigMap, key("demo", "settings-2"))),
        Some((objects::Kind::ConfigMap, key("other", "settings"))),
    ] {
        let found = whole(of.clone());
        assert!(found.closed.is_none() && found.configuration == open, "{of:?}");
    }
}

#[test]
fn a_comma_at_the_end_of_a_list_for_all_is_no_item() {
    for key in ["whitelist-source-range", "denylist-source-range"] {
        let mut snapshot = shop();
        put_config_map(&mut snapshot, config_map("demo", "settings", &[(key, "10.0.0.0/8,")]));
        let comma = translate(&snapshot, &options());
        put_config_map(&mut snapshot, config_map("demo", "settings", &[(key, "10.0.0.0/8")]));
        assert_eq!(comma.configuration, translate(&snapshot, &options()).configuration);
        assert!(!comma.problems.to_string().contains(key), "{}", comma.problems);
    }
}

#[test]
fn whoever_knows_the_same_of_before_keeps_the_same() {
    for (good, bad) in [
        (GOOD, BAD),
        (GOOD, ("whitelist-source-range", "10.0.0.0/8, ,10.1.0.0/16")),
        (("denylist-source-range", "10.0.0.0/8"), ("denylist-source-range", "oops")),
        (("denylist-source-range", "10.0.0.0/8"), ("denylist-source-range", ",")),
        (("block-cidrs", "10.0.0.0/8"), ("block-cidrs", "oops")),
        (("block-user-agents", "~*bot"), ("block-user-agents", "~*(bot")),
        (("block-referers", "~*spam"), ("block-referers", "~*(spam")),
        (("proxy-real-ip-cidr", "10.0.0.0/8"), ("proxy-real-ip-cidr", "oops")),
    ] {
        let (mut step_by_step, mut snapshot) = (Translator::new(options()), shop());
        with(&mut step_by_step, &mut snapshot, &[good]);
        let kept = with(&mut step_by_step, &mut snapshot, &[bad]);
        assert!(kept.changes.is_empty(), "{bad:?}");
        put_ingress(&mut snapshot, simple("demo", "late", "late.test", "/", "s"));
        let followed = step_by_step.update(&snapshot);
        let mut at_once = Translator::new(options());
        with(&mut at_once, &mut snapshot, &[good]);
        let whole = with(&mut at_once, &mut snapshot, &[bad]);
        assert_eq!(followed.configuration, whole.configuration, "{bad:?}");
        assert_eq!(followed.problems, whole.problems, "{bad:?}");
        assert!(followed.problems.to_string().contains("stays in force"), "{}", followed.problems);
        let mut as_meant = snapshot.clone();
        put_config_map(&mut as_meant, config_map("demo", "settings", &[good]));
        let meant = translate(&as_meant, &options());
        assert_eq!(followed.configuration, meant.configuration, "{bad:?}");
    }
}

#[test]
fn the_authenticator_for_all_stays_with_all_of_its_keys() {
    let (mut translator, mut snapshot) = (Translator::new(options()), shop());
    let (url, sign_in) =
        (("global-auth-url", "https://auth.example.com/check"), "global-auth-signin");
    let good = with(&mut translator, &mut snapshot, &[url, (sign_in, "https://auth.example.com")]);
    for bad in [
        &[("global-auth-url", "nowhere at all"), (sign_in, "https://other.example.com")][..],
        &[url, (sign_in, "https://other.example.com/$nope")],
    ] {
        let kept = with(&mut translator, &mut snapshot, bad);
        assert_eq!(kept.configuration, good.configuration, "{bad:?}");
        assert!(kept.problems.to_string().contains("stays in force"), "{}", kept.problems);
    }
    let off = with(&mut translator, &mut snapshot, &[]);
    assert!(off.problems.is_empty() && off.configuration != good.configuration);
}
