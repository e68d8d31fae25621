//! Parsers of values: each says what is wrong with a text and how to mend it.

use ipnet::IpNet;
use model::Networks;
use std::time::Duration;

/// The largest number of seconds that makes sense as a time-out: 68 years.
const MOST_SECONDS: u64 = i32::MAX as u64;

pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err("is neither true nor false: write one of the two".to_owned()),
    }
}

pub(crate) fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("is neither on nor off".to_owned()),
    }
}

pub(crate) fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Whatever fits into one line: what else it may be is not validated.
pub(crate) fn line(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        Err("has a control character".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Names and the like: letters, digits and `/ - . _ ~ :`; spaces are let through, as in ingress-nginx.
pub(crate) fn plain(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~: ".contains(&byte);
    if text.bytes().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("has other characters than letters, digits, / - . _ ~ and :".to_owned())
    }
}

pub(crate) fn count(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let number: Result<u32, _> = digits.parse();
    number.map_err(|_| "is not a number: write digits only, such as 3".to_owned())
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    match digits.parse::<u64>() {
        Ok(number) if number <= MOST_SECONDS => Ok(Duration::from_secs(number)),
        _ => Err("is not a number of seconds: write digits only, such as 60".to_owned()),
    }
}

/// A time as nginx and Go write it: `240s`, `1m30s`, `500ms`, `1h`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "is not a time: write 500ms, 30s, 10m or 1h".to_owned();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return seconds(text).map_err(|_| wrong());
    }
    let mut rest = text.trim();
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit_end =
            rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - digits);
        let unit = milliseconds(&rest[digits..digits + unit_end]).ok_or_else(wrong)?;
        sum = number.checked_mul(unit).and_then(|part| sum.checked_add(part)).ok_or_else(wrong)?;
        rest = rest[digits + unit_end..].trim_start();
    }
    if sum > MOST_SECONDS * 1000 { Err(wrong()) } else { Ok(Duration::from_millis(sum)) }
}

fn milliseconds(unit: &str) -> Option<u64> {
    const SECOND: u64 = 1000;
    const DAY: u64 = 86_400 * SECOND;
    Some(match unit {
        "ms" => 1,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        "d" => DAY,
        "w" => 7 * DAY,
        "M" => 30 * DAY,
        "y" => 365 * DAY,
        _ => return None,
    })
}

/// A size as nginx writes it: `8`, `8k`, `8m`, `8g`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong =
        || "is not a size: write a number of bytes, or one with k, m or g, such as 8m".to_owned();
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => (&text[..text.len() - 1], 10),
        Some(b'm') => (&text[..text.len() - 1], 20),
        Some(b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes <= i64::MAX as u64);
    bytes.ok_or_else(wrong)
}

/// A size of something that is kept in memory: at least 1 byte, at most 1 GiB.
pub(crate) fn buffer(text: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    match usize::try_from(bytes) {
        Ok(bytes) if (1..=1 << 30).contains(&bytes) => Ok(bytes),
        _ => Err("is not the size of a buffer: write one between 1 and 1g, such as 8k".to_owned()),
    }
}

pub(crate) fn list(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
}

pub(crate) fn header_name(text: &str) -> Result<String, String> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !text.is_empty() && text.bytes().all(valid) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("is not the name of a header: write letters, digits, - and _, such as X-Forwarded-For"
        .to_owned())
}

/// What is wrong with an item of a list of headers.
pub(crate) fn not_a_header(item: &str) -> String {
    format!(
        "has the item {item:?}, which is no name of a header: write letters, digits, - and _, comma separated, such as \
         X-One,X-Two"
    )
}

pub(crate) fn headers(text: &str) -> Result<Vec<String>, String> {
    list(text)?.iter().map(|name| header_name(name).map_err(|_| not_a_header(name))).collect()
}

pub(crate) fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    let network = |item: String| {
        let alone = || item.parse().map(|address: std::net::IpAddr| IpNet::from(address));
        item.parse().or_else(|_| alone()).map_err(|_| {
            format!("has the item \"{item}\", which is no network: write networks such as 10.0.0.0/8, comma separated")
        })
    };
    list(text)?.into_iter().map(network).collect()
}

/// Networks as a set.
pub(crate) fn addresses(text: &str) -> Result<Networks, String> {
    Ok(networks(text)?.into_iter().collect())
}

/// The same where an item that names nobody leaves unknown whom the list was meant to name: nginx takes no such list.
pub(crate) fn addresses_without_gaps(text: &str) -> Result<Networks, String> {
    if text.split(',').any(|item| item.trim().is_empty()) {
        return Err(EMPTY_ITEM.to_owned());
    }
    addresses(text)
}

/// The same in the ConfigMap, where items without a character are none (splitAndTrimSpace,
/// internal/ingress/controller/template/configmap.go).
pub(crate) fn addresses_of_all(text: &str) -> Result<Networks, String> {
    let items: Vec<&str> = text.split(',').filter(|item| !item.is_empty()).collect();
    addresses_without_gaps(&items.join(","))
}

/// What is wrong with a list of networks in which nothing stands before, between or behind commas.
pub(crate) const EMPTY_ITEM: &str =
    "has an empty item: write networks such as 10.0.0.0/8, comma separated";

/// A whole number as Go's `strconv.Atoi` reads it.
pub(crate) fn integer(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = text.parse().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()));
    number.ok_or_else(|| "is no whole number: write digits only, such as 10".to_owned())
}

/// An address or a name, with what to write instead of something else.
pub(crate) fn host(text: &str, such_as: &str) -> Result<String, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = !bare.is_empty() && bare.len() <= 253 && bare.bytes().all(named);
    if is_name || bare.parse::<std::net::IpAddr>().is_ok() {
        return Ok(bare.to_owned());
    }
    Err(format!("is neither an address nor a name: write one such as {such_as}"))
}

/// A port.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port @ 1..) => Ok(port),
        _ => Err("is no port: write a number from 1 to 65535".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_nginx_and_go_write_them() {
        assert_eq!(duration("240s"), Ok(Duration::from_secs(240)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h 5m"), Ok(Duration::from_secs(3900)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for wrong in ["s", "5 minutes", "-1s", "1.5s", "99999999999999999999s", "ü", "5ü"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_nginx_suffixes_only() {
        assert_eq!(size("8"), Ok(8));
        assert_eq!(size("8K"), Ok(8 << 10));
        assert_eq!(size("1g"), Ok(1 << 30));
        for wrong in ["", "k", "1b", "1.5k", "15minutes", "-1", "9999999999999999999g", "1ü"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(buffer("0").is_err() && buffer("2g").is_err());
    }

    #[test]
    fn numbers_are_decimal_and_not_negative() {
        assert_eq!((count("+3"), seconds("60")), (Ok(3), Ok(Duration::from_secs(60))));
        for wrong in ["-1", "1s", "", "1 ", "99999999999"] {
            assert!(count(wrong).is_err() && seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_network_may_be_one_address() {
        let read = networks("10.0.0.0/8, 192.0.2.1,::/0").expect("all are networks");
        assert_eq!(
            read.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.0.0.0/8", "192.0.2.1/32", "::/0"]
        );
        assert!(networks("10.0.0.0/8,nonsense").is_err());
    }
}
