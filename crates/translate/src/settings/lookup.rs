//! Looking a key up: annotation, else ConfigMap, else nothing; written here and nowhere else.

use super::{About, AnyKey, Form, Key, OnBad};
use crate::Options;
use crate::ingress::Target;
use crate::problems::ALL_CLOSED;
use crate::secret_files::SecretFiles;
use crate::snippets::ForAll;
use crate::tenancy::CrossNamespace;
use imbl::OrdMap;
use model::{Kind, Message, Origin, Outside, Problem, Severity, Why};
use objects::{ConfigMap, Malformed, ObjectKey, Secret, Snapshot};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is looked at besides the annotations.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// `--annotations-prefix`.
    pub(crate) prefix: &'a str,
    /// `--enable-annotation-validation`.
    pub(crate) validate: bool,
    /// The ConfigMap and its values.
    pub(crate) config_map: Option<(&'a ObjectKey, &'a BTreeMap<String, String>)>,
    /// The Secrets of the cluster.
    pub(crate) secrets: &'a OrdMap<ObjectKey, Arc<Secret>>,
    /// What could not be read.
    pub(crate) malformed: &'a OrdMap<Arc<str>, Arc<Malformed>>,
    /// The ConfigMaps of the cluster.
    pub(crate) config_maps: &'a OrdMap<ObjectKey, Arc<ConfigMap>>,
    /// What was read of Secrets, each once.
    pub(crate) files: &'a SecretFiles,
    /// What may be named of other namespaces.
    pub(crate) cross_namespace: CrossNamespace,
    /// Whether snippets of Ingresses count.
    pub(crate) allows_snippets: bool,
    /// `use-geoip2`: variables of databases have values.
    pub(crate) has_databases: bool,
    /// Whether the default paths of logs are files.
    pub(crate) log_folder: bool,
    /// Whether the engine understands nginx's own words.
    pub(crate) raw: bool,
    /// Where what objects name may lead.
    pub(crate) outside: &'a Outside,
    /// What the ConfigMap's snippets mean, once they have been read.
    pub(crate) snippets: Option<&'a ForAll>,
    /// Whether there is a `--default-backend-service`.
    pub(crate) has_default_backend: bool,
}

impl<'a> Scope<'a> {
    /// What the command line and the objects say, before the ConfigMap was understood.
    pub(crate) fn new(
        options: &'a Options,
        snapshot: &'a Snapshot,
        files: &'a SecretFiles,
    ) -> Self {
        let config_map = options.config_map.as_ref();
        let found = config_map.and_then(|key| snapshot.config_maps.get(key));
        Self {
            prefix: &options.annotations_prefix,
            validate: options.validate_annotations,
            config_map: config_map.zip(found.map(|map| &map.data)),
            secrets: &snapshot.secrets,
            malformed: &snapshot.malformed,
            config_maps: &snapshot.config_maps,
            files,
            cross_namespace: CrossNamespace::default(),
            allows_snippets: false,
            has_databases: false,
            log_folder: options.log_folder,
            raw: options.raw,
            outside: &options.outside,
            snippets: None,
            has_default_backend: options.default_backend_service.is_some(),
        }
    }
}

/// The rule that an annotation breaks, so that its Ingress is not taken; in the order in which they are looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// `annotation-value-word-blocklist` has this word.
    Word(String),
    /// `annotations-risk-level` is lower.
    Risk,
    /// The value is none.
    Value,
}

/// Why an Ingress is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// The annotation, without prefix.
    pub(crate) name: String,
    /// What it breaks.
    pub(crate) rule: Rule,
    /// What is wrong and how to mend it.
    pub(crate) reason: String,
}

/// What the annotations of an Ingress make of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Why the Ingress is not taken.
    pub(crate) rejections: Vec<Rejection>,
    /// Why its paths answer 503.
    pub(crate) denied: Option<String>,
    /// What is wrong with its snippets: the annotation, and the sentence.
    pub(crate) snippets: Vec<(String, Message)>,
}

/// Where the value of a key stands.
pub(crate) struct Written<'a> {
    /// The Ingress or the ConfigMap.
    pub(crate) by: Origin,
    /// The name, as it is written there.
    pub(crate) key: String,
    /// Its text.
    pub(crate) text: Cow<'a, str>,
    /// Whether the ConfigMap says something, too, that does not count here.
    pub(crate) instead: bool,
    /// Whether the text is shown nowhere.
    pub(crate) is_secret: bool,
}

/// The settings of one Ingress, or those of the ConfigMap alone.
pub(crate) struct Settings<'a> {
    scope: Scope<'a>,
    origin: Origin,
    /// By name without prefix; none when the ConfigMap alone is read: then it is its problems that are noted.
    pub(super) annotations: Option<BTreeMap<&'a str, &'a str>>,
    /// Full names of annotations with another prefix.
    foreign: Vec<&'a str>,
    pub(crate) verdict: Verdict,
    /// Upstreams that are wanted besides those of paths.
    pub(super) targets: BTreeSet<Target>,
    /// ConfigMaps that were looked for.
    pub(super) config_maps: BTreeSet<ObjectKey>,
    problems: Vec<Problem>,
}

impl Verdict {
    /// Why the Ingress is not taken, in one text.
    pub(crate) fn rejected(&self) -> Option<String> {
        self.rejections.first().map(|first| format!("{}: {}", first.name, first.reason))
    }
}

impl<'a> Settings<'a> {
    /// The settings of the ConfigMap alone.
    pub(crate) fn of_config_map(scope: Scope<'a>) -> Self {
        let (namespace, name) = scope.config_map.map_or(("".into(), "".into()), |(key, _)| {
            (Arc::clone(&key.namespace), Arc::clone(&key.name))
        });
        let origin = Origin { kind: Kind::ConfigMap, namespace, name };
        Self::new(scope, origin, None)
    }

    /// The object whose settings they are.
    pub(crate) fn own_origin(&self) -> &Origin {
        &self.origin
    }

    /// The settings of an Ingress with these annotations.
    pub(crate) fn of_ingress(
        scope: Scope<'a>,
        origin: Origin,
        annotations: &'a BTreeMap<String, String>,
    ) -> Self {
        let (mut ours, mut foreign) = (BTreeMap::new(), Vec::new());
        for (full, value) in annotations {
            match full.strip_prefix(scope.prefix).and_then(|rest| rest.strip_prefix('/')) {
                Some(name) => drop(ours.insert(name, value.as_str())),
                None => foreign.push(full.as_str()),
            }
        }
        Self { foreign, ..Self::new(scope, origin, Some(ours)) }
    }

    fn new(
        scope: Scope<'a>,
        origin: Origin,
        annotations: Option<BTreeMap<&'a str, &'a str>>,
    ) -> Self {
        Self {
            scope,
            origin,
            annotations,
            foreign: Vec::new(),
            verdict: Verdict::default(),
            targets: BTreeSet::new(),
            config_maps: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// The value of a key: the annotation's, else the ConfigMap's. What cannot be read is a problem.
    pub(crate) fn get<T>(&mut self, key: &Key<T>) -> Option<T> {
        let about = &key.about;
        if let Some((name, blank)) = self.refused_blank(about)
            && let Err(wrong) = (key.parse)(if about.exact { blank } else { "" })
        {
            self.bad_annotation(about, name, blank, &wrong);
        } else if let Some((name, text)) = self.annotation(about) {
            let read = if self.scope.validate { key.parse } else { key.free };
            match read(&text) {
                Ok(value) => return Some(value),
                Err(wrong) => self.bad_annotation(about, name, &text, &wrong),
            }
        }
        let (name, text) = self.in_config_map(about)?;
        (key.of_all)(&text).map_err(|wrong| self.bad_config_map(about, name, &text, &wrong)).ok()
    }

    /// The items of a key of the ConfigMap, where an empty value means none and not the default.
    pub(crate) fn list<T>(&mut self, key: &Key<Vec<T>>) -> Option<Vec<T>> {
        let data = self.scope.config_map.map(|(_, data)| data);
        match data.and_then(|data| data.get(key.about.name)) {
            Some(text) if normalise(text).is_empty() => Some(Vec::new()),
            _ => self.get(key),
        }
    }

    /// Whether a key has a value in the ConfigMap, be it one that cannot be read.
    pub(crate) fn is_written<T>(&self, key: &Key<T>) -> bool {
        self.in_config_map(&key.about).is_some()
    }

    /// The value of a key, or `default`.
    pub(crate) fn get_or<T>(&mut self, key: &Key<T>, default: T) -> T {
        self.get(key).unwrap_or(default)
    }

    /// The annotations with the prefix, by name without it.
    pub(crate) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.annotations.iter().flatten().map(|(name, value)| (*name, *value))
    }

    /// The full names of annotations with another prefix.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = &'a str> {
        self.foreign.iter().copied()
    }

    /// The text of an annotation that no key reads, if it is there.
    pub(crate) fn raw(&self, name: &str) -> Option<Cow<'a, str>> {
        self.annotations.as_ref()?.get(name).map(|value| normalise(value))
    }

    /// The same as it was written, with the space around its lines.
    pub(crate) fn written(&self, name: &str) -> Option<&'a str> {
        self.annotations.as_ref()?.get(name).copied()
    }

    /// From now on what is behind a target is in the Configuration.
    pub(crate) fn lead_to(&mut self, target: Option<Target>) {
        self.targets.extend(target);
    }

    /// Whether the ConfigMap alone is read.
    pub(crate) fn is_of_config_map(&self) -> bool {
        self.annotations.is_none()
    }

    /// What is looked at besides the annotations.
    pub(crate) fn scope(&self) -> Scope<'a> {
        self.scope
    }

    /// Whether the ConfigMap alone is read: then its problems are noted, not those of an Ingress.
    pub(crate) fn is_config_map(&self) -> bool {
        self.annotations.is_none()
    }

    /// Namespace of the Ingress.
    pub(crate) fn namespace(&self) -> &Arc<str> {
        &self.origin.namespace
    }

    /// The name that a user writes.
    pub(crate) fn full_name(&self, name: &str) -> String {
        if self.annotations.is_some() {
            format!("{}/{name}", self.scope.prefix)
        } else {
            name.to_owned()
        }
    }

    /// Notes a problem with a key.
    pub(crate) fn note(&mut self, name: &str, severity: Severity, message: impl Into<Message>) {
        self.note_of(&self.full_name(name), severity, message);
    }

    /// The same by the full name of an annotation.
    pub(crate) fn note_of(&mut self, key: &str, severity: Severity, message: impl Into<Message>) {
        let (key, message) = (Some(key.to_owned()), message.into());
        self.problems.push(Problem { origin: self.origin.clone(), key, severity, message });
    }

    /// The paths of the Ingress answer 503; the first reason counts.
    pub(crate) fn deny(&mut self, name: &str, reason: impl Into<Message>) {
        let reason = reason.into();
        let message = format!("{reason}; the paths of the Ingress answer 503 until it is mended");
        self.note(name, Severity::Error, reason.within(message));
        self.verdict.denied.get_or_insert_with(|| format!("{name}: {reason}"));
    }

    /// The same for a mistake in a snippet.
    pub(crate) fn deny_by_snippet(&mut self, name: &str, reason: impl Into<Message>) {
        let reason = reason.into();
        self.deny(name, reason.clone());
        self.verdict.snippets.push((name.to_owned(), reason));
    }

    /// The Ingress is not taken, because a value is none.
    pub(crate) fn reject(&mut self, name: &str, reason: &str) {
        self.reject_by(Rule::Value, name, reason);
    }

    /// The Ingress is not taken.
    pub(crate) fn reject_by(&mut self, rule: Rule, name: &str, reason: &str) {
        let reason = Message::from(reason).to_string();
        let why = if rule == Rule::Risk { Why::NotAllowed } else { Why::NotTaken };
        let message = format!("{reason}; the Ingress is not taken until it is mended");
        self.note(name, Severity::Error, Message::from(message).because(why));
        let name = name.to_owned();
        self.verdict.rejections.push(Rejection { name, rule, reason });
    }

    /// What was found: what is wrong, the upstreams that are wanted besides those of paths, and the ConfigMaps that
    /// were looked for.
    pub(crate) fn finish(self) -> (Vec<Problem>, BTreeSet<Target>, BTreeSet<ObjectKey>) {
        (self.problems, self.targets, self.config_maps)
    }

    /// Where the value of a key stands that counts; none where the default does.
    pub(crate) fn written_at(&self, key: &dyn AnyKey) -> Option<Written<'a>> {
        let (about, free) = (key.about(), !self.scope.validate);
        let own = self.annotation(about).filter(|(_, text)| key.reads(text, free));
        if let Some((name, text)) = own {
            let key = format!("{}/{name}", self.scope.prefix);
            let instead = self.in_config_map(about).is_some();
            let by = self.origin.clone();
            return Some(Written { by, key, text, instead, is_secret: about.secret });
        }
        let (name, text) = self.in_config_map(about).filter(|(_, text)| key.reads(text, false))?;
        let ObjectKey { namespace, name: of } = self.scope.config_map?.0.clone();
        let by = Origin { kind: Kind::ConfigMap, namespace, name: of };
        let is_secret = about.secret;
        Some(Written { by, key: name.to_owned(), text, instead: false, is_secret })
    }

    /// The key's name in the ConfigMap, and its text if there is any.
    fn in_config_map(&self, about: &About) -> Option<(&'static str, Cow<'a, str>)> {
        let name = about.in_config_map()?;
        let text = normalise(self.scope.config_map?.1.get(name)?);
        (!text.is_empty()).then_some((name, text))
    }

    /// Name and text of the first name of a key that is there and neither empty nor blank.
    fn annotation(&self, about: &About) -> Option<(&'static str, Cow<'a, str>)> {
        let mut names = self.all_written(about);
        let (name, written, text) = names.find_map(|(name, written)| {
            let text = normalise(written);
            (!text.is_empty()).then_some((name, written, text))
        })?;
        // Go reads no number and no boolean with space around it, validated or not.
        let is_exact = about.exact && (self.scope.validate || about.form != Form::Other);
        Some((name, if is_exact { Cow::Borrowed(written) } else { text }))
    }

    /// The name of a key that counts in ingress-nginx, and its text as it was written: the first one that is there and
    /// not empty. One that is blank hides those behind it.
    pub(crate) fn written_as(&self, about: &About) -> Option<(&'static str, &'a str)> {
        self.all_written(about).find(|(_, written)| !written.is_empty())
    }

    /// All names of a key that are there, with their texts.
    fn all_written(&self, about: &About) -> impl Iterator<Item = (&'static str, &'a str)> {
        let annotations = self.annotations.as_ref().filter(|_| about.in_annotations());
        let names = std::iter::once(about.name).chain(about.aliases.iter().copied());
        names.filter_map(move |name| Some((name, *annotations?.get(name)?)))
    }

    /// An annotation that is blank, where ingress-nginx looks at it before it takes it for absent: it passes over what
    /// is empty, and a blank is not.
    fn refused_blank(&self, about: &About) -> Option<(&'static str, &'a str)> {
        let is_minded = matches!(about.on_bad, OnBad::Reject | OnBad::RejectOrDeny);
        if !self.scope.validate || !is_minded || about.may_be_blank {
            return None;
        }
        self.written_as(about).filter(|(_, written)| normalise(written).is_empty())
    }

    fn bad_annotation(&mut self, about: &About, name: &str, text: &str, wrong: &str) {
        let reason = Message::from(format!("{} {wrong}", quote(text)));
        let reason = reason.because((about.passed_over == Some(wrong)).then_some(Why::TookIt));
        match about.on_bad {
            OnBad::Reject | OnBad::RejectOrDeny if self.scope.validate => {
                self.reject(name, &reason);
            }
            OnBad::Deny | OnBad::RejectOrDeny => self.deny(name, reason),
            OnBad::Reject | OnBad::Default | OnBad::Disbelieve => {
                let instead = match about.in_config_map() {
                    Some(_) => "the ConfigMap's value or the default is used instead",
                    None => "it is ignored",
                };
                self.note(name, Severity::Warning, format!("{reason}; {instead}"));
            }
        }
    }

    /// A key of the ConfigMap closes everything. A Pod that ran before keeps the text before instead.
    pub(crate) fn close(&mut self, name: &str, reason: &str) {
        let message =
            format!("{reason}; {ALL_CLOSED} until it is mended, on each Pod that starts with it");
        self.note(name, Severity::Error, Why::AllClosed.says(message));
        self.verdict.denied.get_or_insert_with(|| format!("{name} of the ConfigMap: {reason}"));
    }

    fn bad_config_map(&mut self, about: &About, name: &str, text: &str, wrong: &str) {
        if self.annotations.is_some() {
            return;
        }
        let reason = Message::from(format!("{} {wrong}", quote(text)));
        match about.on_bad {
            OnBad::Deny => self.close(name, &reason),
            OnBad::Disbelieve => {
                let message = format!("{reason}; nobody is believed until it is mended");
                self.note(name, Severity::Error, message);
            }
            OnBad::Default | OnBad::Reject | OnBad::RejectOrDeny => {
                let message = format!("{reason}; the default is used instead");
                self.note(name, Severity::Warning, message);
            }
        }
    }
}

/// A value as it appears in messages: quoted and not too long.
pub(crate) fn quote(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A value without the space around each of its lines (compat/behaviour.md section 1).
pub(crate) fn normalise(value: &str) -> Cow<'_, str> {
    let trimmed = value.trim();
    if !trimmed.contains('\n') {
        return Cow::Borrowed(trimmed);
    }
    Cow::Owned(trimmed.lines().map(str::trim).collect::<Vec<_>>().join("\n"))
}
