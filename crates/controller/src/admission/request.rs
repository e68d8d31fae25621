//! A request to the webhook: its body within bounds, then the review.

use super::review::{NoReview, answer};
use super::server::Shared;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Bytes of a review that are refused: three times what etcd takes, and as many as ingress-nginx refuses.
const TOO_LARGE: usize = 9 << 20;
/// Bytes that every connection may hold. Nearly all reviews are smaller; larger ones take turns, and are judged on
/// another thread.
const SMALL: usize = 64 << 10;
/// How long a request may take, from its head to its answer: less than the API server's own patience (10 s).
const REQUEST: Duration = Duration::from_secs(8);

/// A body, and the turn that a large one holds until it is answered.
type Read = (Vec<u8>, Option<OwnedSemaphorePermit>);

/// The answer to a request on any path, as ingress-nginx has it.
pub(super) async fn respond(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
) -> Response<Full<Bytes>> {
    match tokio::time::timeout(REQUEST, reviewed(request, shared)).await {
        Ok(Ok(json)) => {
            let mut response = Response::new(Full::new(Bytes::from(json)));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        Ok(Err((status, text))) => refusal(status, text),
        Err(_) => refusal(StatusCode::REQUEST_TIMEOUT, "the review took too long\n"),
    }
}

type Refusal = (StatusCode, &'static str);

fn refusal(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    // Whatever is still on its way is not waited for.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn reviewed(request: Request<Incoming>, shared: &Arc<Shared>) -> Result<Vec<u8>, Refusal> {
    let (body, turn) = read(request.into_body(), shared).await?;
    let answered = if body.len() <= SMALL {
        answer(&shared.reviewer, &body)
    } else {
        let shared = Arc::clone(shared);
        let judge = move || {
            // The turn ends with the judgement, also if nobody waits for it any more.
            let _turn = turn;
            answer(&shared.reviewer, &body)
        };
        let failed = |_| (StatusCode::INTERNAL_SERVER_ERROR, "the review failed\n");
        tokio::task::spawn_blocking(judge).await.map_err(failed)?
    };
    answered.map_err(|reason| match reason {
        NoReview::Undecodable => (StatusCode::BAD_REQUEST, "this is no review\n"),
        NoReview::TooLarge => LARGE,
        NoReview::Unexpected => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "only AdmissionReview v1 of Ingresses (networking.k8s.io/v1), routes (gateway.networking.k8s.io), \
             Services and Secrets (v1) is reviewed\n",
        ),
    })
}

const LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "the review is too large\n");

/// Reads a body. What announces too much is refused before it is read, what is large waits for its turn before it is
/// held.
async fn read(mut body: Incoming, shared: &Arc<Shared>) -> Result<Read, Refusal> {
    let announced = body.size_hint().lower();
    if announced >= TOO_LARGE as u64 {
        return Err(LARGE);
    }
    let (mut bytes, mut turn) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| (StatusCode::BAD_REQUEST, "the review did not arrive\n"))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length >= TOO_LARGE {
            return Err(LARGE);
        }
        if length > SMALL && turn.is_none() {
            turn = Some(
                shared.large.clone().acquire_owned().await.expect("the semaphore is never closed"),
            );
            bytes
                .reserve_exact(usize::try_from(announced).unwrap_or(0).saturating_sub(bytes.len()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, turn))
}
