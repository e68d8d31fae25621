//! A request to the webhook: its body within bounds, then the review.

use super::review::{NoReview, answer};
use super::room::{Share, Stage};
use super::server::Shared;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use runtime::turns::Turn;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a review that are refused: three times what etcd takes, and as many as ingress-nginx refuses.
const TOO_LARGE: usize = 9 << 20;
/// Bytes that every connection may hold. Nearly all reviews are smaller; larger ones have [`super::room`] together, and
/// turns of their own.
const SMALL: usize = 64 << 10;
/// How long a request may take, from its head to its answer: less than the API server's own patience (10 s). Nobody who
/// takes nothing of an answer is waited for longer, either.
pub(super) const REQUEST: Duration = Duration::from_secs(8);

/// A body, and the room that a large one holds until it is judged.
type Read = (Vec<u8>, Option<Share>);

/// The answer to a request on any path, as ingress-nginx has it.
pub(super) async fn respond(
    request: Request<Incoming>,
    peer: IpAddr,
    shared: &Arc<Shared>,
) -> Response<Full<Bytes>> {
    match tokio::time::timeout(REQUEST, reviewed(request, peer, shared)).await {
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

async fn reviewed(
    request: Request<Incoming>,
    peer: IpAddr,
    shared: &Arc<Shared>,
) -> Result<Vec<u8>, Refusal> {
    let (body, share) = read(request.into_body(), peer, shared).await?;
    let turn = turn(share.as_ref(), peer, shared).await?;
    let shared = Arc::clone(shared);
    let judge = move || {
        // Both end with the judgement, also if nobody waits for it any more.
        let _held = (turn, share);
        answer(&shared.reviewer, &body)
    };
    let failed = |_| (StatusCode::INTERNAL_SERVER_ERROR, "the review failed\n");
    let answered = tokio::task::spawn_blocking(judge).await.map_err(failed)?;
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

/// Reads a body. What announces too much is refused before it is read, what is large waits for room before it is held:
/// for as much as it announces, and where it announces nothing, for as much as any may have.
async fn read(mut body: Incoming, peer: IpAddr, shared: &Shared) -> Result<Read, Refusal> {
    let announced =
        body.size_hint().exact().map(|exact| usize::try_from(exact).unwrap_or(usize::MAX));
    if announced.is_some_and(|exact| exact >= TOO_LARGE) {
        return Err(LARGE);
    }
    let (mut bytes, mut share) = (Vec::new(), None);
    while let Some(frame) = unless_lost(body.frame(), share.as_ref()).await? {
        let frame = frame.map_err(|_| (StatusCode::BAD_REQUEST, "the review did not arrive\n"))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length >= TOO_LARGE {
            return Err(LARGE);
        }
        if length > SMALL && share.is_none() {
            share = Some(shared.room.share(peer, announced.unwrap_or(TOO_LARGE)).await);
            bytes.reserve_exact(announced.unwrap_or(0).saturating_sub(bytes.len()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, share))
}

/// Waits until a body that is there may be judged: one address after the other, so that a client that has much to ask
/// for, and whoever floods, keeps nobody else waiting. Large ones have turns of their own.
async fn turn(share: Option<&Share>, peer: IpAddr, shared: &Shared) -> Result<Turn, Refusal> {
    let Some(share) = share else { return Ok(shared.small.turn(peer).await) };
    share.reach(Stage::Whole);
    let turn = unless_lost(shared.large.turn(peer), Some(share)).await?;
    if share.reach(Stage::Judged) { Ok(turn) } else { Err(LOST) }
}

const LOST: Refusal = (StatusCode::SERVICE_UNAVAILABLE, "others needed the room of this review\n");

/// What this comes to, unless the room is lost before.
async fn unless_lost<T>(
    awaited: impl Future<Output = T>,
    share: Option<&Share>,
) -> Result<T, Refusal> {
    let Some(share) = share else { return Ok(awaited.await) };
    tokio::select! {
        biased;
        () = share.lost() => Err(LOST),
        done = awaited => Ok(done),
    }
}
