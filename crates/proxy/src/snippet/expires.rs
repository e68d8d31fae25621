//! `expires`: Expires and Cache-Control (ngx_http_headers_filter_module, ngx_http_set_expires).

use super::text::Fill;
use model::snippet::Expires;
use snippet::run::Exceeded;
use wire::{Headers, http_date};

const DAY: u64 = 86_400;

/// Sets both fields; `now` is the second since 1970.
pub(super) fn apply(
    expires: &Expires,
    now: u64,
    headers: &mut Headers,
    fill: &mut dyn Fill,
) -> Result<(), Exceeded> {
    let said;
    let expires = match expires {
        Expires::Variable { value, modified } => {
            let value = fill.header(value)?;
            let text = std::str::from_utf8(&value).unwrap_or_default();
            // What cannot be read says nothing, as in nginx.
            let Some(read) = snippet::expires_of(text, *modified) else { return Ok(()) };
            said = read;
            &said
        }
        expires => expires,
    };
    let (date, control) = match expires {
        Expires::Off | Expires::Variable { .. } => return Ok(()),
        Expires::Epoch => (1, "no-cache".to_owned()),
        Expires::Max => (2_145_916_555, "max-age=315360000".to_owned()),
        Expires::After(0) | Expires::Modified(0) => (now, "max-age=0".to_owned()),
        Expires::After(seconds) => after(now, now, *seconds),
        Expires::Modified(seconds) => after(now, last_modified(headers).unwrap_or(now), *seconds),
        Expires::Daily(time) => {
            let today = now - now % DAY + time.as_secs();
            let next = if today > now { today } else { today + DAY };
            (next, format!("max-age={}", next - now))
        }
    };
    headers.put(b"Expires", http_date(date).as_bytes());
    headers.put(b"Cache-Control", control.as_bytes());
    Ok(())
}

/// So many seconds after `from`; what is over is not kept.
fn after(now: u64, from: u64, seconds: i64) -> (u64, String) {
    let date = from.saturating_add_signed(seconds);
    match date.checked_sub(now).filter(|_| seconds >= 0) {
        Some(age) => (date, format!("max-age={age}")),
        None => (date, "no-cache".to_owned()),
    }
}

/// When the content changed last, if the answer says so.
fn last_modified(headers: &Headers) -> Option<u64> {
    second_of(headers, "last-modified")
}

/// The second since 1970 that a field names.
pub(crate) fn second_of(headers: &Headers, name: &str) -> Option<u64> {
    let text = headers.text(name)?;
    let moment = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    u64::try_from(moment.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::apply;
    use crate::snippet::fixture::{Fixed, location, with_machine};
    use wire::Headers;

    /// What an `expires` says on a Sunday at 08:49:37, of content that is an hour old.
    fn said(text: &str) -> (String, String) {
        let settings = location(&format!("expires {text};")).settings;
        let expires = settings.headers.expires.expect("it is said");
        let mut headers = Headers::default();
        headers.add("Last-Modified", "Sun, 06 Nov 1994 07:49:37 GMT");
        let request = Fixed::of(&[("http_e", "1h"), ("http_bad", "soon"), ("http_off", "off")]);
        let done =
            with_machine(&request, |machine| apply(&expires, 784_111_777, &mut headers, machine));
        done.expect("within bounds");
        let field = |name| headers.text(name).unwrap_or_default().to_owned();
        (field("expires"), field("cache-control"))
    }

    #[test]
    fn every_form_says_what_nginx_says() {
        let of = |hour: &str| format!("Sun, 06 Nov 1994 {hour}:49:37 GMT");
        for (text, expires, control) in [
            ("off", String::new(), ""),
            ("epoch", "Thu, 01 Jan 1970 00:00:01 GMT".to_owned(), "no-cache"),
            ("max", "Thu, 31 Dec 2037 23:55:55 GMT".to_owned(), "max-age=315360000"),
            ("0", of("08"), "max-age=0"),
            ("1h", of("09"), "max-age=3600"),
            ("-1h", of("07"), "no-cache"),
            ("modified 2h", of("09"), "max-age=3600"),
            ("modified +30m", "Sun, 06 Nov 1994 08:19:37 GMT".to_owned(), "no-cache"),
            ("@9h", "Sun, 06 Nov 1994 09:00:00 GMT".to_owned(), "max-age=623"),
            ("@8h", "Mon, 07 Nov 1994 08:00:00 GMT".to_owned(), "max-age=83423"),
            ("$http_e", of("09"), "max-age=3600"),
            ("$http_bad", String::new(), ""),
            ("$http_off", String::new(), ""),
            ("$http_none", String::new(), ""),
        ] {
            assert_eq!(said(text), (expires, control.to_owned()), "{text}");
        }
    }
}
