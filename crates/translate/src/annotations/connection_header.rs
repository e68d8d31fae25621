//! `connection-proxy-header`.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Settings};
use model::policy::{ConnectionHeader, Policy};

pub(super) const FAMILY: Family = Family { name: "connection_header", keys: &[&HEADER], apply };

static HEADER: Key<ConnectionHeader> = Key::annotation("connection-proxy-header", header)
    .says(
        "close or keep-alive",
        "none",
        "The Connection header towards the upstream. Most upstreams do not change to another protocol such as WebSocket then.",
    )
    .on_bad(OnBad::Reject);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    policy.connection_header = settings.get(&HEADER);
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(header: Option<ConnectionHeader>, lines: &mut Lines) {
    let header = header.map(|header| match header {
        ConnectionHeader::Close => "close",
        ConnectionHeader::KeepAlive => "keep-alive",
    });
    lines.add("connection_header", header).by(&[&HEADER]);
}

fn header(text: &str) -> Result<ConnectionHeader, String> {
    match text {
        "close" => Ok(ConnectionHeader::Close),
        "keep-alive" => Ok(ConnectionHeader::KeepAlive),
        _ => Err("is neither close nor keep-alive".to_owned()),
    }
}
