//! What series are labelled with: texts that are known by a number while anybody uses them.

use model::{Location, Origin, ServiceRef};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The value of labels where there are too many.
pub(super) const OVERFLOW: &str = "overflow";

/// Bytes of a label's value at most: each series of a request says it on up to 93 lines of the page, each host on two,
/// and tenants choose it.
const LONGEST: usize = 256;

/// A text as the value of a label, cut where it is too long.
pub fn label_value(text: &str) -> Cow<'_, str> {
    const CUT: &str = "…";
    if text.len() <= LONGEST {
        return text.into();
    }
    let end = text.floor_char_boundary(LONGEST - CUT.len());
    format!("{}{CUT}", &text[..end]).into()
}

/// A text of a label, which has a number as long as somebody holds it.
#[derive(Debug)]
pub struct Name {
    pub(super) number: u64,
    /// The text.
    pub text: Arc<str>,
}

/// Where requests are answered, as labels say it: what of it the paths of an Ingress have in common is shared with
/// them. Several locations may say the same.
#[derive(Debug)]
pub(super) struct LocationLabels {
    origin: Option<Arc<Origin>>,
    service: Option<Arc<ServiceRef>>,
    pub(super) path: Arc<str>,
}

impl LocationLabels {
    pub(super) fn of(location: &Location) -> Self {
        let Location { path, service, origin, .. } = location;
        Self { origin: origin.clone(), service: service.clone(), path: label_value(path).into() }
    }

    pub(super) fn namespace(&self) -> Option<&Arc<str>> {
        let own = self.origin.as_ref().map(|origin| &origin.namespace);
        own.or(self.service.as_ref().map(|service| &service.namespace))
    }

    pub(super) fn ingress(&self) -> Option<&Arc<str>> {
        self.origin.as_ref().map(|origin| &origin.name)
    }

    pub(super) fn service(&self) -> Option<&Arc<str>> {
        self.service.as_ref().map(|service| &service.name)
    }

    /// What tells them apart: neither the kind of the origin nor the port of the Service is a label.
    fn texts(&self) -> [&str; 4] {
        [text(self.namespace()), text(self.ingress()), text(self.service()), &self.path]
    }
}

/// A text that is empty where there is none.
pub(super) fn text(found: Option<&Arc<str>>) -> &str {
    found.map_or("", |text| &**text)
}

impl PartialEq for LocationLabels {
    fn eq(&self, other: &Self) -> bool {
        self.texts() == other.texts()
    }
}

impl Eq for LocationLabels {}

impl Hash for LocationLabels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.texts().hash(state);
    }
}

/// Where requests are answered, with the number that they know it by, as long as somebody holds it.
#[derive(Debug)]
pub struct CountedLocation {
    pub(super) number: u64,
    pub(super) spot: LocationLabels,
}

/// What a location's requests count under; held by its compiled form.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Where it is.
    pub place: Arc<CountedLocation>,
    /// The upstream of its canary.
    pub canary: Option<Arc<Name>>,
}

/// The labels of a series, besides those that all have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels {
    /// Namespace of the Ingress.
    pub namespace: Arc<str>,
    /// Name of the Ingress.
    pub ingress: Arc<str>,
    /// The host asked for; none if series are not told apart by hosts.
    pub host: Option<Arc<str>>,
    /// The path of the location, as the Ingress has it.
    pub path: Arc<str>,
    /// Name of the Service.
    pub service: Arc<str>,
    /// The upstream of the canary, if that was chosen.
    pub canary: Arc<str>,
    /// The method.
    pub method: &'static str,
    /// The status, or its class.
    pub status: Arc<str>,
}

impl Labels {
    /// The labels of what is not told apart any more, but for its namespace.
    pub(super) fn overflow(namespace: &Arc<str>, class: u16, per_host: bool) -> Self {
        let overflow: Arc<str> = OVERFLOW.into();
        Self {
            namespace: namespace.clone(),
            ingress: overflow.clone(),
            host: per_host.then(|| overflow.clone()),
            path: overflow.clone(),
            service: overflow.clone(),
            canary: overflow,
            method: OVERFLOW,
            status: status_text(CLASS + class),
        }
    }

    /// Names and values, in the order of names.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let host = self.host.as_deref().map(|host| ("host", host));
        [("canary", &*self.canary)].into_iter().chain(host).chain([
            ("ingress", &*self.ingress),
            ("method", self.method),
            ("namespace", &*self.namespace),
            ("path", &*self.path),
            ("service", &*self.service),
            ("status", &*self.status),
        ])
    }
}

/// What is added to the number of a class, to tell it from a status.
pub(super) const CLASS: u16 = 1000;

/// `200` for 200, `2xx` for 2 and what is added to classes.
pub(super) fn status_text(number: u16) -> Arc<str> {
    match number.checked_sub(CLASS) {
        Some(class) => format!("{class}xx").into(),
        None => format!("{number:03}").into(),
    }
}

/// The number of a status, or of its class if that is all that is told: upstreams may answer with what they like, and
/// each status is a series. Those that are told are nginx's own, those of IANA's registry, and what well-known
/// frameworks, load balancers and proxies send.
pub(super) fn status_number(status: u16, classes: bool) -> u16 {
    let is_told = matches!(status, 0 | 9 | 444 | 494..=499)
        || matches!(status, 100..=104 | 200..=208 | 226 | 300..=308 | 400..=418 | 421..=426)
        || matches!(status, 428 | 429 | 431 | 451 | 500..=508 | 510 | 511)
        || matches!(status, 419 | 420 | 430 | 440 | 449 | 460 | 463 | 464)
        || matches!(status, 509 | 520..=527 | 529 | 530 | 561 | 598 | 599);
    if is_told && !classes { status } else { CLASS + status / 100 }
}

/// Methods that are told apart: those that nginx knows. There is no end of others.
const METHODS: [&str; 16] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
];

/// The number of a method.
pub(super) fn method_number(method: &str) -> u8 {
    let known = METHODS.iter().position(|known| *known == method);
    known.unwrap_or(METHODS.len()) as u8
}

/// The method with a number.
pub(super) fn method_text(number: u8) -> &'static str {
    METHODS.get(usize::from(number)).copied().unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, label_value, method_number, method_text, status_number, status_text};

    #[test]
    fn methods_that_nobody_knows_are_one() {
        let text = |name| method_text(method_number(name));
        assert_eq!(text("GET"), "GET");
        assert_eq!(text("UNLOCK"), "UNLOCK");
        assert_eq!(text("MADE-UP"), "other");
    }

    #[test]
    fn statuses_that_nobody_knows_are_their_class() {
        let text = |status| status_text(status_number(status, false));
        for known in [0, 9, 101, 200, 206, 308, 404, 418, 422, 429, 451, 499, 500, 504, 520] {
            assert_eq!(*text(known), format!("{known:03}"));
        }
        assert_eq!(
            [212, 399, 477, 555, 600, 999].map(|status| text(status).to_string()),
            ["2xx", "3xx", "4xx", "5xx", "6xx", "9xx"]
        );
        assert_eq!(&*status_text(status_number(200, true)), "2xx");
        let all: std::collections::BTreeSet<_> = (0..1000).map(text).collect();
        assert!(all.len() < 110, "{}", all.len());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(label_value("/short"), "/short");
        assert_eq!(label_value(&"x".repeat(LONGEST)).len(), LONGEST);
        for text in ["x".repeat(LONGEST + 1), "ä".repeat(LONGEST), format!("x{}", "ä".repeat(200))]
        {
            let cut = label_value(&text);
            assert!(cut.len() <= LONGEST && cut.ends_with('…'), "{cut}");
            assert!(text.starts_with(cut.trim_end_matches('…')));
        }
    }
}
