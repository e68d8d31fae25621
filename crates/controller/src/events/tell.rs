//! What is worth an Event: Ingresses and ConfigMaps that are taken up, problems of objects, and what the engine did.

use super::{Event, Kind, Object, Recorder, Speaker};
use crate::Known;
use crate::lease::Leadership;
use crate::task::Stop;
use imbl::ordmap::DiffItem;
use imbl::ordset;
use k8s_openapi::jiff::Timestamp;
use model::{Certificate, Origin, Problem, Severity};
use objects::{Asks, Meta, ObjectKey, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Problems that last are told again that often: the API server forgets Events after an hour.
const AGAIN: Duration = Duration::from_secs(1800);

/// What is told.
#[derive(Clone, Debug, Default)]
pub struct TellOptions {
    /// Events about objects: not with `--disable-sync-events`.
    pub objects: bool,
    /// The ConfigMaps that flags name.
    pub config_maps: Vec<ObjectKey>,
}

/// Tells what happens.
pub(super) struct Teller {
    options: TellOptions,
    pod: Object,
    recorder: Recorder,
    leadership: Leadership,
    known: watch::Receiver<Arc<Known>>,
    /// What was told since this replica leads.
    told: Option<Arc<Known>>,
}

impl Teller {
    pub(super) fn new(
        options: TellOptions,
        pod: Object,
        recorder: Recorder,
        leadership: Leadership,
        known: watch::Receiver<Arc<Known>>,
    ) -> Self {
        Self { options, pod, recorder, leadership, known, told: None }
    }

    pub(super) async fn run(mut self, mut stop: Stop) {
        let mut again = tokio::time::interval(AGAIN);
        again.tick().await;
        let mut last = Arc::<Known>::default();
        loop {
            let known = self.known.borrow_and_update().clone();
            tokio::select! {
                () = self.tell(&known, &last) => {}
                () = stop.asked() => return,
            }
            last = known;
            tokio::select! {
                Ok(()) = self.known.changed() => {}
                () = self.leadership.changed() => {}
                _ = again.tick() => {
                    let told = self.told.as_deref().cloned();
                    let (problems, serving) = Default::default();
                    let forgotten = told.map(|told| Known { problems, serving, ..told });
                    self.told = forgotten.map(Arc::new);
                }
                () = stop.asked() => return,
                else => return,
            }
        }
    }

    /// Tells what was not told yet, what is wrong first. It may take its time: what is solved meanwhile is left out.
    async fn tell(&mut self, known: &Arc<Known>, last: &Known) {
        if let Some(event) = reload(&self.pod, known, last) {
            self.recorder.record_all(event).await;
        }
        if !self.leadership.is_leader() || !self.options.objects {
            self.told = None;
            return;
        }
        if self.told.as_ref().is_some_and(|told| Arc::ptr_eq(told, known)) {
            return;
        }
        let (told, is_first) = match self.told.take() {
            Some(told) => (told, false),
            None => (Arc::default(), true),
        };
        for problem in appeared(&told, known) {
            let latest = self.known.borrow().clone();
            if latest.problems.of(&problem.origin).contains(&problem)
                && let Some(event) = of_problem(&problem, &latest.snapshot)
            {
                self.recorder.record_all(event).await;
            }
        }
        let mut events = ending(&told, known, Timestamp::now().as_second());
        config_maps(&self.options.config_maps, &told.snapshot, &known.snapshot, &mut events);
        if !is_first {
            taken_up(&told, known, &mut events);
        }
        for event in events {
            self.recorder.record_all(event).await;
        }
        self.told = Some(known.clone());
    }
}

/// What ingress-nginx tells of its reloads; here nothing is reloaded, but who waits for it has to be told.
fn reload(pod: &Object, known: &Known, last: &Known) -> Option<Event> {
    let (kind, message) = match &known.refused {
        Some(_) if known.refused == last.refused => return None,
        Some(reason) => (Kind::Warning, format!("Error reloading NGINX: {reason}")),
        None if known.closed.is_some()
            && (known.closed != last.closed || last.refused.is_some()) =>
        {
            let why = known.closed.as_deref().unwrap_or_default();
            (Kind::Warning, format!("every location answers 503, mend the ConfigMap: {why}"))
        }
        None if known.routes != last.routes => {
            let message = "NGINX reload triggered due to a change in configuration";
            (Kind::Normal, message.to_owned())
        }
        None => return None,
    };
    let (object, speaker) = (pod.clone(), Speaker::Everyone);
    Some(Event { object, kind, reason: "RELOAD", message, speaker })
}

fn config_maps(keys: &[ObjectKey], before: &Snapshot, now: &Snapshot, events: &mut Vec<Event>) {
    for key in keys {
        let Some(found) = now.config_maps.get(key) else { continue };
        let reason = match before.config_maps.get(key) {
            None => "CREATE",
            Some(before) if before.data != found.data => "UPDATE",
            Some(_) => continue,
        };
        events.push(Event {
            object: object("v1", "ConfigMap", &found.meta),
            kind: Kind::Normal,
            reason,
            message: format!("ConfigMap {}/{}", key.namespace, key.name),
            speaker: Speaker::Leader,
        });
    }
}

/// Ingresses that are served now and were not, or not like that.
fn taken_up(before: &Known, now: &Known, events: &mut Vec<Event>) {
    let mut keys: BTreeSet<&ObjectKey> = BTreeSet::new();
    for item in before.snapshot.ingresses.diff(&now.snapshot.ingresses) {
        match item {
            DiffItem::Add(key, _) => drop(keys.insert(key)),
            DiffItem::Update { old: (_, old), new: (key, new) } if !new.asks_the_same_as(old) => {
                keys.insert(key);
            }
            DiffItem::Update { .. } | DiffItem::Remove(..) => {}
        }
    }
    for item in before.served.diff(&now.served) {
        if let ordset::DiffItem::Add(key) = item {
            keys.insert(key);
        }
    }
    let served = keys.into_iter().filter(|key| now.served.contains(*key));
    events.extend(served.filter_map(|key| now.snapshot.ingresses.get(key)).map(|ingress| Event {
        object: Object::ingress(&ingress.meta),
        kind: Kind::Normal,
        reason: "Sync",
        message: "Scheduled for sync".to_owned(),
        speaker: Speaker::Leader,
    }));
}

/// Certificates that clients refuse at `now`, or will soon: those that were taken over since.
fn ending(before: &Known, known: &Known, now: i64) -> Vec<Event> {
    let (before, all) = (&before.serving.certificates, &known.serving.certificates);
    let taken_over = before.diff(all).filter_map(|item| match item {
        DiffItem::Add(_, it) | DiffItem::Update { new: (_, it), .. } => Some(it),
        DiffItem::Remove(..) => None,
    });
    let event = |it: &Arc<Certificate>| {
        let message = it.ending(now)?;
        let (namespace, name) = it.id.as_str().split_once('/')?;
        let secret = known.snapshot.secrets.get(&ObjectKey::new(namespace, name))?;
        let (kind, speaker) = (Kind::Warning, Speaker::Leader);
        let object = object("v1", "Secret", &secret.meta);
        Some(Event { object, kind, reason: "CertificateEnding", message, speaker })
    };
    taken_over.filter_map(event).collect()
}

/// Problems that are there now and were not before.
fn appeared(before: &Known, now: &Known) -> Vec<Problem> {
    let differences = before.problems.differences(&now.problems);
    let new = differences
        .flat_map(|(before, now)| now.iter().filter(|problem| !before.contains(problem)));
    new.cloned().collect()
}

/// The Event of a problem; none for what is no object.
fn of_problem(problem: &Problem, snapshot: &Snapshot) -> Option<Event> {
    let is_ingress = problem.origin.kind == model::Kind::Ingress;
    let is_material = matches!(problem.origin.kind, model::Kind::Secret | model::Kind::ConfigMap);
    let object = of_origin(&problem.origin, snapshot)?;
    let text = match &problem.key {
        Some(key) => format!("{key}: {}", problem.message),
        None => problem.message.to_string(),
    };
    let is_annotation = problem.key.as_ref().is_some_and(|key| !key.starts_with("spec"));
    let (kind, reason, message) = match problem.severity {
        Severity::Notice => (Kind::Normal, "WithoutEffect", text),
        Severity::Warning | Severity::Error if is_ingress && is_annotation => {
            let message = format!("Error parsing annotations: {text}");
            (Kind::Warning, "AnnotationParsingFailed", message)
        }
        Severity::Warning => (Kind::Warning, "PartlyServed", text),
        // What it is for may be served all the same, by what its last good version says.
        Severity::Error if is_material => (Kind::Warning, "NotUsed", text),
        Severity::Error => (Kind::Warning, "NotServed", text),
    };
    Some(Event { object, kind, reason, message, speaker: Speaker::Leader })
}

/// The object that a problem is about. One that cannot be read may have no last good version to know it by.
fn of_origin(origin: &Origin, snapshot: &Snapshot) -> Option<Object> {
    let key = ObjectKey { namespace: origin.namespace.clone(), name: origin.name.clone() };
    let kind = objects::Kind::named(origin.kind.name())?;
    let found = snapshot.object(kind, &key);
    let uid = found.map(|found| found.meta().uid.clone()).unwrap_or_default();
    Some(Object { api_version: kind.api_version(), kind: kind.name(), key, uid })
}

fn object(api_version: &'static str, kind: &'static str, meta: &Meta) -> Object {
    Object { api_version, kind, key: meta.key.clone(), uid: meta.uid.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use translate::{Options, Translator};

    const CLASS: &str = "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, \
                         spec: {controller: k8s.io/ingress-nginx}}";

    /// What is known of an Ingress with these annotations, of this generation.
    fn known(generation: u32, annotations: &str, status: &str) -> Known {
        let text = format!(
            "{CLASS}\n---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: a, namespace: demo, \
             uid: u-1, generation: {generation}, annotations: {{{annotations}}}}}, \
             spec: {{ingressClassName: nginx, rules: [{{host: a.test}}]}}, \
             status: {{loadBalancer: {{ingress: [{status}]}}}}}}\n---\n\
             {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: demo}}, data: {{a: '{generation}'}}}}"
        );
        let snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let found = Translator::new(Options::default()).update(&snapshot);
        let (problems, served) = (found.problems, found.served);
        Known { snapshot, problems, served, ..Known::default() }
    }

    fn told(before: &Known, now: &Known) -> Vec<String> {
        let mut events = Vec::new();
        config_maps(&[ObjectKey::new("demo", "c")], &before.snapshot, &now.snapshot, &mut events);
        taken_up(before, now, &mut events);
        let problems = appeared(before, now);
        events.extend(problems.iter().filter_map(|problem| of_problem(problem, &now.snapshot)));
        let shown = |event: &Event| {
            let Event { object, kind, reason, message, .. } = event;
            format!("{} {} {kind:?} {reason} {message}", object.kind, object.key.name)
        };
        events.iter().map(shown).collect()
    }

    #[test]
    fn what_is_taken_up_is_told_as_ingress_nginx_tells_it() {
        let (nothing, first) = (Known::default(), known(1, "", ""));
        let created = [
            "ConfigMap c Normal CREATE ConfigMap demo/c",
            "Ingress a Normal Sync Scheduled for sync",
        ];
        assert_eq!(told(&nothing, &first), created);
        assert!(
            told(&first, &known(1, "", "ip: 192.0.2.1")).is_empty(),
            "a status is nothing to take up"
        );
        let updated = [
            "ConfigMap c Normal UPDATE ConfigMap demo/c",
            "Ingress a Normal Sync Scheduled for sync",
        ];
        assert_eq!(told(&first, &known(2, "example.com/note: new", "")), updated);
    }

    #[test]
    fn problems_are_told_when_they_appear() {
        let bad = known(1, "nginx.ingress.kubernetes.io/proxy-connect-timeout: often", "");
        let events = told(&known(1, "", ""), &bad);
        let told_of_problem: Vec<_> =
            events.iter().filter(|event| event.contains("AnnotationParsingFailed")).collect();
        assert_eq!(told_of_problem.len(), 1, "{events:?}");
        let expected = "Ingress a Warning AnnotationParsingFailed Error parsing annotations: ";
        assert!(told_of_problem[0].starts_with(expected), "{events:?}");
        assert!(told(&bad, &known(1, "", "")).iter().all(|event| !event.contains("Warning")));
    }

    #[test]
    fn a_certificate_that_ends_is_told_of_its_secret_until_another_takes_its_place() {
        const NOW: i64 = 1_000_000_000;
        let secret = "{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: s, namespace: demo, uid: u-2}}";
        let certificate = |days: i64| Certificate {
            id: model::CertificateId::new("demo/s"),
            chain: Vec::new(),
            key: model::PrivateKey(Vec::new()),
            names: Vec::new().into(),
            not_after: NOW + days * 86_400 + 1,
        };
        let known = |days| {
            let certificate = certificate(days);
            let mut known = Known {
                snapshot: objects::snapshot_of([(Path::new("in.yaml"), secret)]),
                ..Known::default()
            };
            known.serving.certificates.insert(certificate.id.clone(), Arc::new(certificate));
            known
        };
        let told = |before: &Known, now: &Known| {
            let events = ending(before, now, NOW).into_iter();
            events.map(|it| format!("{} {} {}", it.object.uid, it.reason, it.message)).collect()
        };
        let (nothing, old, new) = (Known::default(), known(-2), known(90));
        let line =
            "u-2 CertificateEnding its certificate ended 1 day ago, clients refuse it; renew it";
        let lines: Vec<String> = told(&nothing, &old);
        assert_eq!(lines, [line]);
        let nobody: Vec<String> = Vec::new();
        assert_eq!((told(&old, &old), told(&old, &new)), (nobody.clone(), nobody));
        assert_eq!(told(&new, &old), lines);
    }

    #[test]
    fn the_severity_of_other_problems_is_their_reason() {
        let snapshot = known(1, "", "").snapshot;
        let problem = |kind, key: Option<&str>, severity| Problem {
            origin: Origin::new(kind, "demo", "a"),
            key: key.map(str::to_owned),
            severity,
            message: "it is wrong".into(),
        };
        let reason =
            |problem| of_problem(&problem, &snapshot).map(|event| (event.reason, event.message));
        let (ingress, map) = (model::Kind::Ingress, model::Kind::ConfigMap);
        let spec = reason(problem(ingress, Some("spec"), Severity::Error));
        assert_eq!(spec, Some(("NotServed", "spec: it is wrong".to_owned())));
        let value = reason(problem(map, Some("use-http2"), Severity::Warning));
        assert_eq!(value, Some(("PartlyServed", "use-http2: it is wrong".to_owned())));
        let key = reason(problem(map, Some("main-snippet"), Severity::Error));
        assert_eq!(key, Some(("NotUsed", "main-snippet: it is wrong".to_owned())));
        let notice = reason(problem(ingress, Some("a"), Severity::Notice));
        assert_eq!(notice, Some(("WithoutEffect", "a: it is wrong".to_owned())));
        assert_eq!(reason(problem(model::Kind::File, None, Severity::Error)), None);
        let known =
            of_problem(&problem(ingress, None, Severity::Error), &snapshot).expect("an Event");
        assert_eq!(&*known.object.uid, "u-1");
    }
}
