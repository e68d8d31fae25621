//! AdmissionReview in, AdmissionReview out (admission.k8s.io/v1): Ingresses are judged; Services and Secrets that
//! Ingresses need, and routes of Gateways, get warnings.

use super::{Known, LastReview, Reviewer};
use model::beginning;
use objects::gateway::GROUP;
use objects::{ObjectKey, Reference, parse_ingress, parse_secret, parse_service};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Instant;
use translate::{Review, in_vain, is_concerned, needs, review, useless_route};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// Bytes of an object: the API server takes no larger requests, and etcd keeps half of that.
const OBJECT: usize = 3 << 20;

/// Bytes of names (RFC 1123), which the API server looks at before it asks.
const NAME: usize = 253;
const NAMESPACE: usize = 63;

/// Bytes of what an answer repeats: the API server writes 36.
const UID: usize = 253;
/// Characters of a message, of a warning, and of all warnings: they may quote what an object has, and an answer is held
/// until somebody takes it. Of warnings that have more than 4096 together the API server keeps 256 each.
const MESSAGE: usize = 16 << 10;
const WARNING: usize = 4 << 10;
const WARNINGS: usize = 32 << 10;

/// Values in an object, at most: `[{},{},…]` takes a hundred times its bytes once it is read. A megabyte and a half of
/// a real Ingress, which is all that etcd keeps, has a third of that.
const VALUES: usize = 250_000;

/// The kinds of routes, in any version.
const ROUTES: [objects::Kind; 5] = [
    objects::Kind::HttpRoute,
    objects::Kind::GrpcRoute,
    objects::Kind::TlsRoute,
    objects::Kind::TcpRoute,
    objects::Kind::UdpRoute,
];

/// Why a request gets no review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoReview {
    /// It is not JSON.
    Undecodable,
    /// It is not an AdmissionReview of v1 about one of our kinds.
    Unexpected,
    /// Its object, its number, or what that is called, is larger than any of a cluster.
    TooLarge,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

/// What is read of a request. The objects are left as they are until it is known that they matter: nothing is built of
/// bytes that nobody asks for.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    kind: Kind<'a>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    group: Cow<'a, str>,
    #[serde(borrow)]
    version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Called<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Status {
    status: &'static str,
    reason: &'static str,
    code: u16,
    message: String,
}

/// The answer to the bytes of an AdmissionReview.
pub(super) fn answer(reviewer: &Reviewer, body: &[u8]) -> Result<Vec<u8>, NoReview> {
    let began = Instant::now();
    let asked: Asked<'_> = serde_json::from_slice(body).map_err(|error| {
        if error.is_data() { NoReview::Unexpected } else { NoReview::Undecodable }
    })?;
    let is_review =
        asked.api_version.as_deref() == Some(API_VERSION) && asked.kind.as_deref() == Some(KIND);
    let request = asked.request.filter(|_| is_review).ok_or(NoReview::Unexpected)?;
    if request.uid.len() > UID {
        return Err(NoReview::TooLarge);
    }
    let Review { refusal, warnings } = judged(reviewer, &request, body.len(), began)?;
    tracing::debug!(allowed = refusal.is_none(), took = ?began.elapsed(), "an object was reviewed");
    let status = refusal.map(|message| {
        reviewer.refusals.tell(&request.namespace, &request.name, &message);
        let message = beginning(&message, MESSAGE).into_owned();
        Status { status: "Failure", reason: "BadRequest", code: 400, message }
    });
    let warnings = few(warnings);
    let response = Response { uid: &request.uid, allowed: status.is_none(), status, warnings };
    let answer = Called { api_version: API_VERSION, kind: KIND, response };
    Ok(serde_json::to_vec(&answer).expect("an answer is plain data"))
}

/// The first warnings, as long as they are no burden, and how many there are besides.
fn few(mut warnings: Vec<String>) -> Vec<String> {
    let (mut characters, mut kept) = (0, 0);
    for warning in &mut warnings {
        *warning = beginning(warning, WARNING).into_owned();
        characters += warning.chars().count();
        if characters > WARNINGS {
            break;
        }
        kept += 1;
    }
    let more = warnings.split_off(kept).len();
    warnings.extend((more > 0).then(|| format!("and {more} more")));
    warnings
}

/// How many values a text in JSON holds at most.
fn values(json: &str) -> usize {
    json.bytes().filter(|byte| matches!(byte, b',' | b'{' | b'[')).count()
}

fn judged(
    reviewer: &Reviewer,
    request: &Request<'_>,
    size: usize,
    began: Instant,
) -> Result<Review, NoReview> {
    let Kind { group, version, kind } = &request.kind;
    let known = reviewer.known.borrow().clone();
    let object = request.object.map(RawValue::get).filter(|object| *object != "null");
    if object.is_some_and(|object| object.len() > OBJECT || values(object) > VALUES) {
        return Err(NoReview::TooLarge);
    }
    match (group.as_ref(), version.as_ref(), kind.as_ref()) {
        ("networking.k8s.io", "v1", "Ingress") => ingress(reviewer, &known, object, (size, began)),
        ("", "v1", "Service") => other(reviewer, &known, request, object, Reference::Service),
        ("", "v1", "Secret") => other(reviewer, &known, request, object, Reference::Secret),
        (GROUP, _, kind) => {
            let kind = ROUTES.into_iter().find(|one| one.name() == kind);
            Ok(route(reviewer, &known, object, kind.ok_or(NoReview::Unexpected)?))
        }
        _ => Err(NoReview::Unexpected),
    }
}

/// What goes away, or has gone (DELETE has no object), is nobody's concern.
fn ingress(
    reviewer: &Reviewer,
    known: &Known,
    object: Option<&str>,
    (size, began): (usize, Instant),
) -> Result<Review, NoReview> {
    let Some(object) = object.filter(|object| !is_going(object)) else {
        return Ok(Review::default());
    };
    let ingress = parse_ingress(object).map_err(|_| NoReview::Undecodable)?;
    if !may_be(&ingress.meta.key) {
        return Err(NoReview::TooLarge);
    }
    let parsed = began.elapsed();
    let Known { snapshot, configuration, .. } = known;
    let mut review = review(&ingress, snapshot, configuration, &reviewer.options);
    if is_concerned(&ingress, snapshot, &reviewer.options) {
        review.warnings.extend(needs::missing(&ingress, snapshot, &reviewer.options));
        if review.refusal.is_none() {
            review.warnings.extend(in_vain(&ingress, snapshot, &reviewer.options));
        }
    }
    let last = LastReview { parsed, whole: began.elapsed(), size };
    reviewer.reviews.add(&ingress.meta.key, review.refusal.is_none(), last);
    Ok(review)
}

/// Whether an object of a cluster may be called so. Whoever else asks is free to write what he likes, and names are
/// kept for `/metrics`.
fn may_be(key: &ObjectKey) -> bool {
    key.namespace.len() <= NAMESPACE && key.name.len() <= NAME
}

/// A route is never refused: what it names may come later.
fn route(reviewer: &Reviewer, known: &Known, object: Option<&str>, kind: objects::Kind) -> Review {
    let Some(object) = object.filter(|object| !is_going(object)) else {
        return Review::default();
    };
    let Known { snapshot, configuration, .. } = known;
    let warnings = useless_route(kind, object, snapshot, configuration, &reviewer.options);
    Review { refusal: None, warnings }
}

/// A Service or Secret is never refused; who changes it is told which Ingresses that touches.
fn other(
    reviewer: &Reviewer,
    known: &Known,
    request: &Request<'_>,
    object: Option<&str>,
    reference: fn(ObjectKey) -> Reference,
) -> Result<Review, NoReview> {
    let Known { snapshot, references, .. } = known;
    let options = &reviewer.options;
    let key = ObjectKey::new(request.namespace.as_ref(), request.name.as_ref());
    let reference = reference(key);
    if !references.is_referenced(&reference) {
        return Ok(Review::default());
    }
    let warnings = match (&reference, object) {
        _ if request.operation == "DELETE" => {
            needs::lost(&reference, snapshot, references, options)
        }
        (Reference::Service(_), Some(object)) => {
            let service = parse_service(object).map_err(|_| NoReview::Undecodable)?;
            needs::lost_ports(&service, snapshot, references, options)
        }
        (Reference::Secret(_), Some(object)) => {
            let secret = parse_secret(object).map_err(|_| NoReview::Undecodable)?;
            needs::unusable(&secret, snapshot, references, options)
        }
        _ => Vec::new(),
    };
    Ok(Review { refusal: None, warnings })
}

/// Whether an object has a `metadata.deletionTimestamp`.
fn is_going(object: &str) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Meta<'a> {
        #[serde(borrow)]
        deletion_timestamp: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Meta<'a>,
    }
    serde_json::from_str::<Object<'_>>(object)
        .is_ok_and(|object| object.metadata.deletion_timestamp.is_some())
}

#[cfg(test)]
mod tests {
    use super::{WARNING, WARNINGS, few};

    #[test]
    fn warnings_have_a_bound_together_and_the_rest_is_counted() {
        let all: Vec<String> = (0..100).map(|_| "ab".repeat(WARNING)).collect();
        let told = few(all);
        assert_eq!(told.len(), 1 + WARNINGS / (WARNING + 1));
        assert_eq!(told.last().map(String::as_str), Some("and 93 more"));
        assert!(told[0].ends_with("ab…"), "the mark stands behind what is told of one");
        let few_and_short = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(few(few_and_short.clone()), few_and_short);
    }
}
