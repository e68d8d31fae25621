//! What an API server would refuse of an object that a file has, and nobody would notice here: fields that do not
//! exist, as typing errors are, paths without a type, names and words that are none. Such an object counts; what is
//! wrong with it is told.

use super::{gateway_words, names};
use crate::Kind;
use serde_json::Value;

/// Fields of one object that are told.
const MOST: usize = 5;

/// Letters of a word that are told.
const LONGEST: usize = 60;

/// The fields that people write.
const FIELDS: [&str; 46] = [
    "addresses",
    "addressType",
    "annotations",
    "apiVersion",
    "backend",
    "binaryData",
    "clusterIP",
    "conditions",
    "controller",
    "creationTimestamp",
    "data",
    "defaultBackend",
    "endpoints",
    "externalName",
    "host",
    "hosts",
    "http",
    "immutable",
    "ingressClassName",
    "kind",
    "labels",
    "metadata",
    "name",
    "namespace",
    "nodePort",
    "number",
    "parameters",
    "path",
    "paths",
    "pathType",
    "port",
    "ports",
    "protocol",
    "ready",
    "resource",
    "rules",
    "secretName",
    "selector",
    "service",
    "serving",
    "spec",
    "stringData",
    "targetPort",
    "tls",
    "type",
    "zone",
];

/// The fields of the Gateway API that people write.
const GATEWAY_FIELDS: [&str; 112] = [
    "absoluteTimeout",
    "add",
    "addresses",
    "allowCredentials",
    "allowedHeaders",
    "allowedListeners",
    "allowedResponseHeaders",
    "allowedRoutes",
    "allowHeaders",
    "allowMethods",
    "allowOrigins",
    "annotations",
    "apiVersion",
    "attempts",
    "backend",
    "backendRef",
    "backendRefs",
    "backendRequest",
    "backoff",
    "caCertificateRefs",
    "certificateRefs",
    "clientCertificateRef",
    "codes",
    "controllerName",
    "cookie",
    "cookieConfig",
    "cors",
    "default",
    "denominator",
    "description",
    "exposeHeaders",
    "extensionRef",
    "externalAuth",
    "filters",
    "forwardBody",
    "fraction",
    "from",
    "frontend",
    "frontendValidation",
    "gatewayClassName",
    "group",
    "grpc",
    "header",
    "headers",
    "hostname",
    "hostnames",
    "http",
    "idleTimeout",
    "infrastructure",
    "kind",
    "kinds",
    "labels",
    "lifetimeType",
    "listeners",
    "matches",
    "maxAge",
    "maxSize",
    "metadata",
    "method",
    "mode",
    "name",
    "namespace",
    "namespaces",
    "numerator",
    "options",
    "parametersRef",
    "parentRef",
    "parentRefs",
    "path",
    "percent",
    "perPort",
    "port",
    "protocol",
    "queryParams",
    "remove",
    "replaceFullPath",
    "replacePrefixMatch",
    "request",
    "requestHeaderModifier",
    "requestMirror",
    "requestRedirect",
    "responseHeaderModifier",
    "retry",
    "rules",
    "scheme",
    "sectionName",
    "selector",
    "service",
    "sessionName",
    "sessionPersistence",
    "set",
    "spec",
    "status",
    "statusCode",
    "subjectAltNames",
    "targetRefs",
    "timeouts",
    "tls",
    "to",
    "type",
    "uri",
    "urlRewrite",
    "useDefaultGateways",
    "validation",
    "value",
    "weight",
    "wellKnownCACertificates",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
];

/// The fields that there are and that nobody reads, or reads in all places.
const PASSED_OVER: [&str; 10] = [
    "apiVersion",
    "backendTLS",
    "defaultScope",
    "description",
    "extensionRef",
    "kind",
    "name",
    "options",
    "supportedFeatures",
    "type",
];

/// The types of paths.
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

/// Where Gateways and ListenerSets have a word of a few: below a listener or the spec, what it may be, and what counts
/// where it is none of them.
const WORDS: [(&str, &[&str], &str); 3] = [
    ("/allowedRoutes/namespaces/from", &["All", "Same", "Selector", "None"], "None"),
    ("/tls/mode", &["Terminate", "Passthrough"], "Terminate"),
    ("/allowedListeners/namespaces/from", &["All", "Same", "Selector", "None"], "None"),
];

/// What to say of an object besides its `words`, of which nobody reads these fields.
pub(super) fn odd(kind: Kind, mut words: Vec<String>, unknown: Vec<String>) -> Vec<String> {
    words.extend(of_fields(kind, unknown));
    words
}

/// What to say of the words of an object that are none of those that its API knows, its names first.
pub(super) fn words(kind: Kind, value: &Value) -> Vec<String> {
    let mut said = names::said(kind, value);
    said.extend(match kind {
        Kind::Ingress => [path_types(value), names::of_rules(value)].concat(),
        Kind::Gateway | Kind::ListenerSet => {
            [listener_words(value), gateway_words::of_listeners(value)].concat()
        }
        Kind::HttpRoute | Kind::GrpcRoute => gateway_words::of_matches(value),
        _ => Vec::new(),
    });
    said
}

fn listener_words(value: &Value) -> Vec<String> {
    let listeners = value.pointer("/spec/listeners").and_then(Value::as_array);
    let listeners = listeners.into_iter().flatten().enumerate();
    let listeners = listeners.map(|(at, listener)| (format!("spec.listeners[{at}]"), listener));
    let places = value.get("spec").map(|spec| ("spec".to_owned(), spec)).into_iter();
    let said = places.chain(listeners).flat_map(|(at, place)| {
        WORDS.iter().filter_map(move |(path, known, counts)| {
            let word = place.pointer(path)?.as_str().filter(|word| !known.contains(word))?;
            let word: String = word.chars().take(LONGEST).collect();
            Some(format!(
                "{at}{} is {word:?}, which no API server takes: write {}; as it is, {counts} counts",
                path.replace('/', "."),
                known.join(", ")
            ))
        })
    });
    said.take(MOST).collect()
}

/// What to say of fields of an object that do not exist.
fn of_fields(kind: Kind, mut fields: Vec<String>) -> Vec<String> {
    let is_gateway = kind.api_version().starts_with(super::GATEWAY_GROUP);
    let known: &[&'static str] = if is_gateway { &GATEWAY_FIELDS } else { &FIELDS };
    if is_gateway {
        // These types are read in part, and what else they have is not a mistake; a status is nobody's to write.
        let is_there = |path: &String| {
            let name = path.rsplit('.').next().unwrap_or(path);
            path.starts_with("status") || PASSED_OVER.contains(&name)
        };
        fields.retain(|path| !is_there(path));
    }
    fields.truncate(MOST);
    let said = fields.iter().map(|path| {
        let path = written(path);
        let name = path.rsplit('.').next().unwrap_or(&path);
        let remedy = match name {
            "serviceName" | "servicePort" => {
                "it is one of v1beta1: write backend.service.name and backend.service.port.number"
                    .to_owned()
            }
            _ => match misplaced(kind, &path).or_else(|| meant(name, known)) {
                Some(field) => format!("did you mean {field}?"),
                None => "remove it, or write it as the API has it".to_owned(),
            },
        };
        format!("{path} is no field of {kind} and was not read: {remedy}")
    });
    said.collect()
}

/// The field that another version has in place of this one, or where one that there is belongs.
fn misplaced(kind: Kind, path: &str) -> Option<&'static str> {
    match (kind, path) {
        (Kind::Ingress, "spec.backend") => Some("spec.defaultBackend"),
        (Kind::Ingress, "spec.ingressClass" | "spec.className" | "ingressClassName") => {
            Some("spec.ingressClassName")
        }
        (Kind::Ingress, "rules") => Some("spec.rules"),
        (Kind::Ingress, "tls") => Some("spec.tls"),
        (_, "annotations" | "spec.annotations") => Some("metadata.annotations"),
        (_, "labels" | "spec.labels") => Some("metadata.labels"),
        (_, "name") => Some("metadata.name"),
        (kind, "namespace") if kind.is_namespaced() => Some("metadata.namespace"),
        _ => None,
    }
}

/// The field whose name is nearest, if one is near. One that there is elsewhere may stand in the wrong place.
fn meant(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let most = if known.contains(&name) { 1 } else { 2 };
    let lower = name.to_lowercase();
    let distance = |field: &str| strsim::osa_distance(&field.to_lowercase(), &lower);
    let others = known.iter().filter(|field| **field != name);
    others.min_by_key(|field| distance(field)).filter(|field| distance(field) <= most).copied()
}

/// What to say of the paths of an Ingress whose type is missing or none.
fn path_types(value: &Value) -> Vec<String> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut said = Vec::new();
    for (rule, of_rule) in list(value.pointer("/spec/rules")).iter().enumerate() {
        for (path, of_path) in list(of_rule.pointer("/http/paths")).iter().enumerate() {
            let what = match of_path.get("pathType") {
                None => "is missing".to_owned(),
                Some(Value::String(text)) if PATH_TYPES.contains(&text.as_str()) => continue,
                Some(other) => format!("is {other}"),
            };
            said.push(format!(
                "spec.rules[{rule}].http.paths[{path}].pathType {what}, which no API server takes: write Prefix, Exact or \
                 ImplementationSpecific; here it counts as the last of these"
            ));
        }
    }
    said.truncate(MOST);
    said
}

/// A path as people write it: of `spec.?.rules.?.0.hosts` it makes `spec.rules[0].hosts`.
fn written(path: &str) -> String {
    let mut written = String::new();
    for part in path.split('.').filter(|part| *part != "?") {
        if part.bytes().all(|byte| byte.is_ascii_digit()) && !written.is_empty() {
            written += &format!("[{part}]");
        } else {
            if !written.is_empty() {
                written.push('.');
            }
            written += part;
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, GATEWAY_FIELDS, meant, of_fields, written};
    use crate::Kind;

    #[test]
    fn a_path_is_written_as_people_do() {
        assert_eq!(written("spec.?.rules.?.0.hosts"), "spec.rules[0].hosts");
        assert_eq!(written("DATA"), "DATA");
    }

    #[test]
    fn a_field_in_the_wrong_place_or_of_an_old_version_is_told_where_it_belongs() {
        for (field, wanted) in [
            ("spec.?.backend", "spec.defaultBackend"),
            ("spec.?.ingressClass", "spec.ingressClassName"),
            ("annotations", "metadata.annotations"),
            ("namespace", "metadata.namespace"),
        ] {
            let said = of_fields(Kind::Ingress, vec![field.to_owned()]);
            assert!(said[0].ends_with(&format!("did you mean {wanted}?")), "{said:?}");
        }
        let said = of_fields(Kind::IngressClass, vec!["namespace".to_owned()]);
        assert!(said[0].ends_with("remove it, or write it as the API has it"), "{said:?}");
    }

    #[test]
    fn the_field_that_was_meant_is_named_if_one_is_near() {
        for (name, field) in [
            ("annotation", Some("annotations")),
            ("Host", Some("host")),
            ("DATA", Some("data")),
            ("pathTyp", Some("pathType")),
            ("hosts", Some("host")),
            ("colour", None),
        ] {
            assert_eq!(meant(name, &FIELDS), field, "{name}");
        }
        for (name, field) in
            [("match", "matches"), ("backendRef", "backendRefs"), ("hostName", "hostname")]
        {
            assert_eq!(meant(name, &GATEWAY_FIELDS), Some(field), "{name}");
        }
    }
}
