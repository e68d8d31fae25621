//! Which objects are shown, which Secrets have data, and what a late message does.

use super::*;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::networking::v1 as networking;
use objects::Trim;
use serde_json::json;

fn contents(pinned: &[Reference], has_selector: bool) -> Contents {
    let secrets_of: SecretsOf = Arc::new(|referrer| match referrer {
        Referrer::Ingress(ingress) => {
            let names = ingress.tls.iter().filter_map(|tls| tls.secret.as_deref());
            names.map(|name| ObjectKey::new(ingress.meta.key.namespace.clone(), name)).collect()
        }
        Referrer::ConfigMap(_) | Referrer::Gateway(_) | Referrer::ListenerSet(_) => Vec::new(),
    });
    Contents::new(pinned, secrets_of, has_selector, watch::channel(None).0)
}

fn put(object: Object) -> Change {
    Change::Put(object)
}

fn ingress(namespace: &str, secrets: &[&str]) -> Change {
    let tls: Vec<_> = secrets.iter().map(|name| json!({"secretName": name})).collect();
    put(trimmed::<networking::Ingress>(json!({
        "metadata": {"name": "web", "namespace": namespace}, "spec": {"tls": tls},
    })))
}

fn secret(namespace: &str, version: u32, data: bool) -> Object {
    let object = trimmed::<core::Secret>(json!({
        "metadata": {
            "name": "tls", "namespace": namespace, "uid": "u",
            "resourceVersion": version.to_string(),
        },
        "stringData": {"version": version.to_string()},
    }));
    match object {
        Object::Secret(mut secret) if !data => {
            Arc::make_mut(&mut secret).data = None;
            Object::Secret(secret)
        }
        other => other,
    }
}

fn namespace(name: &str) -> Change {
    put(trimmed::<core::Namespace>(json!({"metadata": {"name": name}})))
}

fn config_map(namespace: &str, name: &str) -> Change {
    put(trimmed::<core::ConfigMap>(json!({"metadata": {"name": name, "namespace": namespace}})))
}

fn tls() -> ObjectKey {
    ObjectKey::new("shop", "tls")
}

/// The version that the data of the Secret are of; none if it has no data.
fn version(contents: &Contents) -> Option<String> {
    let secret = &contents.shown.snapshot().secrets[&tls()];
    let data = secret.data.as_ref()?;
    Some(String::from_utf8_lossy(&data["version"]).into_owned())
}

#[test]
fn data_are_asked_for_when_a_reference_appears_and_dropped_when_the_last_one_goes() {
    let mut contents = contents(&[], false);
    contents.know_wanted();
    contents.apply(put(secret("shop", 1, false)));
    assert_eq!(contents.settle(), []);
    contents.apply(ingress("shop", &["tls", "absent"]));
    assert_eq!(contents.settle(), [tls()]);
    assert!(contents.wanted.borrow().as_ref().is_some_and(|wanted| wanted.contains(&tls())));
    contents.apply(put(secret("shop", 1, true)));
    assert_eq!(contents.settle(), []);
    assert_eq!(version(&contents).as_deref(), Some("1"));
    contents.apply(ingress("shop", &[]));
    assert_eq!(contents.settle(), []);
    assert_eq!(version(&contents), None);
    assert!(contents.wanted.borrow().as_ref().is_some_and(OrdSet::is_empty));
}

#[test]
fn what_is_wanted_at_start_is_known_before_any_secret_comes() {
    let pinned = [Reference::Secret(ObjectKey::new("fairway", "default"))];
    let mut contents = contents(&pinned, false);
    contents.apply(ingress("shop", &["tls"]));
    assert_eq!(contents.settle(), []);
    assert!(contents.wanted.borrow().is_none());
    contents.know_wanted();
    let wanted = contents.wanted.borrow().clone().unwrap();
    assert_eq!(wanted, OrdSet::from_iter([ObjectKey::new("fairway", "default"), tls()]));
}

#[test]
fn what_a_watch_tells_counts_though_it_is_older_than_what_was_there() {
    let mut contents = contents(&[], false);
    contents.apply(ingress("shop", &["tls"]));
    contents.know_wanted();
    for told in [9, 10, 9] {
        contents.apply(put(secret("shop", told, true)));
        assert_eq!(version(&contents), Some(told.to_string()), "etcd was put back to a backup");
    }
    // Told again without its data, which were not wanted yet when it was read.
    contents.apply(put(secret("shop", 9, false)));
    assert_eq!(version(&contents).as_deref(), Some("9"));
    contents.apply(put(secret("shop", 11, false)));
    assert!(contents.lacks_data(&tls()));
    assert_eq!(contents.settle(), [tls()]);
    contents.apply(Change::Removed(Kind::Secret, tls()));
    assert!(contents.shown.snapshot().secrets.is_empty());
    assert!(!contents.lacks_data(&tls()));
}

/// One whose Secret is wanted, and known in version 9 without its data.
fn lacking() -> Contents {
    let mut contents = contents(&[], false);
    contents.know_wanted();
    contents.apply(put(secret("shop", 9, false)));
    contents.apply(ingress("shop", &["tls"]));
    assert_eq!((contents.settle(), contents.version_of(&tls())), (vec![tls()], Some(9)));
    contents
}

#[test]
fn a_secret_that_was_asked_for_stays_until_its_watch_has_come_as_far() {
    let mut contents = lacking();
    assert!(contents.fetched(secret("shop", 12, true), Some(9)));
    for (told, data) in [(10, true), (11, false), (12, false)] {
        contents.apply(put(secret("shop", told, data)));
        assert_eq!(version(&contents).as_deref(), Some("12"));
    }
    contents.apply(put(secret("shop", 11, true)));
    assert_eq!(version(&contents).as_deref(), Some("11"), "the watch has come as far");
    let mut contents = lacking();
    assert!(contents.fetched(secret("shop", 12, true), Some(9)));
    contents.secrets_are_listed();
    contents.apply(put(secret("shop", 8, true)));
    assert_eq!(version(&contents).as_deref(), Some("8"), "a list says how things are");
}

#[test]
fn what_was_asked_for_before_the_watch_told_of_something_later_is_not_taken() {
    let mut contents = lacking();
    contents.apply(put(secret("shop", 11, false)));
    assert!(!contents.fetched(secret("shop", 10, true), Some(9)));
    assert!(contents.lacks_data(&tls()), "it is asked for once more");
    assert!(contents.fetched(secret("shop", 10, true), Some(11)));
    assert_eq!(version(&contents).as_deref(), Some("10"), "etcd was put back to a backup");
    let mut contents = lacking();
    contents.apply(Change::Removed(Kind::Secret, tls()));
    contents.fetched(secret("shop", 9, true), Some(9));
    assert!(contents.shown.snapshot().secrets.is_empty(), "it is gone");
}

#[test]
fn objects_come_and_go_with_the_labels_of_their_namespace_but_pinned_ones_stay() {
    let main = ObjectKey::new("shop", "main");
    let mut contents = contents(&[Reference::ConfigMap(main.clone())], true);
    contents.know_wanted();
    contents.apply(ingress("shop", &["tls"]));
    contents.apply(ingress("shopping", &[]));
    contents.apply(config_map("shop", "main"));
    contents.apply(config_map("shop", "other"));
    contents.apply(put(secret("shop", 1, false)));
    let shown = |contents: &Contents| {
        let all = contents.shown.snapshot();
        (all.ingresses.len(), all.config_maps.len(), all.secrets.len())
    };
    assert_eq!(shown(&contents), (0, 1, 0));
    contents.apply(namespace("shop"));
    assert_eq!(shown(&contents), (1, 2, 1));
    assert_eq!(contents.settle(), [tls()]);
    contents.apply(put(secret("shop", 1, true)));
    contents.settle();
    contents.apply(Change::Removed(Kind::Namespace, ObjectKey::new("", "shop")));
    assert_eq!(shown(&contents), (0, 1, 0));
    assert!(contents.shown.snapshot().config_maps.contains_key(&main));
    contents.settle();
    contents.apply(namespace("shop"));
    assert_eq!(contents.settle(), [tls()], "data are not held for what is not shown");
}

#[test]
fn an_object_that_cannot_be_read_keeps_its_last_good_version_until_it_is_mended() {
    let mut contents = contents(&[], false);
    contents.apply(config_map("shop", "main"));
    let key = ObjectKey::new("shop", "main");
    contents.apply(Change::Malformed(Kind::ConfigMap, key.clone(), "data is 7".to_owned()));
    let broken = contents.publish().unwrap();
    assert!(broken.config_maps.contains_key(&key));
    let report = &broken.malformed["ConfigMap shop/main"];
    assert_eq!(report.message, "data is 7; its last good version, if any, still counts");
    contents.apply(config_map("shop", "main"));
    assert!(contents.publish().unwrap().malformed.is_empty());
    contents.apply(Change::Malformed(Kind::ConfigMap, key.clone(), "data is 7".to_owned()));
    contents.apply(Change::Removed(Kind::ConfigMap, key));
    let gone = contents.publish().unwrap();
    assert!(gone.config_maps.is_empty() && gone.malformed.is_empty());
}

/// An object as tests write it.
fn trimmed<K: Trim>(object: serde_json::Value) -> Object {
    serde_json::from_value::<K>(object).expect("the object fits its kind").trim().expect("trims")
}
