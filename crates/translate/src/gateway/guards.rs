//! `ExternalAuth` of a rule: who is asked whether a request may pass, and with what (GEP-1494). Where that cannot be
//! kept to, the rule is closed.

use super::filters::changeable;
use super::texts;
use model::policy::{GuardAsked, Policy, Protocol, RouteGuard};
use model::{Backend, UpstreamId};
use objects::gateway::ExternalAuth;

/// Names of fields in a list at most, as the definition has it.
const NAMES: usize = 64;

/// Bytes of a body at most that is a part of a message of gRPC: it is held in memory.
const IN_MESSAGE: u64 = 64 << 10;

/// What a filter asks for, of a backend that is reached so; what is wrong with it otherwise.
pub(super) fn read(
    auth: &ExternalAuth,
    (upstream, towards, http2): (UpstreamId, Policy, bool),
) -> Result<RouteGuard, String> {
    let is_tls = matches!(towards.protocol, Protocol::Https | Protocol::Grpcs);
    let asked = if auth.is_grpc {
        if auth.max_body > IN_MESSAGE {
            return Err(format!("forwardBody.maxSize: with protocol GRPC at most {IN_MESSAGE}"));
        }
        GuardAsked::Grpc
    } else {
        let prefix = auth.path.trim_end_matches('/');
        if !prefix.is_empty() {
            texts::path(prefix).map_err(|why| format!("http.path: {why}"))?;
        }
        let said = names(&auth.said, "allowedResponseHeaders")?;
        if let Some(name) = said.iter().find(|name| changeable(name).is_err()) {
            return Err(format!("allowedResponseHeaders: header {name} cannot be changed"));
        }
        GuardAsked::Http { prefix: prefix.to_owned(), http2, said }
    };
    Ok(RouteGuard {
        upstream,
        tls: is_tls.then_some(towards.upstream_tls),
        asked,
        headers: names(&auth.headers, "allowedHeaders")?,
        body: auth.max_body > 0,
    })
}

/// Names of fields in lower case.
fn names(names: &[String], field: &str) -> Result<Vec<String>, String> {
    if names.len() > NAMES {
        return Err(format!("{field}: name at most {NAMES} headers"));
    }
    match names.iter().find(|name| !texts::is_token(name)) {
        Some(wrong) => Err(format!("{field}: {wrong:?} is no name of a header")),
        None => Ok(names.iter().map(|name| name.to_ascii_lowercase()).collect()),
    }
}

/// A backend behind a guard: closed where nobody can be asked.
pub(super) fn behind(backend: Backend, fault: Option<String>) -> Backend {
    fault.map_or(backend, |why| Backend::Broken(format!("external authentication: {why}")))
}
