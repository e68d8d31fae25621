//! Which objects a label selector means.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::BTreeMap;

/// Which objects are meant, by their labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector(pub(super) LabelSelector);

impl Selector {
    /// Whether these labels are meant. What is asked for in a way that is not known means nobody.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut equal = self.0.match_labels.iter().flatten();
        let mut asked = self.0.match_expressions.iter().flatten();
        equal.all(|(name, value)| labels.get(name) == Some(value))
            && asked.all(|asked| {
                let value = labels.get(&asked.key);
                let among = || asked.values.iter().flatten().any(|listed| Some(listed) == value);
                match asked.operator.as_str() {
                    "In" => value.is_some() && among(),
                    "NotIn" => !among(),
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => false,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::Selector;
    use serde_json::json;

    #[test]
    fn all_that_is_asked_for_must_hold_and_an_unknown_operator_never_does() {
        let labels = [("team", "shop"), ("tier", "web")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let labels = labels.into_iter().collect();
        let asked = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"team": "shop"}}), true),
            (json!({"matchLabels": {"team": "shop", "tier": "db"}}), false),
            (asked("In", &["db", "web"]), true),
            (asked("NotIn", &["db", "web"]), false),
            (asked("Exists", &[]), true),
            (asked("DoesNotExist", &[]), false),
            (asked("Near", &["web"]), false),
        ] {
            let selector = Selector(serde_json::from_value(selector.clone()).expect("a selector"));
            assert_eq!(selector.matches(&labels), expected, "{selector:?}");
        }
    }
}
