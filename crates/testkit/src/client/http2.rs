//! HTTP/2 from the client's side: one stream of one connection.

use super::{Target, cookies::Jar, decode, http1};
use crate::{
    exchange::{Answer, Request},
    http2::{Connection, Event, MAX_FRAME, WINDOW},
    wire::{Failure, Pair, Wire, value},
};

/// The only stream.
const STREAM: u32 = 1;

/// Fields that no HTTP/2 message may have.
const HOP_BY_HOP: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// Sends one request and reads its answer.
pub(super) async fn exchange(
    wire: Wire,
    request: &Request,
    target: &Target<'_>,
    jar: &Jar,
) -> Result<Answer, Failure> {
    let mut fields = vec![
        (":method".to_owned(), request.method.clone().unwrap_or_else(|| "GET".to_owned())),
        (":scheme".to_owned(), target.scheme.to_owned()),
        (":authority".to_owned(), request.host.clone().unwrap_or_else(|| target.host.to_owned())),
        (":path".to_owned(), target.path.clone()),
    ];
    fields.extend(request.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
    fields.extend(jar.header(request).map(|cookies| ("cookie".to_owned(), cookies)));
    let (mut answer, body) = stream(wire, &fields, &http1::body(request)?).await?;
    answer.body = Some(decode::shown(body, answer.headers.as_deref().unwrap_or_default()));
    jar.keep(request, &answer);
    Ok(answer)
}

/// Sends fields and body as they are; gives the answer and its body apart.
pub(super) async fn stream(
    wire: Wire,
    fields: &[Pair],
    body: &[u8],
) -> Result<(Answer, Vec<u8>), Failure> {
    let mut connection = Connection::client(wire).await?;
    let sent: Vec<(&str, &[u8])> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    connection.headers(STREAM, &sent, body.is_empty()).await?;
    let mut upload = Upload {
        rest: body,
        ended: body.is_empty(),
        stream: WINDOW,
        connection: WINDOW,
        initial: WINDOW,
    };
    let mut reading = Reading::default();
    loop {
        upload.push(&mut connection).await?;
        let mut event = Some(connection.next().await?);
        // What came along with the end counts too.
        while let Some(next) = event {
            upload.credit(&next);
            reading.take(next, upload.ended)?;
            event = connection.next_in_buffer().await?;
        }
        if reading.done {
            let head = value(fields, ":method") == Some("HEAD");
            return reading.finish(head);
        }
    }
}

/// A body on its way out, within the credit that the other end gives.
struct Upload<'a> {
    rest: &'a [u8],
    ended: bool,
    stream: i64,
    connection: i64,
    initial: i64,
}

impl Upload<'_> {
    async fn push(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        while !self.ended {
            let credit = usize::try_from(self.stream.min(self.connection)).unwrap_or_default();
            let length = credit.min(MAX_FRAME).min(self.rest.len());
            if length == 0 {
                return Ok(());
            }
            let (part, rest) = self.rest.split_at(length);
            connection.data(STREAM, part, rest.is_empty()).await?;
            let spent = i64::try_from(length).expect("a frame is short");
            (self.rest, self.ended) = (rest, rest.is_empty());
            (self.stream, self.connection) = (self.stream - spent, self.connection - spent);
        }
        Ok(())
    }

    fn credit(&mut self, event: &Event) {
        match *event {
            Event::Credit { stream: 0, bytes } => self.connection += bytes,
            Event::Credit { stream: STREAM, bytes } => self.stream += bytes,
            Event::InitialWindow(size) => {
                self.stream += size - self.initial;
                self.initial = size;
            }
            _ => {}
        }
    }
}

/// An answer on its way in.
#[derive(Default)]
struct Reading {
    answer: Answer,
    body: Vec<u8>,
    done: bool,
}

impl Reading {
    fn take(&mut self, event: Event, sent_all: bool) -> Result<(), Failure> {
        match event {
            Event::Headers { stream: STREAM, fields, last } => {
                self.fields(fields)?;
                self.done |= last;
            }
            Event::Data { stream: STREAM, bytes, last } => {
                self.body.extend(bytes);
                self.done |= last;
            }
            // A reset after both sides have said everything means nothing.
            Event::Reset { stream: STREAM, .. } if self.done && sent_all => {}
            Event::Reset { stream: STREAM, code } => self.fail(format!("stream-reset-{code}")),
            Event::GoAway { code } => self.fail(format!("goaway-{code}")),
            _ => {}
        }
        Ok(())
    }

    fn fail(&mut self, error: String) {
        self.answer.error = Some(error);
        self.done = true;
    }

    fn fields(&mut self, fields: Vec<Pair>) -> Result<(), Failure> {
        let strange = |(name, _): &Pair| {
            HOP_BY_HOP.contains(&name.as_str())
                || name.bytes().any(|byte| byte.is_ascii_uppercase())
        };
        if fields.iter().any(strange) {
            return Err(Failure::Malformed);
        }
        let status =
            value(&fields, ":status").map(|status| status.parse().map_err(|_| Failure::Malformed));
        match (status.transpose()?, self.answer.status) {
            (None, Some(_)) => self.answer.trailers = fields,
            (Some(status @ 100..200), None) => self.answer.interim.push(status),
            (Some(status), None) => {
                self.answer.status = Some(status);
                self.answer.protocol = Some("HTTP/2".to_owned());
                self.answer.headers =
                    Some(fields.into_iter().filter(|(name, _)| name != ":status").collect());
            }
            _ => return Err(Failure::Malformed),
        }
        Ok(())
    }

    /// The answer, unless its length is not what it says.
    fn finish(self, head: bool) -> Result<(Answer, Vec<u8>), Failure> {
        let length = value(self.answer.headers.as_deref().unwrap_or_default(), "content-length");
        let wrong = length
            .and_then(|length| length.parse().ok())
            .is_some_and(|length: usize| length != self.body.len());
        let empty = head || matches!(self.answer.status, Some(204 | 304));
        if wrong && !empty && self.answer.error.is_none() {
            return Err(Failure::Malformed);
        }
        Ok((self.answer, self.body))
    }
}
