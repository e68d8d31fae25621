//! Durations as the exchange format writes them: `500ms`, `2s`, `2`.

use std::time::Duration;

/// The duration that the text says, if it says one.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.trim_end_matches('s'), 1.0),
    };
    Duration::try_from_secs_f64(number.trim().parse::<f64>().ok()? * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_seconds_and_bare_numbers_are_understood() {
        assert_eq!(parse("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse("3"), Some(Duration::from_secs(3)));
        assert_eq!(parse("soon"), None);
        assert_eq!(parse("-1s"), None);
    }
}
