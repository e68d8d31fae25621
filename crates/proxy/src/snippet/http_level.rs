//! What the controller writes at http level besides an `http-snippet` (nginx.tmpl): where both say something of one
//! list, servers inherit it as a whole.

use model::Global;
use model::snippet::{AccessRule, ClientAddress, GlobalScope, Settings};
use std::borrow::Cow;

/// What servers inherit of the http level. Where the snippet has no list, the controller's counts by itself.
pub(crate) fn of_http_level<'s>(said: &'s Settings, global: &Global) -> Cow<'s, Settings> {
    let mut all = Cow::Borrowed(said);
    let blocked = &global.block.addresses;
    if !said.access.rules.is_empty() && !blocked.is_empty() {
        // `block-cidrs` stands behind the rules.
        let whom = ClientAddress::Networks(blocked.clone());
        all.to_mut().access.rules.push(AccessRule { allow: false, whom });
    }
    let real = &global.real_ip;
    let tells = real.enabled || real.forwarded_headers || global.proxy_protocol;
    if !said.real_ip.trusted.is_empty() && tells && !real.trusted.is_empty() {
        let whom = ClientAddress::Networks(real.trusted.clone());
        all.to_mut().real_ip.trusted.push(whom);
    }
    let hidden = &global.hide_headers;
    if !said.proxy.hide_headers.is_empty() && !hidden.is_empty() {
        all.to_mut().proxy.hide_headers.extend(hidden.iter().cloned());
    }
    // nginx has lists of their own for these; here the ConfigMap's counts for every protocol.
    if !said.grpc.hide_headers.is_empty() && !hidden.is_empty() {
        all.to_mut().grpc.hide_headers.extend(hidden.iter().cloned());
    }
    if !said.fastcgi.hide_headers.is_empty() && !hidden.is_empty() {
        all.to_mut().fastcgi.hide_headers.extend(hidden.iter().cloned());
    }
    all
}

/// Whether servers inherit something else than before of the same snippet.
pub(crate) fn inherits_other(http: Option<&GlobalScope>, now: &Global, before: &Global) -> bool {
    http.is_some_and(|GlobalScope { settings, .. }| {
        of_http_level(settings, now) != of_http_level(settings, before)
    })
}
