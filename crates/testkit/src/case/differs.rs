//! Where a case differs on purpose, and by which decision.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::exchange::Step;

/// Decisions for a whole case, or for single steps by their title or number (from 1).
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Differs {
    /// Any step may differ.
    Everywhere(String),
    /// These steps may differ.
    Steps(BTreeMap<String, String>),
}

impl Default for Differs {
    fn default() -> Self {
        Self::Steps(BTreeMap::new())
    }
}

impl Differs {
    /// The decision by which the step with this index (from 0) may differ.
    #[must_use]
    pub fn decision(&self, index: usize, step: &Step) -> Option<&str> {
        match self {
            Self::Everywhere(decision) => Some(decision),
            Self::Steps(steps) => {
                let found = steps.get(step.title()).or_else(|| steps.get(&(index + 1).to_string()));
                found.map(String::as_str)
            }
        }
    }

    /// Whether it says which steps it is about.
    #[must_use]
    pub fn names_steps(&self) -> bool {
        matches!(self, Self::Steps(_))
    }

    /// What is said about steps that there are none of.
    pub(super) fn strangers(&self, steps: &[Step]) -> impl Iterator<Item = &str> {
        let named = match self {
            Self::Everywhere(_) => None,
            Self::Steps(named) => Some(named),
        };
        let is_step = |key: &str| {
            let mut steps = steps.iter().enumerate();
            steps.any(|(index, step)| step.title() == key || (index + 1).to_string() == key)
        };
        named
            .into_iter()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
            .filter(move |key| !is_step(key))
    }

    /// These decisions and, where they say nothing, the others.
    #[must_use]
    pub fn before(self, others: Self) -> Self {
        match (self, others) {
            (Self::Steps(own), Self::Steps(mut others)) => {
                others.extend(own);
                Self::Steps(others)
            }
            (Self::Steps(own), others) if own.is_empty() => others,
            (Self::Steps(_), everywhere) => everywhere,
            (everywhere, _) => everywhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(text: &str) -> Differs {
        serde_json::from_value(crate::yaml::documents(text).unwrap().remove(0)).unwrap()
    }

    #[test]
    fn decisions_are_for_all_steps_or_for_those_named() {
        let step = Step { name: Some("a name".to_owned()), ..Step::default() };
        assert_eq!(differs("'row 3'").decision(0, &step), Some("row 3"));
        assert_eq!(differs("{a name: row 4}").decision(0, &step), Some("row 4"));
        assert_eq!(differs("{'2': row 5}").decision(1, &step), Some("row 5"));
        assert_eq!(differs("{'2': row 5}").decision(0, &step), None);
    }

    #[test]
    fn reasons_for_steps_that_do_not_exist_are_found() {
        let steps = [Step { name: Some("a name".to_owned()), ..Step::default() }];
        let of = |text: &str| -> Vec<String> {
            differs(text).strangers(&steps).map(ToOwned::to_owned).collect()
        };
        assert_eq!(of("{a name: x, '1': x, '2': x, other: x}"), ["2", "other"]);
        assert_eq!(of("everywhere"), Vec::<String>::new());
    }

    #[test]
    fn own_decisions_come_before_recorded_ones() {
        let step = Step { name: Some("a".to_owned()), ..Step::default() };
        let both = differs("{a: ours}").before(differs("{a: theirs, '2': other}"));
        assert_eq!(
            (both.decision(0, &step), both.decision(1, &Step::default())),
            (Some("ours"), Some("other"))
        );
        assert_eq!(Differs::default().before(differs("all")).decision(7, &step), Some("all"));
    }
}
