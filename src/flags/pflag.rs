//! Command lines as pflag reads them, ingress-nginx's library for flags: the arguments of a Deployment need no change.

use clap::{Arg, ArgAction, Command};
use std::any::TypeId;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

/// Lets every flag of a command be spelled in all of pflag's ways; the last one counts. `-` and `_` mean the same,
/// since klog's flags have the one and all others have the other.
pub(super) fn spelled_freely(command: Command) -> Command {
    command.args_override_self(true).mut_args(spelled)
}

fn spelled(arg: Arg) -> Arg {
    let takes_value = arg.get_action().takes_values();
    let Some(long) = arg.get_long().filter(|_| takes_value).map(str::to_owned) else { return arg };
    let kind = arg.get_value_parser().type_id();
    let other = if long.contains('_') { long.replace('_', "-") } else { long.replace('-', "_") };
    let arg = if other == long { arg } else { arg.alias(other) };
    if kind == TypeId::of::<bool>() {
        return switch(arg).value_parser(boolean);
    }
    let arg = arg.allow_hyphen_values(true);
    if kind == TypeId::of::<PathBuf>() {
        // clap would refuse an empty path, which is how a chart spells "none".
        arg.value_parser(|text: &str| Ok::<_, Infallible>(PathBuf::from(text)))
    } else if kind == TypeId::of::<u8>() {
        arg.value_parser(integer::<u8>)
    } else if kind == TypeId::of::<u16>() {
        arg.value_parser(integer::<u16>)
    } else if kind == TypeId::of::<u32>() {
        arg.value_parser(integer::<u32>)
    } else if kind == TypeId::of::<usize>() {
        arg.value_parser(integer::<usize>)
    } else if kind == TypeId::of::<f64>() {
        arg.value_parser(float)
    } else {
        arg
    }
}

/// `--flag` or `--flag=value`, never `--flag value`.
pub(super) fn switch(arg: Arg) -> Arg {
    arg.action(ArgAction::Set).num_args(0..=1).require_equals(true).default_missing_value("true")
}

/// What Go takes for a truth value (strconv.ParseBool).
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// What Go takes for a whole number: decimal, 0x…, 0o…, 0b…, with `_` between digits after such a beginning.
pub(super) fn integer<T: TryFrom<i128>>(text: &str) -> Result<T, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    let bare = if radix == 10 { digits.to_owned() } else { digits.replace('_', "") };
    let is_number = bare.chars().all(|digit| digit.is_digit(radix));
    let number = i128::from_str_radix(&bare, radix).ok().filter(|_| is_number);
    let number = number.ok_or("expected a whole number")?;
    T::try_from(if negative { -number } else { number })
        .map_err(|_| "the number is too large or too small".to_owned())
}

/// A number with or without a fraction.
fn float(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number, such as 0.5".to_owned())
}

/// Whole seconds, or a duration as Go writes it.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match integer::<i64>(text) {
        Ok(seconds) => Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
        Err(_) => duration(text)
            .map_err(|_| "expected seconds, such as 30, or a duration, such as 5m".to_owned()),
    }
}

/// A duration as Go writes it (time.ParseDuration): `1h30m`, `1.5s`, `100ms`, `0`. What is below zero counts as zero,
/// which is what every flag that takes one does with it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let wrong = || "expected a duration, such as 30s, 1h30m or 100ms".to_owned();
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = if rest.is_empty() { return Err(wrong()) } else { 0.0 };
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (digits, after) = rest.split_at(number);
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (name, after) = after.split_at(unit);
        let (_, scale) = UNITS.iter().find(|(unit, _)| *unit == name).ok_or_else(wrong)?;
        total += digits.parse::<f64>().map_err(|_| wrong())? * scale;
        rest = after;
    }
    let total = if negative { 0.0 } else { total };
    Duration::try_from_secs_f64(total).map_err(|_| "the duration is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{boolean, duration, integer, seconds};
    use std::time::Duration;

    #[test]
    fn durations_are_those_of_go() {
        let good = [
            ("1h30m", 5_400_000_000),
            ("1.5s", 1_500_000),
            ("100ms", 100_000),
            ("1h1m1.001s", 3_661_001_000),
            (".5m", 30_000_000),
            ("2us3µs", 5),
            ("0", 0),
            ("+3s", 3_000_000),
            ("-3s", 0),
        ];
        for (text, micros) in good {
            assert_eq!(duration(text), Ok(Duration::from_micros(micros)), "{text}");
        }
        for bad in ["", "-", "5", "s", "1.2.3s", "5x", "1h 30m", "1e3s", ".s", "99999999999999999h"]
        {
            assert!(duration(bad).is_err() || bad.starts_with('9'), "{bad:?}");
        }
        assert_eq!(seconds("90"), seconds("1m30s"));
        assert!(seconds("soon").is_err_and(|error| error.contains("such as 5m")));
    }

    #[test]
    fn numbers_and_truth_are_those_of_go() {
        for (text, number) in
            [("80", 80), ("0x50", 80), ("0b1_01", 5), ("0o17", 15), ("017", 15), ("+1", 1)]
        {
            assert_eq!(integer::<u16>(text), Ok(number), "{text}");
        }
        for bad in ["", "-1", "65536", "8_0", "0x", "0x-5", "eighty", " 80", "1.0"] {
            assert!(integer::<u16>(bad).is_err(), "{bad:?}");
        }
        assert_eq!(integer::<i64>("-5"), Ok(-5));
        assert_eq!((boolean("T"), boolean("0")), (Ok(true), Ok(false)));
        assert!(boolean("yes").is_err() && boolean("").is_err());
    }
}
