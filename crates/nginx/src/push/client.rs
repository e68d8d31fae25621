//! One request on the unix socket of nginx's Lua.

use crate::conf::Environment;
use bytes::Bytes;
use http::request::Builder;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer at most.
const LONGEST: usize = 64 << 10;

/// The socket of nginx's Lua, and what it hears us by: nobody else who is led there can say it.
#[derive(Clone, Debug)]
pub struct Control {
    /// The socket.
    pub socket: PathBuf,
    /// The secret.
    pub secret: String,
}

impl Control {
    /// Those of an environment.
    pub(crate) fn of(environment: &Environment) -> Self {
        Self { socket: environment.control(), secret: environment.password.clone() }
    }
}

/// Why nginx does not have what it was to be told.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Nobody listens on the socket.
    #[error("cannot reach nginx on {}", socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection broke off.
    #[error("{request} broke off")]
    Broken {
        /// The request.
        request: String,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nginx said no; what it had before stays.
    #[error("{request} was refused with {status}: {reason}")]
    Refused {
        /// The request.
        request: String,
        /// The status.
        status: StatusCode,
        /// What the Lua said.
        reason: String,
    },
    /// No answer in time.
    #[error("{request} was not answered within {} s", PATIENCE.as_secs())]
    Late {
        /// The request.
        request: String,
    },
}

impl PushError {
    /// Whether nginx is at another state than was believed.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::CONFLICT, .. })
    }

    /// Whether there was no room for it.
    pub(super) fn is_for_room(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::INSUFFICIENT_STORAGE, .. })
    }

    /// Whether the same push will be refused again, however often.
    pub(super) fn is_final(&self) -> bool {
        let refused = [
            StatusCode::BAD_REQUEST,
            StatusCode::INSUFFICIENT_STORAGE,
            StatusCode::PAYLOAD_TOO_LARGE,
        ];
        matches!(self, Self::Refused { status, .. } if refused.contains(status))
    }
}

/// Sends a request and gives the generation that nginx is at. `after` is the one that the request builds upon.
pub(super) async fn send(
    socket: &Control,
    method: Method,
    path: &str,
    after: Option<u64>,
    body: Vec<u8>,
) -> Result<u64, PushError> {
    let mut head = Request::builder().method(method).uri(path);
    if let Some(after) = after {
        head = head.header("X-After", after);
    }
    let request = format!("{} {path}", head.method_ref().unwrap_or(&Method::GET));
    let (headers, body) = ask(socket, head, body, &request).await?;
    let missing = || broken(&request, "there is no generation".into());
    generation(&headers, &body).ok_or_else(missing)
}

/// Reads what is there.
pub(crate) async fn get(socket: &Control, path: &str) -> Result<Bytes, PushError> {
    let (_, body) = ask(socket, Request::get(path), Vec::new(), &format!("GET {path}")).await?;
    Ok(body)
}

fn broken(request: &str, source: Box<dyn std::error::Error + Send + Sync>) -> PushError {
    PushError::Broken { request: request.to_owned(), source }
}

/// An answer that is a success; `request` is what errors call it.
async fn ask(
    socket: &Control,
    head: Builder,
    body: Vec<u8>,
    request: &str,
) -> Result<(HeaderMap, Bytes), PushError> {
    match timeout(PATIENCE, exchange(socket, head, body, request)).await {
        Ok(result) => result,
        Err(_) => Err(PushError::Late { request: request.to_owned() }),
    }
}

async fn exchange(
    socket: &Control,
    head: Builder,
    body: Vec<u8>,
    request: &str,
) -> Result<(HeaderMap, Bytes), PushError> {
    let broken = |source| broken(request, source);
    let Control { socket, secret } = socket;
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|source| PushError::Connect { socket: socket.clone(), source })?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(error.into()))?;
    let mut head = head.header("Host", "fairway").header("X-Fairway-Secret", secret);
    if !body.is_empty() {
        // A length is a field, which the ConfigMap can change; where the last piece ends is not.
        head = head.header("Transfer-Encoding", "chunked");
    }
    let head = head.body(Full::new(Bytes::from(body)));
    let head = head.map_err(|error| broken(error.into()))?;
    let answer = async {
        let response = sender.send_request(head).await.map_err(|error| broken(error.into()))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(broken)?;
        Ok((parts, body.to_bytes()))
    };
    // The connection moves only while somebody drives it; it ends with the answer.
    tokio::pin!(connection, answer);
    let (parts, body) = tokio::select! {
        answer = &mut answer => answer?,
        // A refusal may have come before all of the request was read.
        ended = &mut connection => match (answer.await, ended) {
            (Ok(answer), _) => answer,
            (Err(_), Err(error)) => return Err(broken(error.into())),
            (Err(error), Ok(())) => return Err(error),
        },
    };
    if parts.status.is_success() {
        return Ok((parts.headers, body));
    }
    let reason = String::from_utf8_lossy(&body).trim().to_owned();
    Err(PushError::Refused { request: request.to_owned(), status: parts.status, reason })
}

/// Fields of answers the ConfigMap can change; the body is ours, if it is a whole line: its length is a field, by which
/// it may have been cut.
fn generation(headers: &HeaderMap, body: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(body).ok().and_then(|body| body.strip_suffix('\n'));
    let of_field = || headers.get("X-Generation")?.to_str().ok()?.parse().ok();
    line.and_then(|line| line.parse().ok()).or_else(of_field)
}
