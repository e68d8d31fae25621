//! Connections: buffers, time-outs of two values, versions of TLS.

use super::{Reader, duration, invalid, number, size};
use crate::Mistake;
use crate::syntax::Directive;
use std::time::Duration;

/// How many buffers of which size.
pub(crate) fn buffers(_: &mut Reader<'_>, directive: &Directive) -> Result<(u32, u64), Mistake> {
    let words = directive.arguments();
    let count = number(&words[0])?;
    match (count, size(&words[1])?) {
        (0, _) | (_, 0) => Err(invalid(&words[0], "number of buffers with a size")),
        (count, size) => Ok((count, size)),
    }
}

/// The second value is a header that nobody reads.
pub(crate) fn keepalive(_: &mut Reader<'_>, directive: &Directive) -> Result<Duration, Mistake> {
    let words = directive.arguments();
    if let Some(header) = words.get(1) {
        duration(header)?;
    }
    duration(&words[0])
}

pub(crate) fn tls_versions(
    _: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<String>, Mistake> {
    const KNOWN: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let read = |word: &crate::syntax::Word| match KNOWN.contains(&word.text.as_str()) {
        true => Ok(word.text.clone()),
        false => Err(invalid(word, "version of TLS such as TLSv1.2")),
    };
    directive.arguments().iter().map(read).collect()
}

/// The same towards upstreams, of which one at least must be spoken here.
pub(crate) fn upstream_tls_versions(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<String>, Mistake> {
    let versions = tls_versions(reader, directive)?;
    match versions.iter().any(|name| matches!(name.as_str(), "TLSv1.2" | "TLSv1.3")) {
        true => Ok(versions),
        false => Err(Mistake::needs_nginx(
            directive.arguments()[0].at,
            "versions of TLS that are not spoken here; TLSv1.2 and TLSv1.3 are",
        )),
    }
}
