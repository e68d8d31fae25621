//! Problems: every mistake with its object, key and remedy.

use super::json;
use crate::now::Now;
use crate::query::{Query, Refusal, shown, told};
use model::{Origin, Problem};
use serde::Serialize;
use std::collections::BTreeMap;

/// Namespaces that are counted.
const NAMESPACES: usize = 1000;

/// Problems.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Problems {
    /// How many there are.
    pub(crate) total: usize,
    /// How many were found.
    pub(crate) found: usize,
    /// The number of the first row.
    pub(crate) offset: usize,
    /// How many each namespace has, of the first 1000 that have any.
    pub(crate) namespaces: BTreeMap<String, usize>,
    /// The rows, errors first.
    pub(crate) problems: Vec<Row>,
}

/// A mistake in an object.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Row {
    /// `error`: not served; `warning`: a part is left out; `notice`: without the effect that may be expected.
    pub(crate) severity: &'static str,
    /// The kind of the object.
    pub(crate) kind: String,
    /// Its namespace; empty for what has none.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// The annotation, key or field.
    pub(crate) key: Option<String>,
    /// What is wrong, and the remedy.
    pub(crate) message: String,
    /// When it appeared.
    pub(crate) since: Option<f64>,
}

impl Row {
    fn new(problem: &Problem, since: Option<f64>) -> Self {
        let Problem { origin: Origin { kind, namespace, name }, key, severity, message } = problem;
        Self {
            severity: severity.name(),
            kind: kind.name().to_owned(),
            namespace: shown(namespace),
            name: shown(name),
            key: key.as_ref().map(shown),
            message: told(message),
            since,
        }
    }
}

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    let ((offset, limit), words) = (query.window()?, query.words()?);
    let namespace = query.get("namespace");
    let (mut total, mut namespaces) = (0, BTreeMap::<String, usize>::new());
    let mut found = Vec::new();
    for problem in now.known.problems.iter() {
        let own = &problem.origin.namespace;
        total += 1;
        if let Some(count) = namespaces.get_mut(&**own) {
            *count += 1;
        } else if namespaces.len() < NAMESPACES {
            namespaces.insert(own.to_string(), 1);
        }
        let has = || {
            let text = problem.to_string().to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        if namespace.is_none_or(|asked| asked == &**own) && (words.is_empty() || has()) {
            found.push(problem);
        }
    }
    found.sort_by_key(|problem| std::cmp::Reverse(problem.severity));
    let history = now.history.lock();
    let row = |problem: &&Problem| Row::new(problem, history.since(problem));
    json(&Problems {
        total,
        found: found.len(),
        offset,
        namespaces,
        problems: found.iter().skip(offset).take(limit).map(row).collect(),
    })
}
