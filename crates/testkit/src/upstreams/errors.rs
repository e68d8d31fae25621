//! The backend of error pages: answers with the status in `X-Code` and its X- headers as JSON.

use std::collections::BTreeMap;

use super::{
    http::{Received, Reply},
    json,
};
use crate::wire::value;

/// The answer to a request for an error page.
pub(super) fn answer(request: &Received) -> Reply {
    let status =
        value(&request.headers, "x-code").and_then(|code| code.parse().ok()).unwrap_or(404);
    let own: BTreeMap<&str, &str> = request
        .headers
        .iter()
        .filter(|(name, _)| {
            let name = name.to_lowercase();
            name.starts_with("x-") && name != "x-request-id" && name != "x-req-id"
        })
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Reply {
        status,
        headers: vec![header("Content-Type", "application/json"), header("X-Errors", "custom")],
        body: json::spaced(&own),
        ..Reply::default()
    }
}
