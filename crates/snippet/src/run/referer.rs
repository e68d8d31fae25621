//! `$invalid_referer`.

use super::{Exceeded, State};
use crate::typed::Referers;

/// Whether `valid_referers` does not take a Referer; `is_own` tells names of the server.
pub fn is_invalid_referer(
    referers: &Referers,
    referer: Option<&str>,
    is_own: impl FnOnce(&str, &mut State) -> Result<bool, Exceeded>,
    state: &mut State,
) -> Result<bool, Exceeded> {
    let Some(referer) = referer else { return Ok(!referers.none) };
    let behind = |scheme: &str| {
        let (start, rest) = referer.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let Some(rest) = behind("http://").or_else(|| behind("https://")) else {
        return Ok(!referers.blocked);
    };
    let is_host_end = |c: char| matches!(c, '/' | ':');
    let host = rest.split(is_host_end).next().unwrap_or_default().to_ascii_lowercase();
    let host = host.as_str();
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    let of_server = referers.server_names && is_own(host, state)?;
    if of_server || referers.hosts.iter().any(|known| fits(known, host, path)) {
        return Ok(false);
    }
    for regex in &referers.patterns {
        if state.matches(regex, rest)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fits(known: &str, host: &str, path: &str) -> bool {
    let (name, start) = known.split_at(known.find('/').unwrap_or(known.len()));
    if let Some(name) = name.strip_prefix('.') {
        // The name itself, and all below it.
        let below = host.strip_suffix(name).is_some_and(|label| label.ends_with('.'));
        return (host == name || below) && path.starts_with(start);
    }
    let named = match (name.strip_prefix('*'), name.strip_suffix(".*")) {
        (Some(end), _) => host.len() > end.len() && host.ends_with(end),
        (None, Some(start)) => host.strip_prefix(start).is_some_and(|rest| rest.starts_with('.')),
        (None, None) => host == name,
    };
    named && path.starts_with(start)
}
