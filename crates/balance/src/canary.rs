//! Main side or canary: affinity before header, header before cookie, cookie before weight (compat/behaviour.md
//! section 10).

use model::policy::{CanaryHeader, CanaryRules, CanaryTest};
use model::{Spent, Steps};

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
pub fn side(
    rules: &CanaryRules,
    asked: Asked<'_>,
    steps: &Steps,
    random: impl FnOnce(u32) -> u32,
) -> Result<Side, Spent> {
    if let Some(side) = asked.session {
        return Ok(side);
    }
    if let (Some(header), Some(value)) = (&rules.header, asked.header)
        && let Some(side) = by_header(header, value, steps)?
    {
        return Ok(side);
    }
    Ok(asked.cookie.and_then(by_word).unwrap_or_else(|| {
        if random(rules.total()) < rules.weight { Side::Canary } else { Side::Main }
    }))
}

fn by_header(header: &CanaryHeader, value: &str, steps: &Steps) -> Result<Option<Side>, Spent> {
    Ok(match &header.test {
        CanaryTest::Word => by_word(value),
        CanaryTest::Value(wanted) => (value == **wanted).then_some(Side::Canary),
        CanaryTest::Pattern(pattern) => {
            pattern.try_match(value.as_bytes(), steps)?.then_some(Side::Canary)
        }
        CanaryTest::Never => Some(Side::Main),
    })
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
    use model::Steps;
    use model::policy::CanaryRules;
    use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    fn weight(weight: u32, weight_total: u32) -> CanaryRules {
        CanaryRules { weight, weight_total, ..CanaryRules::default() }
    }

    proptest! {
        #[test]
        fn the_weight_is_so_many_of_the_total(part in 0u32..3000, total in 0u32..2000) {
            let rules = weight(part, total);
            let side_of = |draw| side(&rules, Asked::default(), &Steps::default(), |_| draw);
            let drawn = (0..rules.total()).filter(|draw| side_of(*draw) == Ok(Side::Canary));
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
            let found = side(&weight(part, 100), asked, &Steps::default(), |_| 0);
            prop_assert!(found == Ok(session));
        }
    }
}
