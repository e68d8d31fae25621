//! What the filters of a route do at a location, and which of their texts may become a part of a message.

use super::texts::is_token;
use super::{cors, texts};
use model::policy::{HeaderEdits, PathChange, Policy, RouteFilters, RouteRedirect};
use model::{Part, Template, is_proof};
use objects::gateway::{HeaderChange, HeaderChanges, PathModifier, RouteFilter};

/// Adds what a filter does; mirrors and guards are whoever's who knows backends.
pub(super) fn add(
    does: &mut RouteFilters,
    policy: &mut Policy,
    filter: &RouteFilter,
) -> Result<(), (&'static str, String)> {
    let unsupported = |message: &str| ("UnsupportedValue", message.to_owned());
    let unfit = |message: String| ("UnsupportedValue", message);
    let incompatible = |message: &str| ("IncompatibleFilters", message.to_owned());
    let change = |modifier: &PathModifier| {
        let (PathModifier::Full(to) | PathModifier::Prefix(to)) = modifier;
        let to = if to.is_empty() { "/" } else { to };
        texts::path(to).map_err(unfit)?;
        Ok(match modifier {
            PathModifier::Full(_) => PathChange::Full(to.to_owned()),
            PathModifier::Prefix(_) => PathChange::Prefix(to.to_owned()),
        })
    };
    match filter {
        RouteFilter::RequestHeaders(changes) => does.request.then(edits(changes)?),
        RouteFilter::ResponseHeaders(changes) => does.response.then(edits(changes)?),
        RouteFilter::Redirect(_) | RouteFilter::Rewrite(_)
            if does.redirect.is_some() || does.path.is_some() || policy.upstream_host.is_some() =>
        {
            return Err(incompatible("only one redirect or rewrite can count; leave one"));
        }
        RouteFilter::Redirect(redirect) => {
            redirect.scheme.as_deref().map_or(Ok(()), texts::scheme).map_err(unfit)?;
            redirect.hostname.as_deref().map_or(Ok(()), texts::host).map_err(unfit)?;
            does.redirect = Some(RouteRedirect {
                scheme: redirect.scheme.clone(),
                host: redirect.hostname.clone(),
                port: redirect.port,
                path: redirect.path.as_ref().map(change).transpose()?,
                listener_port: 0,
                status: match redirect.status.unwrap_or(302) {
                    status @ (301 | 302 | 303 | 307 | 308) => status,
                    _ => {
                        return Err(unsupported(
                            "statusCode is none of 301, 302, 303, 307 and 308",
                        ));
                    }
                },
            });
        }
        RouteFilter::Rewrite(rewrite) => {
            rewrite.hostname.as_deref().map_or(Ok(()), texts::host).map_err(unfit)?;
            does.path = rewrite.path.as_ref().map(change).transpose()?;
            policy.upstream_host = rewrite.hostname.clone().map(literal);
        }
        RouteFilter::Cors(_) if policy.cors.is_some() => {
            return Err(incompatible("only one CORS filter can count; leave one"));
        }
        RouteFilter::Cors(filter) => policy.cors = Some(cors::read(filter).map_err(unfit)?.into()),
        RouteFilter::Mirror(_) | RouteFilter::Auth(_) => {}
    }
    Ok(())
}

/// Whether a filter asks for a match by prefix.
pub(super) fn needs_prefix(filter: &RouteFilter) -> bool {
    let path = match filter {
        RouteFilter::Redirect(redirect) => redirect.path.as_ref(),
        RouteFilter::Rewrite(rewrite) => rewrite.path.as_ref(),
        _ => None,
    };
    matches!(path, Some(PathModifier::Prefix(_)))
}

/// Bytes of text that a filter has, if it may have many.
pub(super) fn bytes(filter: &RouteFilter) -> usize {
    let all = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    match filter {
        RouteFilter::RequestHeaders(changes) | RouteFilter::ResponseHeaders(changes) => {
            let pairs = changes.set.iter().chain(&changes.add);
            let pairs = pairs.map(|change| change.name.len() + change.value.len());
            pairs.sum::<usize>() + all(&changes.remove)
        }
        RouteFilter::Cors(cors) => {
            all(&cors.origins) + all(&cors.methods) + all(&cors.headers) + all(&cors.expose)
        }
        RouteFilter::Auth(auth) => auth.path.len() + all(&auth.headers) + all(&auth.said),
        RouteFilter::Redirect(_) | RouteFilter::Rewrite(_) | RouteFilter::Mirror(_) => 0,
    }
}

fn literal(text: String) -> Template {
    Template::from_parts(vec![Part::Text(text)])
}

/// Fields that are framing or name who is asked: no edit may touch them.
const UNTOUCHABLE: [&str; 10] = [
    "cdn-loop",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The name of a field that may be changed, in lower case.
pub(super) fn changeable(name: &str) -> Result<String, (&'static str, String)> {
    let lower = name.to_ascii_lowercase();
    if !is_token(&lower) {
        return Err(("UnsupportedValue", format!("{name:?} is no name of a header")));
    }
    if UNTOUCHABLE.contains(&lower.as_str()) {
        Err(("UnsupportedValue", format!("header {name} cannot be changed")))
    } else {
        Ok(lower)
    }
}

fn edits(changes: &HeaderChanges) -> Result<HeaderEdits, (&'static str, String)> {
    let pair = |change: &HeaderChange| {
        // Backends of other namespaces may believe it.
        if is_proof(change.name.as_bytes()) {
            let name = &change.name;
            let message = format!("header {name} tells of client certificates: it cannot be set");
            return Err(("UnsupportedValue", message));
        }
        let printable = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte) || byte >= 0x80;
        if change.value.bytes().all(printable) {
            Ok((changeable(&change.name)?, change.value.clone().into()))
        } else {
            let message = format!("the value of header {} has control characters", change.name);
            Err(("UnsupportedValue", message))
        }
    };
    Ok(HeaderEdits {
        set: changes.set.iter().map(pair).collect::<Result<_, _>>()?,
        add: changes.add.iter().map(pair).collect::<Result<_, _>>()?,
        remove: changes.remove.iter().map(|one| changeable(one)).collect::<Result<_, _>>()?,
    })
}
