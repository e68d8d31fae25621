//! What FastCGI says of a request, and variables with it.

use crate::exchange::Exchange;
use std::borrow::Cow;

/// `$document_root`: what nginx was built with. Nothing lies there.
pub(crate) const DOCUMENT_ROOT: &str = "/usr/local/nginx/html";
/// `$nginx_version` of ingress-nginx v1.15.1: applications look at it to know what stands before them.
pub(crate) const NGINX_VERSION: &str = "1.27.1";

/// Path, decoded, and query towards the upstream.
pub(crate) fn target(exchange: &Exchange) -> (Cow<'_, [u8]>, &[u8]) {
    let Some(rewritten) = &exchange.visit.rewritten else {
        let query = exchange.request.query().unwrap_or_default();
        return (Cow::Borrowed(&exchange.path), query);
    };
    let end = rewritten.iter().position(|&byte| byte == b'?').unwrap_or(rewritten.len());
    let (path, query) = rewritten.split_at(end);
    // A rewritten path was canonical before it was escaped.
    let path = route::path::canonical(path).map_or(Cow::Borrowed(path), |found| found.path);
    (path, query.get(1..).unwrap_or_default())
}

/// `$fastcgi_path_info`: what follows the script in the path, where `fastcgi_split_path_info` divides it.
pub(crate) fn path_info(exchange: &Exchange) -> Vec<u8> {
    divided(exchange).1
}

/// Script and rest of the path.
pub(crate) fn divided(exchange: &Exchange) -> (Vec<u8>, Vec<u8>) {
    let known = exchange.snippet.as_ref().and_then(|running| running.of_request.script.clone());
    if let Some(known) = known.filter(|_| exchange.steps.left() == 0) {
        return known;
    }
    let path = target(exchange).0.into_owned();
    let pattern =
        exchange.level().and_then(|level| level.settings.fastcgi.split_path_info.as_ref());
    let found = pattern.and_then(|pattern| pattern.captures(&path, &exchange.steps).ok().flatten());
    let group = |number: usize| found.as_ref()?.get(number).copied().flatten().map(<[u8]>::to_vec);
    match (group(1), group(2)) {
        (Some(script), rest) => (script, rest.unwrap_or_default()),
        (None, _) => (path, Vec::new()),
    }
}

/// `$fastcgi_script_name`: the path, and the index where it ends in `/`.
pub(crate) fn script_name(exchange: &Exchange) -> Vec<u8> {
    let mut name = divided(exchange).0;
    let index = exchange
        .place
        .as_ref()
        .and_then(|place| place.spot().location.policy.fastcgi.index.as_deref());
    if let Some(index) = index.filter(|_| name.ends_with(b"/")) {
        name.extend_from_slice(index.as_bytes());
    }
    name
}
