//! The gRPC echo: sends the message back, with trailers.

use std::collections::{BTreeMap, VecDeque};

use super::{Pod, echo};
use crate::{
    http2::{Connection, Event, MAX_FRAME, WINDOW},
    wire::{Failure, Pair, Wire, value},
};

/// Answers the calls of a connection, one after another.
pub(super) async fn serve(pod: &Pod, wire: Wire) -> Result<(), Failure> {
    let connection = Connection::server(wire).await?;
    let (open, ended) = (BTreeMap::new(), VecDeque::new());
    let mut session = Session { connection, open, ended, room: WINDOW, first: WINDOW };
    loop {
        match session.ended.pop_front() {
            Some(call) => session.answer(pod, call).await?,
            None => session.hear().await?,
        }
    }
}

/// A call: its stream, its head and its body.
type Call = (u32, Vec<Pair>, Vec<u8>);

/// What came of calls, and how much may be said.
struct Session {
    connection: Connection,
    /// Calls that are not all there or not answered, each with the room of its stream.
    open: BTreeMap<u32, (Vec<Pair>, Vec<u8>, i64)>,
    /// Those that wait for their answer.
    ended: VecDeque<Call>,
    /// Room of the connection, and what each stream has at first (RFC 9113 section 5.2).
    room: i64,
    first: i64,
}

impl Session {
    async fn hear(&mut self) -> Result<(), Failure> {
        let ended = match self.connection.next().await? {
            Event::Headers { stream, fields, last } => {
                self.open.entry(stream).or_insert((fields, Vec::new(), self.first));
                last.then_some(stream)
            }
            Event::Data { stream, bytes, last } => {
                self.open.get_mut(&stream).ok_or(Failure::Malformed)?.1.extend(bytes);
                last.then_some(stream)
            }
            Event::Reset { stream, .. } => {
                self.open.remove(&stream);
                None
            }
            Event::Credit { stream: 0, bytes } => {
                self.room += bytes;
                None
            }
            Event::Credit { stream, bytes } => {
                self.open.entry(stream).and_modify(|(.., room)| *room += bytes);
                None
            }
            Event::InitialWindow(size) => {
                let more = size - std::mem::replace(&mut self.first, size);
                self.open.values_mut().for_each(|(.., room)| *room += more);
                None
            }
            _ => None,
        };
        if let Some((stream, (fields, body, _))) = ended.and_then(|id| self.open.get_key_value(&id))
        {
            self.ended.push_back((*stream, fields.clone(), body.clone()));
        }
        Ok(())
    }

    async fn answer(&mut self, pod: &Pod, (stream, fields, body): Call) -> Result<(), Failure> {
        let field = |name| value(&fields, name).unwrap_or_default().to_owned();
        let mut seen = pod.saw("HTTP/2", &field(":method"), &field(":path"), &body);
        let (code, delay) = (field("echo-grpc-status"), field("echo-delay"));
        let fields = fields.into_iter().filter(|(name, _)| name != ":method" && name != ":path");
        seen.headers = Some(fields.collect());
        pod.journal.note(seen);
        if !delay.is_empty() {
            echo::pause(&delay).await?;
        }
        let start: [(&str, &[u8]); 3] = [
            (":status", b"200"),
            ("content-type", b"application/grpc"),
            ("x-pod", pod.name.as_bytes()),
        ];
        if !code.is_empty() && code != "0" {
            let end: [(&str, &[u8]); 2] =
                [("grpc-status", code.as_bytes()), ("grpc-message", b"asked for")];
            self.open.remove(&stream);
            return self.connection.headers(stream, &[&start[..], &end[..]].concat(), true).await;
        }
        self.connection.headers(stream, &start, false).await?;
        let mut rest = &body[..];
        while !rest.is_empty() {
            // Who gave the call up wants no more.
            let Some((.., room)) = self.open.get_mut(&stream) else { return Ok(()) };
            let credit = usize::try_from(self.room.min(*room)).unwrap_or_default();
            let (part, later) = rest.split_at(credit.min(MAX_FRAME).min(rest.len()));
            if part.is_empty() {
                self.hear().await?;
                continue;
            }
            let spent = i64::try_from(part.len()).expect("a frame is short");
            (self.room, *room) = (self.room - spent, *room - spent);
            self.connection.data(stream, part, false).await?;
            rest = later;
        }
        self.open.remove(&stream);
        let end: [(&str, &[u8]); 2] = [("grpc-status", b"0"), ("x-trailer", b"kept")];
        self.connection.headers(stream, &end, true).await
    }
}
