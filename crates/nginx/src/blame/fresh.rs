//! Who asks for something else than what runs: nobody else can be to blame for what nginx has taken before.

use super::verdicts::asked;
use super::{KEYS, RULES, settings, text};
use crate::conf::Owner;
use model::policy::{AuthExternal, Policy, RawGlobal};
use model::{
    Backend, Configuration, DEFAULT_BACKEND, Global, Kind, Location, Origin, Part, PathKind,
    Server, ServerName, Template, UpstreamId, Url,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The Ingresses, and what hosts have as a whole, that are new or other ones.
pub(crate) fn fresh(next: &Configuration, before: &Configuration) -> BTreeSet<Owner> {
    let before = asked(before);
    let others = asked(next).into_iter().filter(|(owner, now)| before.get(owner) != Some(now));
    others.map(|(owner, _)| owner).collect()
}

/// What the ConfigMap says otherwise than before, or no more: its texts, then its settings.
pub(crate) fn other_texts(next: &Configuration, before: &Configuration) -> Vec<Owner> {
    let nothing = RawGlobal::default();
    let [now, had] = [next, before].map(|it| it.global.raw.as_deref().unwrap_or(&nothing));
    let origin = now.origin.as_ref().or(had.origin.as_ref());
    let keys = KEYS.into_iter().filter(|key| says_otherwise(now, had, key));
    let texts = keys.filter_map(|key| Some(Owner::of_key(origin?, key)));
    let others = |global: &Global| Global { raw: None, ..global.clone() };
    let is_set_otherwise =
        now.tuning != had.tuning || others(&next.global) != others(&before.global);
    texts.chain(is_set_otherwise.then(|| settings(next))).collect()
}

fn says_otherwise(now: &RawGlobal, had: &RawGlobal, key: &str) -> bool {
    if key == RULES {
        return now.modsecurity != had.modsecurity;
    }
    text(&mut now.clone(), key) != text(&mut had.clone(), key)
}

/// What the ConfigMap says, beside one path of nobody that asks for nothing.
pub(crate) fn alone(configuration: &Configuration) -> Configuration {
    let name = ServerName::new("alone.invalid");
    let asks = configuration.global.raw.as_ref().is_some_and(|raw| raw.auth.is_some());
    let location = Location {
        path: "/".to_owned(),
        kind: PathKind::Prefix,
        whole: false,
        backend: Backend::Upstream(UpstreamId::new(DEFAULT_BACKEND)),
        canary: None,
        service: None,
        origin: Some(Origin::new(Kind::Ingress, "", "alone").into()),
        policy: Arc::new(Policy {
            auth_external: asks.then(|| question().into()),
            ..Policy::default()
        }),
    };
    let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
    let global = configuration.global.clone();
    let servers = [(name, Arc::new(server))].into_iter().collect();
    Configuration { global, servers, ..Configuration::default() }
}

/// A question to nobody.
fn question() -> AuthExternal {
    let text = |text: &str| Template::from_parts(vec![Part::Text(text.to_owned())]).into();
    AuthExternal {
        url: Url {
            secure: false,
            authority: text("alone.invalid"),
            target: text("/"),
            upstream: Some(UpstreamId::new(DEFAULT_BACKEND)),
        },
        method: None,
        sign_in: None,
        response_headers: Vec::new(),
        request_headers: Vec::new(),
        request_redirect: None,
        always_set_cookie: false,
        cache: None,
        snippet: None,
    }
}
