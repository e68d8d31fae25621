//! Why a canary has a request, or has it not. Values may be passwords, and are not told.

use crate::exchange::Exchange;
use crate::generation::Spot;
use crate::phases::choose_backend;
use crate::variables;
use model::Steps;
use model::policy::CanaryTest;
use upstream::Alternative;

/// Each rule that did not decide, up to the one that did.
pub(super) fn why(exchange: &Exchange, spot: &Spot, canary: &Alternative) -> String {
    if canary.group.is_empty() {
        return "the canary has no endpoints".to_owned();
    }
    if choose_backend::of_session(exchange, spot, canary).is_some() {
        return "the client's session is there".to_owned();
    }
    let rules = &canary.rules;
    let mut why = Vec::new();
    if let Some(header) = &rules.header {
        let value = variables::header_of(exchange, &header.name);
        let (says, decides) = by_header(&header.test, value.as_deref());
        // Its name is that of nginx's variable.
        why.push(format!("header {} {says}", header.name.replace('_', "-")));
        if decides {
            return why.join("; ");
        }
    }
    if let Some(name) = &rules.cookie {
        let value = variables::cookie_of(&exchange.request.headers, name);
        let (says, decides) = by_word(value.as_deref());
        why.push(format!("cookie {name} {says}"));
        if decides {
            return why.join("; ");
        }
    }
    why.push(match rules.weight {
        0 => "its weight is 0".to_owned(),
        weight => format!("by chance, its weight is {weight} of {}", rules.total()),
    });
    why.join("; ")
}

/// What a header says, and whether that decides.
fn by_header(test: &CanaryTest, value: Option<&str>) -> (&'static str, bool) {
    match (test, value) {
        (CanaryTest::Word, value) => by_word(value),
        (_, None) => ("is missing", false),
        (CanaryTest::Value(wanted), Some(value)) if value == **wanted => {
            ("has the value of canary-by-header-value", true)
        }
        (CanaryTest::Value(_), _) => ("has another value than canary-by-header-value", false),
        (CanaryTest::Pattern(pattern), Some(value)) => {
            match pattern.try_match(value.as_bytes(), &Steps::default()) {
                Ok(true) => ("matches canary-by-header-pattern", true),
                Ok(false) | Err(_) => ("does not match canary-by-header-pattern", false),
            }
        }
        (CanaryTest::Never, Some(_)) => {
            ("is there, and canary-by-header-pattern is no regular expression", true)
        }
    }
}

/// The same of a header or a cookie that decides by a word.
fn by_word(value: Option<&str>) -> (&'static str, bool) {
    match value {
        None => ("is missing", false),
        Some("always") => ("says always", true),
        Some("never") => ("says never", true),
        Some(_) => ("says neither always nor never", false),
    }
}

#[cfg(test)]
mod tests {
    use super::{by_header, by_word};
    use model::Pattern;
    use model::policy::CanaryTest;

    #[test]
    fn what_a_header_or_a_cookie_lacks_for_a_canary_is_told() {
        let pattern = CanaryTest::Pattern(Pattern::new("^a+$", false).expect("a pattern"));
        let value = CanaryTest::Value("hunter2".to_owned().into());
        for (test, given, says, decides) in [
            (&CanaryTest::Word, None, "is missing", false),
            (&CanaryTest::Word, Some("always"), "says always", true),
            (&CanaryTest::Word, Some("yes"), "says neither always nor never", false),
            (&value, Some("hunter2"), "has the value of canary-by-header-value", true),
            (&value, Some("always"), "has another value than canary-by-header-value", false),
            (&pattern, Some("aa"), "matches canary-by-header-pattern", true),
            (&pattern, Some("b"), "does not match canary-by-header-pattern", false),
            (&CanaryTest::Never, None, "is missing", false),
        ] {
            assert_eq!(by_header(test, given), (says, decides), "{given:?}");
        }
        assert_eq!(by_word(Some("never")), ("says never", true));
    }
}
