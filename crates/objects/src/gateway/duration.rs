//! Durations of the Gateway API (GEP-2257): up to four numbers with units, such as `1m30s`.

use std::time::Duration;

/// Reads a duration, if there is one; `field` says where it stands.
pub(super) fn duration(
    text: Option<&str>,
    field: impl FnOnce() -> String,
) -> Result<Option<Duration>, String> {
    let Some(text) = text else { return Ok(None) };
    match parse(text) {
        Some(duration) => Ok(Some(duration)),
        None => {
            let at = field();
            Err(format!("{at}: {text:?} is no duration; write it as 500ms, 10s or 1m30s"))
        }
    }
}

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    for _ in 0..4 {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u32 = rest[..digits].parse().ok().filter(|_| digits <= 5)?;
        let unit = &rest[digits..];
        let unit = unit.find(|c: char| c.is_ascii_digit()).map_or(unit, |end| &unit[..end]);
        let one = match unit {
            "h" => Duration::from_secs(3600),
            "m" => Duration::from_secs(60),
            "s" => Duration::from_secs(1),
            "ms" => Duration::from_millis(1),
            _ => return None,
        };
        sum += one * number;
        rest = &rest[digits + unit.len()..];
        if rest.is_empty() {
            return Some(sum);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn a_duration_is_one_to_four_numbers_with_units() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("1m30s", 90_000),
            ("1h1m1s1ms", 3_661_001),
            ("99999s", 99_999_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "1", "s", "1.5s", "-1s", "1d", "123456s", "1s1s1s1s1s", "1 s", "1s ", "\u{661}s"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
