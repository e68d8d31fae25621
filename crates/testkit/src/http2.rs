//! HTTP/2 frame by frame, so that tests can send and see exactly what they want.
//!
//! Nothing is checked on the way out. Acknowledgements of settings and pings and the credit for data are given by
//! themselves.

use crate::{
    latin1,
    wire::{Failure, Pair, Wire},
};

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The longest frame that either side takes without being asked.
pub const MAX_FRAME: usize = 16_384;

/// The credit that each side has at first, for a stream and for the connection.
pub const WINDOW: i64 = 65_535;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// Something that the other end said.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A block of header fields, pseudo fields included, or trailers.
    Headers {
        /// The stream.
        stream: u32,
        /// The fields in their order.
        fields: Vec<Pair>,
        /// Nothing follows on this stream.
        last: bool,
    },
    /// A part of a body.
    Data {
        /// The stream.
        stream: u32,
        /// The part.
        bytes: Vec<u8>,
        /// Nothing follows on this stream.
        last: bool,
    },
    /// The stream was given up.
    Reset {
        /// The stream.
        stream: u32,
        /// Why.
        code: u32,
    },
    /// The connection is given up.
    GoAway {
        /// Why.
        code: u32,
    },
    /// More may be sent.
    Credit {
        /// The stream, 0 for the connection.
        stream: u32,
        /// How much more.
        bytes: i64,
    },
    /// The credit that every stream starts with changed.
    InitialWindow(i64),
    /// Anything that needs no reaction.
    Other,
}

/// A connection that speaks HTTP/2.
pub struct Connection {
    wire: Wire,
    decoder: loona_hpack::Decoder<'static>,
    /// The header block that is still incomplete: its stream, whether it ends the stream, and what came so far.
    open_block: Option<(u32, bool, Vec<u8>)>,
}

impl Connection {
    /// Opens the connection as a client.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn client(mut wire: Wire) -> Result<Self, Failure> {
        wire.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await?;
        Ok(Self::over(wire))
    }

    /// Opens the connection as a server, which speaks at once, whatever the client turns out to speak.
    ///
    /// # Errors
    /// When the client does not speak HTTP/2.
    pub async fn server(mut wire: Wire) -> Result<Self, Failure> {
        wire.send(&frame(SETTINGS, 0, 0, &[])).await?;
        if wire.exactly(PREFACE.len()).await? != PREFACE {
            return Err(Failure::Malformed);
        }
        Ok(Self::over(wire))
    }

    fn over(wire: Wire) -> Self {
        Self { wire, decoder: loona_hpack::Decoder::new(), open_block: None }
    }

    /// Sends header fields as they are, in as many frames as they need.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn headers(
        &mut self,
        stream: u32,
        fields: &[(&str, &[u8])],
        last: bool,
    ) -> Result<(), Failure> {
        let block: Vec<u8> =
            fields.iter().flat_map(|(name, value)| literal(name.as_bytes(), value)).collect();
        let mut parts: Vec<&[u8]> = block.chunks(MAX_FRAME).collect();
        let tail = parts.split_off(1.min(parts.len()));
        let end = |more: bool| if more { 0 } else { END_HEADERS };
        let first = end(!tail.is_empty()) | if last { END_STREAM } else { 0 };
        let mut out = frame(HEADERS, first, stream, parts.first().copied().unwrap_or_default());
        for (index, part) in tail.iter().enumerate() {
            out.extend(frame(CONTINUATION, end(index + 1 < tail.len()), stream, part));
        }
        self.wire.send(&out).await
    }

    /// Sends one frame of a body.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn data(&mut self, stream: u32, bytes: &[u8], last: bool) -> Result<(), Failure> {
        self.wire.send(&frame(DATA, u8::from(last), stream, bytes)).await
    }

    /// The next thing that the other end says.
    ///
    /// # Errors
    /// When the connection ends, or what came is not HTTP/2.
    pub async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            if let Some(event) = self.next_in_buffer().await? {
                return Ok(event);
            }
            if !self.wire.fill().await? {
                return Err(Failure::Ended);
            }
        }
    }

    /// The next thing that came already.
    ///
    /// # Errors
    /// When what came is not HTTP/2.
    pub async fn next_in_buffer(&mut self) -> Result<Option<Event>, Failure> {
        let Some(&[a, b, c, kind, flags, s0, s1, s2, s3]) = self.wire.buffer.first_chunk::<9>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if self.wire.buffer.len() < 9 + length {
            return Ok(None);
        }
        // Only a frame that is all there can be too long: what is no frame at all ends with the connection.
        if length > MAX_FRAME {
            return Err(Failure::Malformed);
        }
        let payload = self.wire.exactly(9 + length).await?.split_off(9);
        let stream = u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]);
        self.react(kind, flags, stream, payload).await.map(Some)
    }

    async fn react(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: Vec<u8>,
    ) -> Result<Event, Failure> {
        if self.open_block.is_some() != (kind == CONTINUATION) {
            return Err(Failure::Malformed);
        }
        match kind {
            DATA => self.take_data(flags, stream, payload).await,
            HEADERS => {
                let block = unpadded(flags, payload)?;
                let skip = if flags & PRIORITY == 0 { 0 } else { 5 };
                let block = block.get(skip..).ok_or(Failure::Malformed)?.to_vec();
                self.open_block = Some((stream, flags & END_STREAM != 0, block));
                self.finish_block(flags)
            }
            CONTINUATION => {
                if let Some((_, _, block)) = &mut self.open_block {
                    block.extend(payload);
                }
                self.finish_block(flags)
            }
            RST_STREAM => Ok(Event::Reset { stream, code: number(&payload, 0)? }),
            SETTINGS if flags & ACK == 0 => {
                self.acknowledge(&frame(SETTINGS, ACK, 0, &[])).await;
                Ok(initial_window(&payload))
            }
            PING if flags & ACK == 0 => {
                self.acknowledge(&frame(PING, ACK, 0, &payload)).await;
                Ok(Event::Other)
            }
            GOAWAY => Ok(Event::GoAway { code: number(&payload, 4)? }),
            WINDOW_UPDATE => {
                Ok(Event::Credit { stream, bytes: i64::from(number(&payload, 0)? & 0x7fff_ffff) })
            }
            _ => Ok(Event::Other),
        }
    }

    async fn take_data(
        &mut self,
        flags: u8,
        stream: u32,
        payload: Vec<u8>,
    ) -> Result<Event, Failure> {
        let credit =
            u32::try_from(payload.len()).expect("a frame is shorter than 16 MiB").to_be_bytes();
        let last = flags & END_STREAM != 0;
        let bytes = unpadded(flags, payload)?;
        if credit != [0; 4] {
            let mut out = frame(WINDOW_UPDATE, 0, 0, &credit);
            if !last {
                out.extend(frame(WINDOW_UPDATE, 0, stream, &credit));
            }
            self.acknowledge(&out).await;
        }
        Ok(Event::Data { stream, bytes, last })
    }

    /// Sends what needs no answer: a peer that has said all it wanted may be gone already.
    async fn acknowledge(&mut self, frames: &[u8]) {
        let _gone = self.wire.send(frames).await;
    }

    fn finish_block(&mut self, flags: u8) -> Result<Event, Failure> {
        if flags & END_HEADERS == 0 {
            return Ok(Event::Other);
        }
        let Some((stream, last, block)) = self.open_block.take() else {
            return Err(Failure::Malformed);
        };
        let fields = self.decoder.decode(&block).map_err(|_| Failure::Malformed)?;
        let fields =
            fields.iter().map(|(name, value)| (latin1::text(name), latin1::text(value))).collect();
        Ok(Event::Headers { stream, fields, last })
    }
}

/// One frame as bytes.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length =
        u32::try_from(payload.len()).expect("a frame is shorter than 16 MiB").to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A field written out in full, outside the table of the other end.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    for text in [name, value] {
        out.extend(loona_hpack::encoder::encode_integer(text.len(), 7));
        out.extend(text);
    }
    out
}

fn unpadded(flags: u8, mut payload: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let padding = usize::from(*payload.first().ok_or(Failure::Malformed)?);
    let end =
        payload.len().checked_sub(padding).filter(|&end| end >= 1).ok_or(Failure::Malformed)?;
    payload.truncate(end);
    Ok(payload.split_off(1))
}

fn number(payload: &[u8], at: usize) -> Result<u32, Failure> {
    let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
    bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or(Failure::Malformed)
}

fn initial_window(settings: &[u8]) -> Event {
    let found =
        settings.chunks_exact(6).rfind(|entry| entry[..2] == INITIAL_WINDOW_SIZE.to_be_bytes());
    match found.and_then(|entry| number(entry, 2).ok()) {
        Some(size) => Event::InitialWindow(i64::from(size)),
        None => Event::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn joined() -> (Connection, Connection) {
        let (near, far) = tokio::io::duplex(1 << 20);
        let client = Connection::client(Wire::new(near, None)).await.unwrap();
        (client, Connection::server(Wire::new(far, None)).await.unwrap())
    }

    async fn next(connection: &mut Connection) -> Event {
        loop {
            match connection.next().await.unwrap() {
                Event::Other | Event::Credit { .. } => {}
                event => return event,
            }
        }
    }

    #[tokio::test]
    async fn fields_keep_their_order_and_spelling_even_over_several_frames() {
        let (mut client, mut server) = joined().await;
        let long = vec![b'v'; 40_000];
        client
            .headers(1, &[(":path", b"/a b"), ("X-Upper", b"\xff"), ("long", &long)], true)
            .await
            .unwrap();
        let Event::Headers { stream: 1, fields, last: true } = next(&mut server).await else {
            panic!()
        };
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [":path", "X-Upper", "long"]);
        assert_eq!((fields[1].1.as_str(), fields[2].1.len()), ("\u{ff}", 40_000));
    }

    #[tokio::test]
    async fn data_is_credited_to_the_sender() {
        let (mut client, mut server) = joined().await;
        client.data(1, b"body", false).await.unwrap();
        let want = Event::Data { stream: 1, bytes: b"body".to_vec(), last: false };
        assert_eq!(next(&mut server).await, want);
        let mut credits = Vec::new();
        while credits.len() < 2 {
            if let Event::Credit { stream, bytes } = client.next().await.unwrap() {
                credits.push((stream, bytes));
            }
        }
        assert_eq!(credits, [(0, 4), (1, 4)]);
    }

    #[tokio::test]
    async fn a_server_refuses_what_is_not_http_2() {
        let (near, far) = tokio::io::duplex(1 << 10);
        let mut wire = Wire::new(near, None);
        wire.send(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
        assert!(matches!(Connection::server(Wire::new(far, None)).await, Err(Failure::Malformed)));
    }
}
