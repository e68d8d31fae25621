//! Main side or canary: affinity before header, header before cookie, cookie before weight (compat/behaviour.md
//! section 10).

use model::policy::{CanaryHeader, CanaryRules, CanaryTest};

/// A side of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The upstream of the location itself.
    Main,
    /// That of the canary.
    Canary,
}

/// What a request has to say about its side; as nginx's variables have it, empty for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The side that the client's session belongs to.
    pub session: Option<Side>,
    /// Value of the header that the rules name; several lines are joined by `, `.
    pub header: Option<&'a str>,
    /// Value of the cookie that the rules name.
    pub cookie: Option<&'a str>,
}

/// The side that a request goes to. `random` gives a number below its argument.
pub fn side(rules: &CanaryRules, asked: Asked<'_>, random: impl FnOnce(u32) -> u32) -> Side {
    let by_header = || by_header(rules.header.as_ref()?, asked.header?);
    let by_cookie = || by_word(asked.cookie?);
    asked.session.or_else(by_header).or_else(by_cookie).unwrap_or_else(|| {
        match random(rules.total()) < rules.weight {
            true => Side::Canary,
            false => Side::Main,
        }
    })
}

fn by_header(header: &CanaryHeader, value: &str) -> Option<Side> {
    match &header.test {
        CanaryTest::Word => by_word(value),
        CanaryTest::Value(wanted) => (value == wanted).then_some(Side::Canary),
        CanaryTest::Pattern(pattern) => pattern.is_match(value).then_some(Side::Canary),
        CanaryTest::Never => Some(Side::Main),
    }
}

fn by_word(value: &str) -> Option<Side> {
    match value {
        "always" => Some(Side::Canary),
        "never" => Some(Side::Main),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Side, side};
    use model::policy::CanaryRules;
    use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    fn weight(weight: u32, weight_total: u32) -> CanaryRules {
        CanaryRules { weight, weight_total, ..CanaryRules::default() }
    }

    proptest! {
        #[test]
        fn the_weight_is_so_many_of_the_total(part in 0u32..3000, total in 0u32..2000) {
            let rules = weight(part, total);
            let drawn = (0..rules.total()).filter(|draw| side(&rules, Asked::default(), |_| *draw) == Side::Canary);
            prop_assert_eq!(drawn.count(), part.min(rules.total()) as usize);
        }

        #[test]
        fn a_session_decides_whatever_else_is_said(
            session in prop_oneof![Just(Side::Main), Just(Side::Canary)],
            header in proptest::option::of(".*"),
            cookie in proptest::option::of(prop_oneof![Just("always"), Just("never"), Just("x")]),
            part in any::<u32>(),
        ) {
            let asked = Asked { session: Some(session), header: header.as_deref(), cookie };
            prop_assert!(side(&weight(part, 100), asked, |_| 0) == session);
        }
    }
}
