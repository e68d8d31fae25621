//! One try over FastCGI (ngx_http_fastcgi_module): a connection for each request, as nginx's default has it.

mod body;
mod head;
mod record;

use body::FastCgiBody;
pub use head::{head_end, parse};
use record::BadRecord;
pub use record::{Params, Records, Said};

pub(super) use record::{end_of_stdin, stdin};

use super::incoming::Incoming;
use super::talk::{Coding, ReadHead, Talk};
use super::unfinished::Unfinished;
use super::{Connection, Failed, Head, Outgoing, Pool, Target, Try, TryError};
use bytes::{Bytes, BytesMut};
use head::{CgiHead, HeadEnd};
use http::{Method, StatusCode};
use model::policy::Timeouts;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use wire::{Body, Response, Source};

/// Sends a request over a new connection.
pub(super) async fn send(
    pool: &Pool,
    target: &Target,
    request: &mut Outgoing<'_>,
    journal: &Rc<Try>,
) -> Result<Response, Failed> {
    let timeouts = request.policy.timeouts;
    let fail = |error, sent| Failed { error, sent, refused: false, reused: false };
    let Head::FastCgi(head) = request.head.take() else {
        return Err(fail(TryError::InvalidHeader, false));
    };
    let connection = Connection::open(pool, target, request.whom(), timeouts.connect).await;
    let connection = connection.map_err(|error| fail(error, false))?;
    journal.connected(false);
    let heads = Heads {
        limit: request.policy.body.response_header,
        records: Records::default(),
        head: BytesMut::new(),
        end: HeadEnd::default(),
        journal: journal.clone(),
        unfinished: Unfinished::new(pool, request.whom()),
    };
    let body = Some((&mut *request.body, Coding::Stdin));
    let mut talk = Talk::new(connection, head.into(), body, timeouts, heads);
    let head = talk.head().await.map_err(|error| fail(error, true))?;
    journal.answered(head.0.status.as_u16());
    Ok(answered(talk, head, request.method, timeouts, journal))
}

/// Finds the head of the answer.
struct Heads<'a> {
    limit: usize,
    records: Records,
    /// What came of the head so far.
    head: BytesMut,
    end: HeadEnd,
    journal: Rc<Try>,
    unfinished: Unfinished<'a>,
}

impl ReadHead for Heads<'_> {
    /// The head, and what came after it already.
    type Head = (CgiHead, Bytes);

    fn poll_head(
        &mut self,
        connection: &mut Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Head, TryError>> {
        let Connection { io, buffer, .. } = connection;
        loop {
            while let Some(said) = self.records.next(buffer).map_err(|_| TryError::InvalidHeader)? {
                match said {
                    Said::Stdout(data) => self.head.extend_from_slice(&data),
                    Said::Stderr(data) => {
                        self.journal.complains(&data);
                        continue;
                    }
                    Said::End => return Poll::Ready(Err(TryError::InvalidHeader)),
                }
                match self.end.find(&self.head) {
                    Some(end) if end <= self.limit => {
                        let head = self.head.split_to(end);
                        let head = parse(&head).map_err(|_| TryError::InvalidHeader)?;
                        let rest = std::mem::take(&mut self.head).freeze();
                        return Poll::Ready(Ok((head, rest)));
                    }
                    None if self.head.len() <= self.limit => {}
                    _ => return Poll::Ready(Err(TryError::HeadTooLarge(self.limit))),
                }
            }
            let held = self.head.capacity() + buffer.capacity();
            self.unfinished.holds(held)?;
            match ready!(io.poll_read_head(cx, buffer)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(TryError::Closed)),
                Ok(_) => {}
            }
        }
    }
}

/// The answer as phases see it, its body still attached to the connection where there is one.
fn answered(
    talk: Talk<Heads<'_>>,
    (head, first): (CgiHead, Bytes),
    method: &Method,
    timeouts: Timeouts,
    journal: &Rc<Try>,
) -> Response {
    let Talk { connection, answer: Heads { records, unfinished, .. }, upload: rest, .. } = talk;
    let bodyless = *method == Method::HEAD
        || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let mut response = Response {
        status: head.status,
        reason: head.reason,
        headers: head.headers,
        body: Body::empty(),
        source: Source::Upstream,
        announced_length: head.length.filter(|_| bodyless && head.status != StatusCode::NO_CONTENT),
        close: false,
    };
    if bodyless || head.length == Some(0) {
        journal.end();
        return response;
    }
    let body = FastCgiBody {
        incoming: Some(Incoming::new(
            connection,
            rest,
            timeouts,
            journal.clone(),
            unfinished.whom.book,
        )),
        records,
        next: (!first.is_empty()).then_some(Ok(Said::Stdout(first))),
        remaining: head.length,
    };
    response.body = Body::from_source(body);
    response
}
