//! Requests that have come through a controller before: this one, another replica, or somebody else's. Where that
//! shows, the request says so in `CDN-Loop` (RFC 8586) as it goes on, and one that has said so a few times ends here.
//! Whoever makes a loop through a load balancer or a second replica pays for a few turns, not for endless ones.

use super::route_filters;
use crate::error::Error;
use crate::exchange::Exchange;
use bytes::Bytes;
use model::policy::HeaderEdits;
use upstream::TryError;
use wire::{Field, Headers, NameSet, Request, Version, tokens};

/// The field, in lower case.
const FIELD: &str = "cdn-loop";
/// The field as it is written.
pub(super) const NAME: &str = "CDN-Loop";
/// The member that stands for a turn.
const MEMBER: &[u8] = b"fairway";
/// What controllers call themselves to authenticators.
const SENDER: &[u8] = b"nginx-ingress-controller";
/// What requests towards upstreams have of a controller.
const TELLING: [&str; 3] = ["x-scheme", "x-forwarded-scheme", "x-request-id"];
/// One of these has every request that has come from one.
const OF_CONTROLLERS: NameSet = NameSet::new(&[
    "x-scheme",
    "x-forwarded-scheme",
    "x-request-id",
    "x-code",
    "x-sent-from",
    FIELD,
]);
/// Turns that a request may have made.
const MOST: usize = 5;
/// Turns of a request that is still copied: each of its copies may go round as well.
const COPIED: usize = 2;

/// Ends a request that goes round. Whoever says so of a request that does not, harms nobody else.
pub(super) fn goes_on(exchange: &Exchange) -> Result<(), Error> {
    if turns(&exchange.request.headers) < MOST {
        Ok(())
    } else {
        Err(Error::Upstream(TryError::Loop))
    }
}

/// Whether a request has not gone round so often that its copies could become too many.
pub(super) fn may_be_copied(exchange: &Exchange) -> bool {
    turns(&exchange.request.headers) < COPIED
}

fn turns(headers: &Headers) -> usize {
    if !headers.has(FIELD) {
        return 0;
    }
    let name = |member: &&[u8]| {
        let name = member.split(|byte| *byte == b';').next().unwrap_or_default();
        name.trim_ascii_end().eq_ignore_ascii_case(MEMBER)
    };
    headers.all(FIELD).flat_map(tokens).filter(name).count()
}

/// What a request towards an upstream says of its turns: nothing, unless it has come from a controller.
pub(super) fn value(exchange: &Exchange) -> Option<Bytes> {
    let Request { headers, .. } = &exchange.request;
    let hides = || route_filters::of_request(exchange).is_some_and(hides);
    (is_from_controller(headers) || hides()).then(|| one_more(headers))
}

/// Whether edits of a route touch what tells of a controller: the next one would not know where a request comes from.
fn hides(edits: &HeaderEdits) -> bool {
    TELLING.iter().any(|name| route_filters::replaces(edits, name.as_bytes()))
}

/// The same of a request that a controller may have sent without one of its own fields: a copy, for an error page.
pub(super) fn value_of_bare(exchange: &Exchange) -> Option<Bytes> {
    let Request { version, headers, .. } = &exchange.request;
    let may_be_ours = *version == Version::Http10 || is_from_controller(headers);
    may_be_ours.then(|| one_more(headers))
}

/// Whether a field is told anew where a request says something of its turns.
pub(super) fn is_replaced(value: Option<&Bytes>, field: &Field<'_>) -> bool {
    value.is_some() && field.is(FIELD)
}

/// Whether a request has what controllers set together: towards upstreams, authenticators or error backends. One of
/// these fields alone, as clients forge them, tells nothing.
fn is_from_controller(headers: &Headers) -> bool {
    const SCHEME: u8 = 1;
    const FORWARDED: u8 = 2;
    const ID: u8 = 4;
    const CODE: u8 = 8;
    if !headers.has_any(&OF_CONTROLLERS) {
        return false;
    }
    let mut seen = 0;
    for field in headers.iter() {
        match field.name.len() {
            6 if field.is("x-code") => seen |= CODE,
            8 if field.is("x-scheme") => seen |= SCHEME,
            8 if field.is(FIELD) && names_us(field.value) => return true,
            11 if field.is("x-sent-from") && field.value == SENDER => return true,
            12 if field.is("x-request-id") => seen |= ID,
            18 if field.is("x-forwarded-scheme") => seen |= FORWARDED,
            _ => {}
        }
    }
    let has = |all: u8| seen & all == all;
    has(SCHEME | FORWARDED | ID) || has(CODE | ID)
}

fn names_us(value: &[u8]) -> bool {
    value.windows(MEMBER.len()).any(|part| part.eq_ignore_ascii_case(MEMBER))
}

/// Everything that is said already, and this turn.
fn one_more(headers: &Headers) -> Bytes {
    let said = headers.all(FIELD).chain([MEMBER]);
    said.collect::<Vec<&[u8]>>().join(&b", "[..]).into()
}

#[cfg(test)]
mod tests {
    use super::{is_from_controller, one_more, turns};
    use wire::Headers;

    fn said(values: &[&'static str]) -> Headers {
        let mut headers = Headers::default();
        values.iter().for_each(|value| headers.add("CDN-Loop", *value));
        headers
    }

    #[test]
    fn each_turn_is_one_more_member_and_those_of_others_stay() {
        assert_eq!(turns(&said(&[])), 0);
        assert_eq!(turns(&said(&["fairwayed, fair, a.example; fairway"])), 0);
        let said = said(&["cloud.example; v=1, Fairway;x", "fairway ; y"]);
        assert_eq!(turns(&said), 2);
        assert_eq!(&one_more(&said)[..], b"cloud.example; v=1, Fairway;x, fairway ; y, fairway");
    }

    #[test]
    fn only_what_controllers_set_together_tells_of_one() {
        let is_told = |fields: &[(&'static str, &'static str)]| {
            let mut headers = Headers::default();
            fields.iter().for_each(|(name, value)| headers.add(name, *value));
            is_from_controller(&headers)
        };
        let proxied = [("X-Request-ID", "x"), ("x-forwarded-scheme", "x"), ("X-Scheme", "x")];
        assert!(is_told(&proxied));
        for forged in [&proxied[..2], &proxied[1..], &[proxied[0], proxied[2]]] {
            assert!(!is_told(forged), "{forged:?}");
        }
        assert!(is_told(&[("X-Code", "503"), ("X-Request-ID", "x")]));
        assert!(!is_told(&[("X-Code", "503")]) && !is_told(&[("X-Sent-From", "forged")]));
        assert!(is_told(&[("X-Sent-From", "nginx-ingress-controller")]));
        assert!(is_told(&[("CDN-Loop", "a, fairway")]) && !is_told(&[("CDN-Loop", "a.example")]));
    }
}
