//! Requests that have come through a controller before: this one, another replica, or somebody else's. Where that
//! shows, the request says so in `CDN-Loop` (RFC 8586) as it goes on, and one that has said so a few times ends here.
//! Whoever makes a loop through a load balancer or a second replica pays for a few turns, not for endless ones.

use crate::error::Error;
use crate::exchange::Exchange;
use bytes::Bytes;
use upstream::TryError;
use wire::{Field, Headers, Request, Version, tokens};

/// The field, in lower case.
const FIELD: &str = "cdn-loop";
/// The field as it is written.
pub(super) const NAME: &str = "CDN-Loop";
/// The member that stands for a turn.
const MEMBER: &[u8] = b"fairway";
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
    let name = |member: &&[u8]| {
        let name = member.split(|byte| *byte == b';').next().unwrap_or_default();
        name.trim_ascii_end().eq_ignore_ascii_case(MEMBER)
    };
    headers.all(FIELD).flat_map(|value| tokens(value)).filter(name).count()
}

/// What a request towards an upstream says of its turns: nothing, unless it has come from a controller.
pub(super) fn value(exchange: &Exchange) -> Option<Bytes> {
    let Request { headers, .. } = &exchange.request;
    headers.iter().any(is_from_controller).then(|| one_more(headers))
}

/// The same of a request that a controller may have sent without one of its own fields: a copy, for an error page.
pub(super) fn value_of_bare(exchange: &Exchange) -> Option<Bytes> {
    let Request { version, headers, .. } = &exchange.request;
    let may_be_ours = *version == Version::Http10 || headers.iter().any(is_from_controller);
    may_be_ours.then(|| one_more(headers))
}

/// Whether a field is told anew where a request says something of its turns.
pub(super) fn is_replaced(value: Option<&Bytes>, field: &Field) -> bool {
    value.is_some() && field.is(FIELD)
}

/// Fields that controllers set: towards upstreams, authenticators and error backends.
fn is_from_controller(field: &Field) -> bool {
    match field.name.len() {
        6 => field.is("x-code"),
        8 => field.is("x-scheme") || (field.is(FIELD) && names_us(&field.value)),
        11 => field.is("x-sent-from"),
        18 => field.is("x-forwarded-scheme"),
        _ => false,
    }
}

fn names_us(value: &[u8]) -> bool {
    value.windows(MEMBER.len()).any(|part| part.eq_ignore_ascii_case(MEMBER))
}

/// Everything that is said already, and this turn.
fn one_more(headers: &Headers) -> Bytes {
    let said = headers.all(FIELD).map(AsRef::as_ref).chain([MEMBER]);
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
    fn only_what_a_controller_has_set_tells_of_one() {
        let is_told = |name, value| {
            let mut headers = Headers::default();
            headers.add(name, value);
            headers.iter().any(is_from_controller)
        };
        for name in ["X-Scheme", "x-forwarded-scheme", "X-Sent-From", "X-Code"] {
            assert!(is_told(name, "x"), "{name}");
        }
        assert!(is_told("CDN-Loop", "a, fairway") && !is_told("CDN-Loop", "a.example"));
        assert!(!is_told("X-Forwarded-For", "x") && !is_told("User-Agent", "x"));
    }
}
