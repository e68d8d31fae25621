//! `custom-http-errors` of an Ingress beside that of the ConfigMap, and where a `default-backend` stands in.

use crate::builders::*;
use model::PathKind;
use model::policy::Errors;
use objects::{PathType, PortRef, Reference, ReverseIndex};
use translate::{Options, needs, references, translate};

/// Makes an Ingress ask for something that closes its paths.
const CLOSES: [(&str, &str); 2] = [("auth-type", "basic"), ("auth-secret", "missing")];

/// The error pages of a location, for what the ConfigMap and its Ingress say.
fn errors(of_all: &[(&str, &str)], own: &[(&str, &str)]) -> Option<Errors> {
    let mut snapshot = cluster();
    put_config_map(&mut snapshot, config_map("demo", "settings", of_all));
    put_service(&mut snapshot, service("demo", "pages", 80));
    let mut ingress = simple("demo", "shop", "shop.test", "/a", "s");
    own.iter().for_each(|(name, value)| annotate(&mut ingress, name, value));
    put_ingress(&mut snapshot, ingress);
    let options = Options {
        config_map: Some(key("demo", "settings")),
        default_backend_service: Some(key("demo", "errors")),
        ..Options::default()
    };
    let configuration = translate(&snapshot, &options).configuration;
    let location = location(&configuration, "shop.test", "/a", PathKind::Prefix);
    location.expect("it is there").policy.errors.clone()
}

fn statuses(errors: Option<Errors>) -> Vec<u16> {
    errors.map_or(Vec::new(), |errors| errors.statuses.into_iter().collect())
}

#[test]
fn a_denied_location_has_the_pages_of_the_config_map_and_none_of_its_own() {
    let own =
        [CLOSES[0], CLOSES[1], ("custom-http-errors", "404,503"), ("default-backend", "pages")];
    assert_eq!(errors(&[], &own), None);
    let pages = errors(&[("custom-http-errors", "502,503")], &own).expect("those of all");
    assert_eq!(pages.backend, None, "the default backend of the process words them");
    assert_eq!(statuses(Some(pages)), [502, 503]);
    // It redirects nobody to a sign-in page, either.
    let sign_in = [CLOSES[0], CLOSES[1], ("auth-signin", "https://login.test/")];
    assert_eq!(statuses(errors(&[("custom-http-errors", "503")], &sign_in)), [503]);
    assert_eq!(statuses(errors(&[("custom-http-errors", "503")], &own[2..])), [404, 503]);
}

/// A host with a page for clients without certificate, if it has a Secret: error pages of its paths.
fn beside_client_certificates(with_secret: bool) -> [Vec<u16>; 3] {
    let mut snapshot = cluster();
    let (authority, _) = certificate(&["ca.test"]);
    if with_secret {
        put_secret(&mut snapshot, secret("demo", "ca", &[("ca.crt", &authority)]));
    }
    let of_all = [("custom-http-errors", "502,503")];
    put_config_map(&mut snapshot, config_map("demo", "settings", &of_all));
    let mut asks = simple("demo", "asks", "shop.test", "/a", "s");
    annotate(&mut asks, "auth-tls-error-page", "https://help.test/");
    if with_secret {
        annotate(&mut asks, "auth-tls-secret", "demo/ca");
    }
    put_ingress(&mut snapshot, asks);
    put_ingress(&mut snapshot, simple("demo", "beside", "shop.test", "/b", "s"));
    let mut own = simple("demo", "own", "shop.test", "/c", "s");
    annotate(&mut own, "custom-http-errors", "502,503");
    put_ingress(&mut snapshot, own);
    let options = Options {
        config_map: Some(key("demo", "settings")),
        default_backend_service: Some(key("demo", "errors")),
        ..Options::default()
    };
    let configuration = translate(&snapshot, &options).configuration;
    ["/a", "/b", "/c"].map(|path| {
        let location = location(&configuration, "shop.test", path, PathKind::Prefix);
        statuses(location.expect("it is there").policy.errors.clone())
    })
}

#[test]
fn a_page_for_clients_without_certificate_hides_those_of_the_config_map_from_all_of_its_host() {
    let all = vec![502, 503];
    assert_eq!(beside_client_certificates(true), [vec![], vec![], all.clone()]);
    assert_eq!(beside_client_certificates(false), [all.clone(), all.clone(), all]);
}

#[test]
fn who_signs_clients_in_has_none_of_the_pages_of_the_config_map_and_looks_at_answers_all_the_same()
{
    let of_all = ("custom-http-errors", "503");
    let asks = ("auth-url", "http://auth.example/");
    let page = ("auth-signin", "https://login.test/");
    let passes = ("disable-proxy-intercept-errors", "true");
    let looks =
        |errors: Option<Errors>| errors.map(|errors| (errors.statuses.len(), errors.intercept));
    assert_eq!(looks(errors(&[of_all], &[asks, page])), Some((0, true)));
    assert_eq!(looks(errors(&[of_all, passes], &[asks, page])), None);
    assert_eq!(looks(errors(&[of_all], &[asks])), Some((1, true)));
    // Nobody is asked, so that there is no such page.
    assert_eq!(looks(errors(&[of_all], &[page])), Some((1, true)));
    assert_eq!(looks(errors(&[of_all], &[("auth-url", ""), page])), Some((1, true)));
    let own = ("custom-http-errors", "404");
    assert_eq!(statuses(errors(&[of_all], &[asks, page, own])), [404]);
    // The same where the ConfigMap asks for all, but for the paths that it leaves out.
    let global = [
        of_all,
        ("global-auth-url", "http://auth.example/"),
        ("global-auth-signin", "https://login.test/"),
    ];
    assert_eq!(looks(errors(&global, &[])), Some((0, true)));
    assert_eq!(looks(errors(&global, &[("enable-global-auth", "false")])), Some((1, true)));
    let open = [&global[..], &[("no-auth-locations", "/a")]].concat();
    assert_eq!(looks(errors(&open, &[])), Some((1, true)));
    let open = [of_all, ("no-auth-locations", "/a")];
    assert_eq!(looks(errors(&open, &[asks, page])), Some((1, true)));
}

#[test]
fn answers_of_upstreams_pass_only_where_the_config_map_has_no_pages_either() {
    let own = [("custom-http-errors", "404"), ("disable-proxy-intercept-errors", "true")];
    let intercepts = |of_all: &[(&str, &str)]| {
        let errors = errors(of_all, &own).expect("it has pages");
        assert_eq!(errors.statuses, [404].into());
        errors.intercept
    };
    assert!(!intercepts(&[]));
    assert!(intercepts(&[("custom-http-errors", "503")]));
    assert!(!intercepts(&[("custom-http-errors", "700")]), "there are none");
    let both = [("custom-http-errors", "503"), ("disable-proxy-intercept-errors", "true")];
    assert!(!intercepts(&both));
}

#[test]
fn the_webhook_says_where_a_default_backend_stands_in() {
    let (options, mut snapshot) = (Options::default(), cluster());
    put_service(&mut snapshot, service("demo", "shop", 81));
    let mut asked = simple("demo", "asked", "shop.test", "/", "shop");
    let to = backend("nowhere", Some(PortRef::Number(80)));
    asked.rules.push(rule(Some("b.test"), Some(vec![path("/", PathType::Prefix, to)])));
    annotate(&mut asked, "default-backend", "errors");
    put_ingress(&mut snapshot, asked.clone());
    let mut index = ReverseIndex::default();
    index.set(asked.meta.key.clone(), references(&asked, &options));
    for is_there in [false, true] {
        if is_there {
            put_service(&mut snapshot, service("demo", "errors", 80));
        }
        let shop = key("demo", "shop");
        let lost =
            |name| needs::lost(&Reference::Service(key("demo", name)), &snapshot, &index, &options);
        let ports = needs::lost_ports(&snapshot.services[&shop], &snapshot, &index, &options);
        let said = [needs::missing(&asked, &snapshot, &options), ports, lost("shop")].concat();
        let of_503 = said.iter().filter(|said| said.contains("503"));
        assert_eq!(of_503.clone().count(), 4, "{said:?}");
        assert!(of_503.clone().all(|said| said.contains("default-backend stands in") == is_there));
        assert!(lost("errors").iter().all(|said| !said.contains("stands in")), "{said:?}");
    }
}

/// What is said at nginx's http level counts for servers, and for locations that snippets have.
#[test]
fn what_the_config_map_says_counts_where_no_ingress_is() {
    let mut snapshot = cluster();
    let said = [("custom-http-errors", "404"), ("limit-req-status-code", "429")];
    put_config_map(&mut snapshot, config_map("demo", "settings", &said));
    let options = Options {
        config_map: Some(key("demo", "settings")),
        default_backend_service: Some(key("demo", "errors")),
        ..Options::default()
    };
    let configuration = translate(&snapshot, &options).configuration;
    let nowhere = &configuration.global.nowhere;
    assert_eq!((nowhere.request_status, nowhere.connection_status), (429, 503));
    assert_eq!(statuses(nowhere.errors.clone()), [404]);
    let of_all = |of_all, own| errors(of_all, own).is_some_and(|errors| errors.of_all);
    assert!(of_all(&said[..1], &[]));
    assert!(!of_all(&said[..1], &[("custom-http-errors", "503")]), "it is the Ingress's");
}
