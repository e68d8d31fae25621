//! From the text of one file to the objects in it, and what is wrong with the rest of it.

mod gateway_words;
mod lists;
mod names;
mod plainly;
mod strict;

pub use names::{is_a_label, is_a_name};

use super::chart;
use super::document::{Document, Place, Source, documents};
use super::kustomization::Kustomization;
use crate::Issuer;
use crate::ObjectKey;
use crate::Trim;
use crate::gateway;
use crate::{Kind, Object};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::discovery::v1 as discovery;
use k8s_openapi::api::networking::v1 as networking;
use plainly::{NoText, no_texts, plain};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// What one file holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The objects, in the order of the file, with the place where each begins.
    pub(super) objects: Vec<(Place, Object)>,
    /// Issuers of cert-manager, for `check`.
    pub(super) issuers: Vec<Issuer>,
    /// What could not be read.
    pub(super) faults: Vec<Fault>,
    /// What is not read, and hides nothing that was: objects of kinds that are nobody's here.
    pub(super) passed: Vec<Fault>,
    /// What is to be done to objects, by kustomize.
    pub(super) kustomizations: Vec<(Place, Kustomization)>,
}

/// Something in a file that could not be read.
#[derive(Debug)]
pub(super) struct Fault {
    /// Where.
    pub(super) place: Place,
    /// Which object it is; none if not even that can be told.
    pub(super) object: Option<(Kind, ObjectKey)>,
    /// What is wrong.
    pub(super) message: String,
}

/// Reads a file. Nothing in one document or object keeps the others from being read.
pub fn parse(path: &Path, text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    for mut document in documents(path, text) {
        match document.value() {
            Ok(Value::Null) => {}
            Ok(value) => {
                if let Some(found) = Kustomization::read(path, &value) {
                    parsed.kustomizations.push((document.start(), found));
                } else if let Some(message) = chart::told(path, &value) {
                    parsed.passed.push(Fault { place: document.start(), object: None, message });
                } else {
                    parsed.document(&document, value);
                }
            }
            Err((place, message)) => parsed.faults.push(Fault { place, object: None, message }),
        }
    }
    parsed
}

/// What the head of an object says about it.
enum Head {
    Object(Kind),
    List {
        items: Vec<Value>,
        api_version: String,
        item_kind: String,
    },
    Foreign,
    /// Of the experimental kinds of the Gateway API.
    Experimental(String),
    Wrong(String),
}

impl Parsed {
    fn document(&mut self, document: &Document<'_>, mut value: Value) {
        match head(&mut value) {
            Head::Foreign => self.issuers.extend(Issuer::read(&value)),
            Head::Experimental(message) => {
                self.passed.push(Fault { place: document.start(), object: None, message });
            }
            Head::Wrong(message) => {
                self.faults.push(Fault { place: document.start(), object: None, message });
            }
            Head::Object(kind) => {
                let place_of = |no_text: &NoText| {
                    document.place_of_value(no_text.map, &no_text.key).unwrap_or(document.start())
                };
                // The reader of the text knows the place, that of the value the field.
                let misfit = || misfit(kind, document).unwrap_or(document.start());
                self.object(kind, value, document.start(), misfit, place_of);
            }
            Head::List { items, api_version, item_kind } => {
                let places = document.item_places();
                for (index, mut item) in items.into_iter().enumerate() {
                    inherit(&mut item, &api_version, &item_kind);
                    let place = places.get(index).copied().unwrap_or(document.start());
                    self.item(place, item);
                }
            }
        }
    }

    fn item(&mut self, place: Place, mut value: Value) {
        if !value.is_object() {
            let message = "an item is no object; write apiVersion, kind and metadata".to_owned();
            return self.faults.push(Fault { place, object: None, message });
        }
        match head(&mut value) {
            Head::Foreign => self.issuers.extend(Issuer::read(&value)),
            Head::List { .. } => {
                let message = "a list inside a list; put its items into the outer one".to_owned();
                self.faults.push(Fault { place, object: None, message });
            }
            Head::Experimental(message) => {
                self.passed.push(Fault { place, object: None, message });
            }
            Head::Wrong(message) => self.faults.push(Fault { place, object: None, message }),
            Head::Object(kind) => self.object(kind, value, place, || place, |_| place),
        }
    }

    /// An object that begins at `start`: where it does not fit its kind, and where its values are, is asked if need be.
    fn object(
        &mut self,
        kind: Kind,
        mut value: Value,
        start: Place,
        misfit: impl FnOnce() -> Place,
        place_of: impl Fn(&NoText) -> Place,
    ) {
        let key = settle_namespace(kind, &mut value);
        let no_base64 = no_base64(kind, &value);
        let no_texts = no_texts(kind, &value);
        let (words, mut unknown) = (strict::words(kind, &value), Vec::new());
        let object = typed(kind, Source::Value(value, &mut unknown));
        let named = key.map(|key| (kind, key));
        match object {
            Ok(object) => {
                let named = Some((kind, object.key().clone()));
                let fault = |message| Fault { place: start, object: named.clone(), message };
                self.faults.extend(strict::odd(kind, words, unknown).into_iter().map(fault));
                self.objects.push((start, object));
            }
            Err(_) if !no_texts.is_empty() => {
                let fault = |found: NoText| Fault {
                    place: place_of(&found),
                    object: named.clone(),
                    message: found.message,
                };
                self.faults.extend(no_texts.into_iter().map(fault));
            }
            Err((_, message)) => {
                let message = no_base64.unwrap_or_else(|| plain(kind, message));
                self.faults.push(Fault { place: misfit(), object: named, message });
            }
        }
    }
}

/// Which value of a Secret is none, in the words of whoever writes it.
fn no_base64(kind: Kind, value: &Value) -> Option<String> {
    let data = value.get("data").filter(|_| kind == Kind::Secret)?.as_object()?;
    let is_bad = |value: &Value| value.is_string() && ByteString::deserialize(value).is_err();
    let (key, _) = data.iter().find(|(_, value)| is_bad(value))?;
    Some(format!(
        "data.{key} is no base64: encode it (base64 -w0), or write it as plain text below stringData"
    ))
}

/// Where a document of this kind does not fit, as the reader of its text sees it; none if that reader is content.
fn misfit(kind: Kind, document: &Document<'_>) -> Option<Place> {
    let (place, _) = typed(kind, document.source()).err()?;
    Some(document.place(place?))
}

fn head(value: &mut Value) -> Head {
    let fields = match value {
        Value::Object(fields) => fields,
        // What `jq .items` leaves of a list. Folders hold other arrays, which were never meant as one.
        Value::Array(items) if items.iter().any(is_an_object) => {
            let (api_version, item_kind) = (String::new(), String::new());
            return Head::List { items: std::mem::take(items), api_version, item_kind };
        }
        Value::Array(_) => return Head::Foreign,
        _ => return Head::Wrong("is no object; write apiVersion, kind and metadata".to_owned()),
    };
    let api_version = fields.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let kind = match (fields.get("kind"), api_version) {
        // Folders hold more than manifests; what has a name and a content was meant as one.
        (None, "") if is_nearly_one(fields) => {
            let message = "has neither apiVersion nor kind; write both, or nobody knows what it is";
            return Head::Wrong(message.to_owned());
        }
        (None, "") if fields.len() == 1 && lists::holds_objects(fields) => {
            let message = "items alone are no list; write apiVersion: v1 and kind: List beside it";
            return Head::Wrong(message.to_owned());
        }
        (None, "") => return Head::Foreign,
        (None, _) => return Head::Wrong("kind is missing; name the kind of the object".to_owned()),
        (Some(kind), _) => kind.as_str().unwrap_or_default(),
    };
    if let Some(known) = Kind::ALL.into_iter().find(|known| known.name() == kind) {
        return if known.is_read_as(api_version) {
            Head::Object(known)
        } else if api_version.is_empty() {
            let wanted = known.api_version();
            Head::Wrong(format!("{kind} has no apiVersion; write apiVersion: {wanted}"))
        } else if is_meant(api_version) {
            let fields = match known {
                Kind::Ingress => {
                    ", and what it asks for: backend.service.name, backend.service.port.number and a pathType \
                     (`kubectl convert` writes all of it)"
                }
                _ => "",
            };
            Head::Wrong(format!(
                "{kind} of apiVersion `{api_version}` is not read; write apiVersion: {}{fields}",
                known.api_version()
            ))
        } else {
            Head::Foreign
        };
    }
    let Some(item_kind) = kind.strip_suffix("List") else {
        return match lists::meant(kind, api_version, fields) {
            Some(message) => Head::Wrong(message),
            None => unknown(kind, api_version),
        };
    };
    let without_items = lists::without_items(item_kind, api_version, fields);
    let item_kind = item_kind.to_owned();
    let api_version = api_version.to_owned();
    match fields.remove("items") {
        Some(Value::Array(items)) => Head::List { items, api_version, item_kind },
        None | Some(Value::Null) => without_items.map_or(Head::Foreign, Head::Wrong),
        Some(_) => Head::Wrong("items is not a list; write one object per item".to_owned()),
    }
}

/// Whether a value says which object it is.
fn is_an_object(value: &Value) -> bool {
    ["apiVersion", "kind"].iter().all(|name| value.get(name).is_some_and(Value::is_string))
}

/// Whether fields are those of an object that lacks its head.
fn is_nearly_one(fields: &serde_json::Map<String, Value>) -> bool {
    let has_name = fields.get("metadata").and_then(|metadata| metadata.get("name")).is_some();
    has_name
        && ["spec", "data", "stringData", "rules"].iter().any(|name| fields.contains_key(*name))
}

/// A kind that is none of ours: another controller's, a misspelt one, or one of the Gateway API that is not served.
fn unknown(kind: &str, api_version: &str) -> Head {
    if api_version.starts_with(EXPERIMENTAL_GROUP) {
        return Head::Experimental(experimental(kind, api_version));
    }
    if api_version.is_empty() || !is_meant(api_version) {
        return Head::Foreign;
    }
    if let Some(meant) = Kind::ALL.into_iter().find(|known| is_near(kind, known.name())) {
        return Head::Wrong(format!("there is no kind {kind}; did you mean {meant}?"));
    }
    if !api_version.starts_with(GATEWAY_GROUP) {
        return Head::Foreign;
    }
    let served =
        Kind::ALL.into_iter().filter(|known| known.api_version().starts_with(GATEWAY_GROUP));
    let served = served.map(Kind::name).collect::<Vec<_>>().join(", ");
    Head::Wrong(format!("{kind} of the Gateway API is not served; the kinds that are: {served}"))
}

/// Whether a kind is nearly called so: with other letters, one mistake, or as many of them.
fn is_near(kind: &str, known: &str) -> bool {
    let (kind, known) = (kind.to_ascii_lowercase(), known.to_ascii_lowercase());
    let is_many = ["s", "es"].iter().any(|end| kind.strip_suffix(end) == Some(&known));
    is_many || strsim::osa_distance(&kind, &known) <= 1
}

/// The groups of the Gateway API, as versions begin: that of its kinds, and that of its experiments.
const GATEWAY_GROUP: &str = "gateway.networking.k8s.io/";
const EXPERIMENTAL_GROUP: &str = "gateway.networking.x-k8s.io/";

/// What is said of an experimental kind: what it became since, or what says nearly the same.
fn experimental(kind: &str, api_version: &str) -> String {
    let remedy = match kind {
        "XListenerSet" => "write ListenerSet of apiVersion gateway.networking.k8s.io/v1".to_owned(),
        "XBackendTrafficPolicy" => {
            "sessionPersistence and retry of the rules of an HTTPRoute say a part of it".to_owned()
        }
        "XMesh" => "Fairway is no mesh: leave it to whoever is one".to_owned(),
        _ => match kind.strip_prefix('X').and_then(Kind::named) {
            Some(known) => format!("write {known} of apiVersion {}", known.api_version()),
            None => "there is no standard kind for it".to_owned(),
        },
    };
    format!("{kind} of apiVersion `{api_version}` is experimental and not read; {remedy}")
}

/// Whether somebody who wrote this version of a kind that we know meant the kind that we know.
fn is_meant(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    matches!(
        group,
        "" | "networking.k8s.io"
            | "discovery.k8s.io"
            | "extensions"
            | "gateway.networking.k8s.io"
            | "gateway.networking.x-k8s.io"
    )
}

/// Items of an `IngressList` need not repeat what they are.
fn inherit(item: &mut Value, api_version: &str, item_kind: &str) {
    if let (Value::Object(fields), false) = (item, item_kind.is_empty()) {
        fields.entry("apiVersion").or_insert_with(|| api_version.into());
        fields.entry("kind").or_insert_with(|| item_kind.into());
    }
}

/// Puts a namespaced object without a namespace into `default`, and says which object this is.
fn settle_namespace(kind: Kind, value: &mut Value) -> Option<ObjectKey> {
    let Some(Value::Object(metadata)) = value.get_mut("metadata") else { return None };
    let written = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    let namespace = match (kind.is_namespaced(), written) {
        (false, _) => String::new(),
        (true, "") => "default".to_owned(),
        (true, written) => written.to_owned(),
    };
    // Nothing is what an empty text is, as for kubectl.
    let may_be = |value: &Value| value.is_string() || value.is_null();
    if metadata.get("namespace").is_none_or(may_be) {
        metadata.insert("namespace".to_owned(), namespace.clone().into());
    }
    let name = metadata.get("name")?.as_str()?;
    Some(ObjectKey::new(namespace, name))
}

fn typed(kind: Kind, source: Source<'_>) -> Result<Object, (Option<Place>, String)> {
    fn read<K: Trim>(source: Source<'_>) -> Result<Object, (Option<Place>, String)> {
        source.read::<K>()?.trim().map_err(|message| (None, message))
    }
    match kind {
        Kind::Ingress => read::<networking::Ingress>(source),
        Kind::IngressClass => read::<networking::IngressClass>(source),
        Kind::Service => read::<core::Service>(source),
        Kind::EndpointSlice => read::<discovery::EndpointSlice>(source),
        Kind::Secret => read::<core::Secret>(source),
        Kind::ConfigMap => read::<core::ConfigMap>(source),
        Kind::Namespace => read::<core::Namespace>(source),
        Kind::GatewayClass => read::<gateway::RawGatewayClass>(source),
        Kind::Gateway => read::<gateway::RawGateway>(source),
        Kind::ListenerSet => read::<gateway::RawListenerSet>(source),
        Kind::HttpRoute => read::<gateway::RawHttpRoute>(source),
        Kind::GrpcRoute => read::<gateway::RawGrpcRoute>(source),
        Kind::TcpRoute => read::<gateway::RawTcpRoute>(source),
        Kind::UdpRoute => read::<gateway::RawUdpRoute>(source),
        Kind::TlsRoute => read::<gateway::RawTlsRoute>(source),
        Kind::BackendTlsPolicy => read::<gateway::RawBackendTlsPolicy>(source),
        Kind::ReferenceGrant => read::<gateway::RawReferenceGrant>(source),
    }
}

#[cfg(test)]
mod tests;
