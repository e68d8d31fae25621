//! What the admission webhook says of an Ingress: a pure function of the object and of what stands on its hosts
//! (compat/behaviour.md section 24). The first rule that is broken refuses; each refusal starts with ingress-nginx's
//! text.

mod groups;
pub mod needs;
mod overlap;
mod routes;

pub use routes::useless_route;

use crate::annotations::{Rewriting, is_passed_through};
use crate::config_map::{self, Permissions};
use crate::ingress::{
    Classes, Place, find_suspicious, has_our_class, is_watched, origin, path_kind,
};
use crate::options::ANNOTATIONS_PREFIX;
use crate::pattern_budget::not_a_pattern;
use crate::secret_files::SecretFiles;
use crate::settings::{ANNOTATIONS, NameFate, Rejection, Risk, Rule, Scope, Settings};
use crate::snippets::{self, ForAll};
use crate::{Options, annotations};
use model::{Configuration, Message, Printable, Severity, Why};
use objects::{Ingress, IngressPath, PathType, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Annotations that ingress-nginx once had and warns about.
const DEPRECATED: [&str; 6] = [
    "enable-influxdb",
    "influxdb-measurement",
    "influxdb-port",
    "influxdb-host",
    "influxdb-server-name",
    "secure-verify-ca-secret",
];

/// The answer to an AdmissionReview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// Why the Ingress is refused; none: it is allowed. The first line is ingress-nginx's, the second one says what to
    /// do.
    pub refusal: Option<String>,
    /// What the user should know in any case.
    pub warnings: Vec<String>,
}

/// Reviews an Ingress that is about to be created or changed. `served` is what is served now, as translated from
/// `snapshot`. The cost is that of the one Ingress and of those that have its hosts and paths.
pub fn review(
    ingress: &Ingress,
    snapshot: &Snapshot,
    served: &Configuration,
    options: &Options,
) -> Review {
    let files = SecretFiles::default();
    let reviewer = Reviewer { ingress, snapshot, served, options, files };
    reviewer.review()
}

/// What an Ingress that is allowed asks for in vain: values that are none, unknown names and prefixes. ingress-nginx
/// never said so, which is why it is no part of a review.
pub fn in_vain(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> Vec<String> {
    let (served, files) = (&Configuration::default(), SecretFiles::default());
    Reviewer { ingress, snapshot, served, options, files }.in_vain()
}

/// Paths for which an Ingress is refused although it is served: their type does not fit them. One without a slash at
/// its beginning fits none, and is left out.
pub(crate) fn misfits<'i>(
    ingress: &'i Ingress,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Misfit<'i>> {
    let mut paths = misfit_paths(ingress);
    if !paths.is_empty() {
        let (served, files) = (&Configuration::default(), SecretFiles::default());
        let reviewer = Reviewer { ingress, snapshot, served, options, files };
        let is_strict = reviewer.permissions().strict_path_type;
        paths.retain(|misfit| is_strict && misfit.path.starts_with('/'));
    }
    paths
}

struct Reviewer<'a> {
    ingress: &'a Ingress,
    snapshot: &'a Snapshot,
    served: &'a Configuration,
    options: &'a Options,
    files: SecretFiles,
}

/// Whether a review of this Ingress is ours to make: it has our class and is in a namespace that is watched.
pub fn is_concerned(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> bool {
    let classes = Classes::accepted(snapshot, options);
    is_watched(ingress, options) && has_our_class(ingress, &classes, options)
}

/// A path that its type does not fit.
#[derive(Clone, Copy)]
pub(crate) struct Misfit<'i> {
    path: &'i str,
    kind: &'static str,
}

impl fmt::Display for Misfit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {} cannot be used with pathType {}", self.path, self.kind)
    }
}

/// Paths that their type does not fit.
fn misfit_paths(ingress: &Ingress) -> Vec<Misfit<'_>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_plain =
        |path: &str| path.is_empty() || (path.starts_with('/') && path.chars().all(plain));
    let paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
    let bad = paths.filter_map(|path| {
        let kind = match path.kind {
            PathType::Exact => "Exact",
            PathType::Prefix => "Prefix",
            PathType::ImplementationSpecific => return None,
        };
        (!is_plain(&path.path)).then_some(Misfit { path: &path.path, kind })
    });
    bad.collect()
}

impl<'a> Reviewer<'a> {
    fn review(&self) -> Review {
        let paths = misfit_paths(self.ingress);
        let deprecated = DEPRECATED.iter().map(|name| self.full(name));
        let deprecated = deprecated.filter(|name| self.ingress.meta.annotations.contains_key(name));
        let mut warnings: Vec<String> =
            deprecated.map(|name| format!("annotation {name} is deprecated")).collect();
        // Whoever writes one of the others that it removed believes in a limit, say, that limits nobody.
        let written = self.ingress.meta.annotations.keys();
        let removed = written.filter(|full| {
            let name = full.split_once('/').filter(|it| it.0 == self.options.annotations_prefix);
            let name = name.map_or("", |(_, name)| name);
            let known = ANNOTATIONS.get(name);
            !DEPRECATED.contains(&name) && known.is_some_and(|it| it.fate == NameFate::Removed)
        });
        warnings.extend(
            removed.map(|full| {
                format!("annotation {full} has no effect: ingress-nginx removed it, too")
            }),
        );
        warnings.extend(paths.iter().map(Misfit::to_string));
        let refusal = self.refusal(&paths);
        if refusal.is_none() && is_concerned(self.ingress, self.snapshot, self.options) {
            let said = self.snippets(&self.permissions()).into_iter();
            let said =
                said.map(|(name, why)| format!("annotation {name}: {why}; its paths answer 503"));
            warnings.extend(said);
        }
        Review { refusal, warnings }
    }

    fn full(&self, name: &str) -> String {
        format!("{}/{name}", self.options.annotations_prefix)
    }

    fn refusal(&self, misfits: &[Misfit<'_>]) -> Option<String> {
        if let Some(refusal) = self.suspicious() {
            return Some(refusal);
        }
        if !is_concerned(self.ingress, self.snapshot, self.options) {
            return None;
        }
        let permissions = self.permissions();
        self.catch_all()
            .or_else(|| self.uid())
            .or_else(|| {
                let strict = permissions.strict_path_type && !misfits.is_empty();
                strict.then(|| format!(
                    "ingress contains invalid paths: {}\nwrite letters, digits, . _ - and / only, or use pathType \
                     ImplementationSpecific (strict-validate-path-type of the ConfigMap)",
                    misfits.iter().map(Misfit::to_string).collect::<Vec<_>>().join("\n")
                ))
            })
            .or_else(|| self.prefix())
            .or_else(|| self.annotations(&permissions))
            .or_else(|| broken(&self.snippets(&permissions)))
            .or_else(|| overlap::refusal(self, &permissions))
    }

    fn suspicious(&self) -> Option<String> {
        let (place, text) = find_suspicious(self.ingress).filter(|_| self.options.deep_inspect)?;
        let key = &self.ingress.meta.key;
        let place = match place {
            Place::Host => "invalid host in ingress",
            Place::Path => "invalid rule in ingress",
            Place::Secret => "invalid secret in ingress",
            Place::TlsHost => "invalid host in ingress tls config",
        };
        let inner = if place == "invalid rule in ingress" { "invalid http path: " } else { "" };
        Some(format!(
            "invalid object: {place} {}/{}: {inner}invalid value found: {text}\nit looks like an attack on nginx \
             (--deep-inspect): change it",
            key.namespace, key.name
        ))
    }

    fn catch_all(&self) -> Option<String> {
        let refused = self.options.disable_catch_all && self.ingress.default_backend.is_some();
        refused.then(|| {
            "this deployment is trying to create a catch-all ingress while DisableCatchAll flag is set to true. Remove \
             '.spec.defaultBackend' or set DisableCatchAll flag to false"
                .to_owned()
        })
    }

    fn uid(&self) -> Option<String> {
        let uid = &*self.ingress.meta.uid;
        (!uid.is_empty() && !is_uuid(uid)).then(|| {
            format!(
                "ingress has invalid UID: [<nil>: Invalid value: {uid:?}: must be a lowercase UUID in 8-4-4-4-12 format]\n\
                 leave metadata.uid to the API server"
            )
        })
    }

    fn prefix(&self) -> Option<String> {
        let own = &self.options.annotations_prefix;
        let is_default = |name: &String| {
            name.strip_prefix(ANNOTATIONS_PREFIX).is_some_and(|rest| rest.starts_with('/'))
        };
        let mixed =
            own != ANNOTATIONS_PREFIX && self.ingress.meta.annotations.keys().any(is_default);
        mixed.then(|| {
            format!(
                "this deployment has a custom annotation prefix defined. Use '{own}' instead of '{ANNOTATIONS_PREFIX}'"
            )
        })
    }

    fn permissions(&self) -> Permissions {
        config_map::permissions(&mut Settings::of_config_map(self.scope()))
    }

    fn scope(&self) -> Scope<'_> {
        Scope::new(self.options, self.snapshot, &self.files)
    }

    /// Words, snippets, risk, values: in this order, whatever the order of the annotations.
    fn annotations(&self, permissions: &Permissions) -> Option<String> {
        let rejections = self.rejections(self.ingress, permissions);
        let word = rejections.iter().find_map(|rejection| match &rejection.rule {
            Rule::Word(word) => Some((rejection, word)),
            _ => None,
        });
        if let Some((rejection, word)) = word {
            let name = self.full(&rejection.name);
            return Some(format!(
                "{name} annotation contains invalid word {word}\nremove it: annotation-value-word-blocklist of the \
                 ConfigMap forbids it"
            ));
        }
        if let Some(name) = self.snippet(permissions) {
            let level = match permissions.limits.risk {
                Risk::Critical => "",
                _ => ", and annotations-risk-level to Critical",
            };
            return Some(format!(
                "{name} annotation cannot be used. Snippet directives are disabled by the Ingress administrator\n\
                 remove it, or have allow-snippet-annotations of the ConfigMap set to true{level}"
            ));
        }
        let first = rejections.iter().min_by(|a, b| a.rule.cmp(&b.rule))?;
        let name = self.full(&first.name);
        let text = match first.rule {
            Rule::Risk => format!(
                "annotation group {} contains risky annotation based on ingress configuration",
                groups::of(&first.name)
            ),
            Rule::Word(_) | Rule::Value => format!("annotation {name} contains invalid value"),
        };
        Some(format!("{text}\n{name}: {}", first.reason))
    }

    fn rejections(&self, ingress: &Ingress, permissions: &Permissions) -> Vec<Rejection> {
        let origin = origin(&ingress.meta.key);
        let scope = permissions.within(self.scope());
        let mut settings = Settings::of_ingress(scope, origin, &ingress.meta.annotations);
        annotations::read(&mut settings, &permissions.limits);
        settings.verdict.rejections
    }

    /// Problems of its annotations; snippets and what is not there have warnings of their own. It is read as if there
    /// were no other object: whoever reaches the webhook may ask, and must not hear what is wrong with Secrets.
    fn in_vain(&self) -> Vec<String> {
        let permissions = self.permissions();
        let nothing = Snapshot::default();
        let scope = Scope {
            secrets: &nothing.secrets,
            malformed: &nothing.malformed,
            config_maps: &nothing.config_maps,
            ..permissions.within(self.scope())
        };
        let origin = origin(&self.ingress.meta.key);
        let mut settings = Settings::of_ingress(scope, origin, &self.ingress.meta.annotations);
        let asked = annotations::read(&mut settings, &permissions.limits);
        if !self.options.passthrough && is_passed_through(&mut settings) {
            let message = "has no effect: Fairway runs without --enable-ssl-passthrough";
            settings.note("ssl-passthrough", Severity::Warning, message);
        }
        let (problems, targets, _) = settings.finish();
        let is_snippet =
            |key: &str| snippets::ANNOTATIONS.iter().any(|name| key == self.full(name));
        let told = problems.iter().filter(|it| it.severity >= Severity::Warning);
        let told = told.filter(|it| !it.is(Why::Absent));
        let told = told.filter_map(|it| Some((it.key.as_deref()?, &it.message)));
        let told = told.filter(|(key, _)| !is_snippet(key));
        let mut told: Vec<String> = told.map(|(key, why)| format!("{key}: {why}")).collect();
        told.extend(self.no_patterns(&asked.rewriting));
        let told = told.iter().map(|text| Printable(text).to_string()).collect();
        let mut told = needs::shortened(told);
        told.extend(needs::behind_urls(self.ingress, &targets, self.snapshot, self.options));
        told
    }

    /// Paths that are left out, since its annotations make regular expressions of them and they are none.
    fn no_patterns(&self, rewriting: &Rewriting) -> BTreeSet<String> {
        let mut hosts: BTreeMap<Option<&str>, Vec<&IngressPath>> = BTreeMap::new();
        for rule in &self.ingress.rules {
            hosts.entry(rule.host.as_deref()).or_default().extend(rule.paths.iter().flatten());
        }
        let is_regex = |path: &&IngressPath| rewriting.of_path(&path.path, path_kind(path)).regex;
        hosts.retain(|_, paths| paths.iter().any(is_regex));
        let paths: BTreeSet<&str> = hosts.values().flatten().map(|path| &*path.path).collect();
        let wrong = paths.into_iter().filter_map(|path| {
            let error = not_a_pattern(path)?;
            Some(format!(
                "path {path} is left out: {} or {} makes regular expressions of the paths of its host, and it is none \
                 ({error})",
                self.full("use-regex"),
                self.full("rewrite-target"),
            ))
        });
        wrong.collect()
    }

    /// The annotations with snippets that have mistakes, and what is wrong, by line and column. Where the ConfigMap's
    /// are wrong, nobody can tell.
    fn snippets(&self, permissions: &Permissions) -> Vec<(String, Message)> {
        let has_one = |name: &&str| self.ingress.meta.annotations.contains_key(&self.full(name));
        if self.options.raw || !snippets::ANNOTATIONS.iter().any(has_one) {
            return Vec::new();
        }
        let mut of_all = Settings::of_config_map(self.scope());
        let for_all = ForAll::read(&mut of_all, &self.options.ports_of_snippets(), None);
        if for_all.is_wrong() {
            return Vec::new();
        }
        let scope = Scope { snippets: Some(&for_all), ..permissions.within(self.scope()) };
        let origin = origin(&self.ingress.meta.key);
        let mut settings = Settings::of_ingress(scope, origin, &self.ingress.meta.annotations);
        annotations::read(&mut settings, &permissions.limits);
        let mistakes = settings.verdict.snippets.into_iter();
        mistakes.map(|(name, why)| (self.full(&name), why)).collect()
    }

    /// An annotation of any prefix that ends in `-snippet`, where those are switched off.
    fn snippet(&self, permissions: &Permissions) -> Option<&'a str> {
        let mut names = self.ingress.meta.annotations.keys();
        let found = names.find(|name| name.ends_with("-snippet"))?;
        (!permissions.limits.snippets).then_some(found.as_str())
    }
}

/// Why an Ingress is refused whose snippets have mistakes that nginx would not take, either. What only nginx can do is
/// no mistake of the Ingress.
fn broken(said: &[(String, Message)]) -> Option<String> {
    let wrong = said.iter().filter(|(_, why)| why.why() != Some(Why::NeedsNginx));
    let (first, _) = wrong.clone().next()?;
    let wrong: Vec<String> = wrong.map(|(name, why)| format!("{name}: {why}")).collect();
    Some(format!("annotation {first} contains invalid value\n{}", wrong.join("\n")))
}

/// 8-4-4-4-12 digits, lower case.
fn is_uuid(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.into_iter().all(digits)
}
