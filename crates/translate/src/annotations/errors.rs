//! `custom-http-errors`, `disable-proxy-intercept-errors` and `default-backend`: who answers in place of errors
//! (compat/behaviour.md sections 6 and 17).

use super::Family;
use crate::ingress::{Role, Target};
use crate::settings::{Key, Lines, OnBad, Settings, parse};
use model::policy::{Errors, Policy};
use model::{Severity, UpstreamId, Why};
use objects::ObjectKey;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

pub(super) const FAMILY: Family = Family {
    name: "errors",
    keys: &[&STATUSES, &NO_INTERCEPTION, &BACKEND, &STATUSES_OF_ALL, &NO_INTERCEPTION_OF_ALL],
    apply,
};

static STATUSES: Key<Statuses> = Key::annotation("custom-http-errors", statuses)
    .says(
        "statuses from 400 to 599, comma separated",
        "ConfigMap custom-http-errors",
        "Answers with these statuses, of the upstream or of the proxy itself, are replaced by those of default-backend, \
         else of the default backend of the process. They replace the ConfigMap's.",
    )
    .on_bad(OnBad::Reject);

static NO_INTERCEPTION: Key<bool> =
    Key::annotation("disable-proxy-intercept-errors", parse::boolean).switch(
        false,
        "With custom-http-errors: answers of the upstream pass, only those of the proxy itself are replaced. It has no \
         effect where the ConfigMap has custom-http-errors, too, and not this key.",
    );

static BACKEND: Key<String> = Key::annotation("default-backend", service)
    .says(
        "name of a Service",
        "none",
        "Stands in while the backend has no endpoints, and answers in place of custom-http-errors: the first port of \
         a Service of the same namespace.",
    )
    .on_bad(OnBad::Reject);

static STATUSES_OF_ALL: Key<Statuses> = Key::config_map("custom-http-errors", any_statuses).says(
    "statuses from 300 to 599, comma separated",
    "none",
    "Answers with these statuses are replaced by those of the default backend of the process, except where a location \
     has error pages of its own (custom-http-errors, a sign-in page that is in force), or its host has \
     (auth-tls-error-page).",
);

static NO_INTERCEPTION_OF_ALL: Key<bool> =
    Key::config_map("disable-proxy-intercept-errors", parse::boolean).switch(
        false,
        "With custom-http-errors of the ConfigMap: answers of upstreams pass, only those of the proxy itself are replaced.",
    );

/// What the ConfigMap can have replaced, and of these what an annotation can: ingress-nginx takes no redirects there.
const REPLACED: Range<u16> = 300..600;
const ERRORS: Range<u16> = 400..600;

/// A list of statuses, with the items that are none.
#[derive(Default)]
struct Statuses {
    valid: BTreeSet<u16>,
    odd: Vec<String>,
}

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    if let Some(name) = settings.get(&BACKEND) {
        let service = ObjectKey::new(Arc::clone(settings.namespace()), name.as_str());
        let target = Target::Service { service, port: None, role: Role::Errors };
        policy.default_backend = Some(settings.upstream(target));
    }
    let own = settings.get(&STATUSES);
    let of_all = settings.get(&STATUSES_OF_ALL);
    let intercept_all = !settings.get_or(&NO_INTERCEPTION_OF_ALL, false);
    let has_pages_of_all = of_all.as_ref().is_some_and(|of_all| !of_all.valid.is_empty())
        && settings.scope().has_default_backend;
    let errors = match (own, of_all) {
        (Some(Statuses { valid, odd }), _) => {
            note(settings, &odd, ERRORS.start);
            let intercept = intercepts(settings, intercept_all && has_pages_of_all);
            let backend = policy.default_backend.clone();
            Errors { statuses: valid, intercept, backend, of_all: false }
        }
        (None, Some(Statuses { valid, odd })) => {
            if settings.is_config_map() {
                note(settings, &odd, REPLACED.start);
            }
            if !settings.scope().has_default_backend {
                // Nobody would answer in their place.
                return note_nobody(settings);
            }
            Errors { statuses: valid, intercept: intercept_all, backend: None, of_all: true }
        }
        (None, None) => return,
    };
    policy.errors = Some(errors).filter(|errors| !errors.statuses.is_empty());
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(errors: Option<&Errors>, instead: Option<&UpstreamId>, lines: &mut Lines) {
    lines.add("default_backend", instead).by(&[&BACKEND]);
    // Who answers in their place is the default backend, this one or that of the process.
    if let Some(Errors { statuses, intercept, backend: _, of_all: _ }) = errors {
        if !statuses.is_empty() {
            lines.add("errors.statuses", statuses).by(&[&STATUSES]).by(&[&STATUSES_OF_ALL]);
        }
        lines
            .add("errors.intercept", !intercept)
            .beside(&STATUSES, &[&NO_INTERCEPTION])
            .beside(&STATUSES_OF_ALL, &[&NO_INTERCEPTION_OF_ALL]);
    }
}

/// Whether answers of the upstream are replaced by the Ingress's own pages. `proxy_intercept_errors` of the whole
/// process is never taken back for a location (compat/behaviour.md section 17).
fn intercepts(settings: &mut Settings<'_>, of_all: bool) -> bool {
    let passes = settings.get_or(&NO_INTERCEPTION, false);
    if passes && of_all {
        let message = "has no effect: the ConfigMap has custom-http-errors, with which answers of all upstreams are \
             replaced; write disable-proxy-intercept-errors there";
        settings.note(NO_INTERCEPTION.about.name, Severity::Warning, message.to_owned());
    }
    !passes || of_all
}

fn note_nobody(settings: &mut Settings<'_>) {
    if settings.is_config_map() {
        let message = "has no effect: there is no --default-backend-service to answer in their place; name one";
        let message = Why::NobodyAnswers.says(message);
        settings.note(STATUSES_OF_ALL.about.name, Severity::Warning, message);
    }
}

fn note(settings: &mut Settings<'_>, odd: &[String], least: u16) {
    for item in odd {
        let message = format!(
            "has {item:?}, which is no status from {least} to 599; it is ignored: write numbers, comma separated, such as \
             404,503"
        );
        settings.note(STATUSES.about.name, Severity::Warning, message);
    }
}

/// An annotation that holds anything but digits and commas is refused as a whole, as in ingress-nginx; numbers that
/// are no statuses of errors are left out.
fn statuses(text: &str) -> Result<Statuses, String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if !plain.chars().all(|c| c.is_ascii_digit() || c == ',') {
        return Err(
            "is no list of statuses: write numbers, comma separated, such as 404,503".to_owned()
        );
    }
    among(&plain, ERRORS)
}

fn any_statuses(text: &str) -> Result<Statuses, String> {
    among(text, REPLACED)
}

fn among(text: &str, range: Range<u16>) -> Result<Statuses, String> {
    let mut statuses = Statuses::default();
    for item in parse::list(text)? {
        match item.parse() {
            Ok(status) if range.contains(&status) => drop(statuses.valid.insert(status)),
            _ => statuses.odd.push(item),
        }
    }
    Ok(statuses)
}

/// A DNS label of RFC 1035.
fn service(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
    if starts && text.len() <= 63 && text.chars().all(valid) && !text.ends_with('-') {
        return Ok(text.to_owned());
    }
    Err("is not the name of a Service: write the name of one in the same namespace".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{any_statuses, service, statuses};

    #[test]
    fn numbers_that_are_no_statuses_of_errors_are_told_apart() {
        let read = statuses("404, 503,200,404503,,302,599").expect("digits and commas");
        assert_eq!(read.valid.into_iter().collect::<Vec<_>>(), [404, 503, 599]);
        assert_eq!(read.odd, ["200", "404503", "302"]);
        assert!(any_statuses("302").expect("a list").valid.contains(&302));
        assert!(statuses("404,abc").is_err() && statuses("4xx").is_err());
        assert_eq!(any_statuses("404,abc").expect("a list").odd, ["abc"]);
    }

    #[test]
    fn a_service_is_named_without_its_namespace() {
        assert!(service("errors-1").is_ok());
        for wrong in ["demo/errors", "Errors", "1errors", "errors-", "", &"a".repeat(64)] {
            assert!(service(wrong).is_err(), "{wrong}");
        }
    }
}
