//! What series are labelled with: texts that are known by a number while anybody uses them.

use model::{Location, ServiceRef};
use std::sync::Arc;

/// The value of labels where there are too many.
pub(super) const OVERFLOW: &str = "overflow";

/// A text of a label, which has a number as long as somebody holds it.
#[derive(Debug)]
pub struct Name {
    pub(super) number: u64,
    /// The text.
    pub text: Arc<str>,
}

/// Where requests are answered, as labels say it. Several locations may say the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LocationLabels {
    pub(super) namespace: Arc<str>,
    pub(super) ingress: Arc<str>,
    pub(super) service: Arc<str>,
    pub(super) path: Arc<str>,
}

impl LocationLabels {
    pub(super) fn of(location: &Location) -> Self {
        let service = |part: fn(&ServiceRef) -> &Arc<str>| location.service.as_ref().map(part);
        let origin = location.origin.as_ref();
        let namespace = origin.map(|origin| &origin.namespace);
        Self {
            namespace: namespace
                .or_else(|| service(|service| &service.namespace))
                .cloned()
                .unwrap_or_default(),
            ingress: origin.map(|origin| origin.name.clone()).unwrap_or_default(),
            service: service(|service| &service.name).cloned().unwrap_or_default(),
            path: location.path.as_str().into(),
        }
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
    /// The labels of what is not told apart any more.
    pub(super) fn overflow(class: u16, per_host: bool) -> Self {
        let overflow: Arc<str> = OVERFLOW.into();
        Self {
            namespace: overflow.clone(),
            ingress: overflow.clone(),
            host: per_host.then(|| overflow.clone()),
            path: overflow.clone(),
            service: overflow.clone(),
            canary: overflow,
            method: OVERFLOW,
            status: class_text(class),
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

/// `2xx` for 2.
pub(super) fn class_text(class: u16) -> Arc<str> {
    format!("{class}xx").into()
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
    use super::{method_number, method_text};

    #[test]
    fn methods_that_nobody_knows_are_one() {
        let text = |name| method_text(method_number(name));
        assert_eq!(text("GET"), "GET");
        assert_eq!(text("UNLOCK"), "UNLOCK");
        assert_eq!(text("MADE-UP"), "other");
    }
}
