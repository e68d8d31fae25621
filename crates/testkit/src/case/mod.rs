//! A case: a folder with objects, steps, and what to know about them.

mod differs;
mod objects;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

pub use self::{differs::Differs, objects::References};
use crate::{exchange::Step, yaml};

/// Settings that the original keeps by upstream, so that they reach every Ingress of the same Service.
const SHARED: [&str; 6] = [
    "canary",
    "affinity",
    "load-balance",
    "upstream-hash-by",
    "service-upstream",
    "session-cookie",
];

/// The namespace of the controller's own objects.
const CONTROLLER_NAMESPACE: &str = "ingress-nginx";

/// The name of the controller's ConfigMap.
const CONTROLLER_CONFIG: &str = "ingress-nginx-controller";

/// One case of a corpus.
#[derive(Clone, Debug)]
pub struct Case {
    /// Family and case, with a slash between.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// What `case.yaml` says.
    pub settings: Settings,
    /// Where the case differs on purpose.
    pub differs: Differs,
    /// Where it differs with the nginx engine alone.
    pub differs_with_nginx: Differs,
    /// The objects of `in.yaml`.
    pub objects: Vec<Value>,
    /// The steps of `exchange.yaml`; none in a case for the admission webhook.
    pub steps: Vec<Step>,
    /// Whether the case is for the admission webhook.
    pub review: bool,
}

/// What `case.yaml` says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Settings {
    /// More flags for the controller.
    pub flags: Vec<String>,
    /// Must not share the controller with other cases.
    pub alone: bool,
    /// Bodies of error answers count.
    pub strict_body: bool,
    /// Why ingress-nginx served nothing of it.
    pub not_applied: Option<String>,
    /// Differs on purpose: the decision, or decisions by step.
    differs: Differs,
    /// Differs with the nginx engine alone: the reason, or reasons by step.
    differs_with_nginx: Differs,
}

impl Case {
    /// Reads a case; further decisions may stand in a folder of the same name in `overlay`.
    ///
    /// # Errors
    /// When one of its files cannot be read.
    pub fn load(
        corpus: &Path,
        name: &str,
        overlay: Option<&Path>,
        references: &References,
    ) -> Result<Self> {
        let folder = corpus.join(name);
        let settings: Settings = yaml::optional(&folder.join("case.yaml"))?.unwrap_or_default();
        let over: Settings = match overlay {
            Some(overlay) => {
                yaml::optional(&overlay.join(name).join("case.yaml"))?.unwrap_or_default()
            }
            None => Settings::default(),
        };
        let differs = over.differs.before(settings.differs.clone());
        let differs_with_nginx =
            over.differs_with_nginx.before(settings.differs_with_nginx.clone());
        let steps: Vec<Step> = yaml::optional(&folder.join("exchange.yaml"))?.unwrap_or_default();
        for reasons in [&differs, &differs_with_nginx] {
            if let Some(stranger) = reasons.strangers(&steps).next() {
                bail!("case.yaml says why step {stranger} differs, and there is no such step");
            }
        }
        let objects = references.read(&folder.join("in.yaml"))?;
        let review = folder.join("review.yaml").exists();
        let name = name.to_owned();
        Ok(Self { name, folder, settings, differs, differs_with_nginx, objects, steps, review })
    }

    /// The family.
    #[must_use]
    pub fn family(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// Whether the case must not share the controller with others.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.settings.alone
            || self.steps.iter().any(|step| step.apply.is_some() || step.delete.is_some())
            || self
                .objects
                .iter()
                .any(|object| shares_settings(object) || hostless(object) || controllers(object))
    }

    /// Whether requests are copied, so that copies are to be waited for.
    #[must_use]
    pub fn mirrors(&self) -> bool {
        self.objects.iter().flat_map(annotations).any(|key| key.ends_with("/mirror-target"))
    }

    /// All objects that the case ever applies.
    ///
    /// # Errors
    /// When one of its files cannot be read.
    pub fn all_objects(&self, references: &References) -> Result<Vec<Value>> {
        let mut all = self.objects.clone();
        for file in self.steps.iter().flat_map(|step| step.apply.iter().chain(&step.delete)) {
            all.extend(references.read(&self.folder.join(file))?);
        }
        Ok(all)
    }
}

/// The names of all cases of a corpus, in order.
///
/// # Errors
/// When a folder cannot be read.
pub fn names(corpus: &Path) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for family in folders(corpus)? {
        for case in folders(&corpus.join(&family))? {
            out.push(format!("{family}/{case}"));
        }
    }
    out.sort();
    Ok(out)
}

fn folders(path: &Path) -> Result<Vec<String>> {
    let entries =
        std::fs::read_dir(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let mut out = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.path().is_dir() {
            out.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(out)
}

fn annotations(object: &Value) -> impl Iterator<Item = &String> {
    object["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flat_map(|annotations| annotations.keys())
}

fn shares_settings(object: &Value) -> bool {
    annotations(object)
        .filter_map(|key| key.split_once('/'))
        .any(|(_, name)| SHARED.iter().any(|prefix| name.starts_with(prefix)))
}

/// Whether an Ingress claims requests for any host.
fn hostless(object: &Value) -> bool {
    let rules = object["spec"]["rules"].as_array().filter(|rules| !rules.is_empty());
    let named = |rule: &Value| rule["host"].as_str().is_some_and(|host| !host.is_empty());
    object["kind"] == "Ingress" && !rules.is_some_and(|rules| rules.iter().all(named))
}

/// Whether the object configures the controller as a whole.
fn controllers(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["namespace"] == CONTROLLER_NAMESPACE
        || (object["kind"] == "ConfigMap" && metadata["name"] == CONTROLLER_CONFIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(objects: &str, steps: &str) -> Case {
        Case {
            name: "family/case".to_owned(),
            folder: PathBuf::new(),
            settings: Settings::default(),
            differs: Differs::default(),
            differs_with_nginx: Differs::default(),
            objects: yaml::documents(objects).unwrap(),
            steps: yaml::documents(steps)
                .unwrap()
                .first()
                .map(|steps| serde_json::from_value(steps.clone()).unwrap())
                .unwrap_or_default(),
            review: false,
        }
    }

    #[test]
    fn cases_that_reach_beyond_their_hosts_run_alone() {
        let ingress = |annotation: &str, rules: &str| {
            format!(
                "{{kind: Ingress, metadata: {{name: a, annotations: {{{annotation}}}}}, spec: {{rules: [{rules}]}}}}"
            )
        };
        let quiet = ingress("x/rewrite-target: /", "{host: a.test}");
        assert!(!case(&quiet, "").alone());
        assert!(case(&quiet, "[{apply: next.yaml}]").alone());
        assert!(case(&ingress("x/canary-weight: '1'", "{host: a.test}"), "").alone());
        assert!(case(&ingress("", "{host: a.test}, {http: {}}"), "").alone());
        assert!(case(&ingress("", ""), "").alone());
        assert!(case("{kind: ConfigMap, metadata: {name: ingress-nginx-controller}}", "").alone());
        assert!(case("{kind: Secret, metadata: {name: a, namespace: ingress-nginx}}", "").alone());
        assert!(
            !case("{kind: ConfigMap, metadata: {name: headers, annotations: null}}", "").alone()
        );
    }

    #[test]
    fn mirrors_are_known_by_their_annotation() {
        let object = "{kind: Ingress, metadata: {name: a, annotations: {n/mirror-target: x}}}";
        assert!(case(object, "").mirrors());
    }
}
