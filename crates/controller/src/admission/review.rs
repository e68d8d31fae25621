//! AdmissionReview in, AdmissionReview out (admission.k8s.io/v1).

use super::{LastReview, Reviewer};
use kubernetes::parse_ingress;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Instant;
use translate::{Review, review};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Why a request gets no review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoReview {
    /// It is not JSON.
    Undecodable,
    /// It is not an AdmissionReview of v1 about an Ingress of networking.k8s.io/v1.
    Unexpected,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    api_version: Option<String>,
    kind: Option<String>,
    request: Option<Request>,
}

#[derive(Deserialize)]
struct Request {
    uid: String,
    kind: Kind,
    #[serde(default)]
    object: Value,
}

#[derive(Deserialize)]
struct Kind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    api_version: &'static str,
    kind: &'static str,
    response: Response,
}

#[derive(Serialize)]
struct Response {
    uid: String,
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
    let value: Value = serde_json::from_slice(body).map_err(|_| NoReview::Undecodable)?;
    let asked: Asked = serde_json::from_value(value).map_err(|_| NoReview::Unexpected)?;
    let is_review =
        asked.api_version.as_deref() == Some(API_VERSION) && asked.kind.as_deref() == Some(KIND);
    let request = asked.request.filter(|_| is_review).ok_or(NoReview::Unexpected)?;
    let Kind { group, version, kind } = &request.kind;
    if (group.as_str(), version.as_str(), kind.as_str()) != ("networking.k8s.io", "v1", "Ingress") {
        return Err(NoReview::Unexpected);
    }
    let Review { refusal, warnings } = judged(reviewer, request.object, body.len(), began)?;
    tracing::debug!(allowed = refusal.is_none(), took = ?began.elapsed(), "an Ingress was reviewed");
    let status = refusal.map(|message| {
        tracing::info!(message, "an Ingress was refused");
        Status { status: "Failure", reason: "BadRequest", code: 400, message }
    });
    let response = Response { uid: request.uid, allowed: status.is_none(), status, warnings };
    let answer = Answer { api_version: API_VERSION, kind: KIND, response };
    Ok(serde_json::to_vec(&answer).expect("an answer is plain data"))
}

/// What goes away, or has gone (DELETE has no object), is nobody's concern.
fn judged(
    reviewer: &Reviewer,
    object: Value,
    size: usize,
    began: Instant,
) -> Result<Review, NoReview> {
    let deleted = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
    if object.is_null() || deleted(&object) {
        return Ok(Review::default());
    }
    let ingress = parse_ingress(object).map_err(|_| NoReview::Undecodable)?;
    let known = reviewer.known.borrow().clone();
    let parsed = began.elapsed();
    let judgement = review(&ingress, &known.snapshot, &known.configuration, &reviewer.options);
    let last = LastReview { parsed, whole: began.elapsed(), size };
    reviewer.reviews.add(&ingress.meta.key, judgement.refusal.is_none(), last);
    Ok(judgement)
}
