//! A body that is compressed on its way. What came in goes out as soon as nothing more is there, so that streams of
//! events are not held back; a body that breaks off is never ended as if it were whole.

use super::{Body, BodyError, BodySource, Frame, Headers, Length};
use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};
use std::cell::Cell;
use std::fmt;
use std::io::Write;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Compressed bytes that go out before more is read.
const GATHERED: usize = 16 << 10;
/// Bytes that are compressed before other requests of the thread have their turn.
const TURN: usize = 128 << 10;
/// Room that the encoder is given at a time.
const ROOM: usize = 4 << 10;

/// A method of compression with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// gzip, 1 to 9.
    Gzip(u8),
    /// brotli, 0 to 11.
    Brotli(u8),
}

const KIB: u64 = 1 << 10;

impl Coding {
    /// Bytes of memory that compressing a body of this length takes at most, as measured: what an encoder keeps to find
    /// repetitions, and what it has of the body before it writes.
    pub fn memory(self, length: Length) -> u64 {
        let window = self.window(length);
        match self {
            Self::Gzip(_) => 276 * KIB + (4 << window),
            Self::Brotli(_) => {
                let finds = match self.level() {
                    0 | 1 => return 200 * KIB,
                    2 | 3 => 260,
                    4 => 520,
                    5 => 1060,
                    6..=9 => 2090,
                    10.. => 5090,
                };
                let keeps = match window {
                    ..=16 => 1310,
                    17 => 1740,
                    18 => 3290,
                    19.. => 5180,
                };
                (finds + keeps) * KIB
            }
        }
    }

    /// The level that is obeyed: tables of brotli's levels 7 to 9 take 8 to 33 MiB for each answer, and save a
    /// hundredth of it.
    fn level(self) -> u8 {
        match self {
            Self::Brotli(7..=9) => 6,
            Self::Gzip(level) | Self::Brotli(level) => level,
        }
    }

    /// The window for a body of this length, as a power of two. Who knows no length may stay for hours, and gets one of
    /// brotli's smaller ones, with which answers are hardly longer, as do the levels from 10 on, whose encoders would
    /// grow to 27 MiB. With one below 2^17 the levels from 5 to 9 have tables of 32 MiB.
    fn window(self, length: Length) -> u8 {
        let least = match self {
            Self::Gzip(_) => return window(length, 9, 15),
            Self::Brotli(5..=9) => 17,
            Self::Brotli(_) => 10,
        };
        let small = length == Length::Unknown || matches!(self, Self::Brotli(10..));
        let most = if small { least.max(16) } else { 19 };
        window(length, least, most)
    }
}

/// Bytes before and after compression.
#[derive(Debug, Default)]
pub struct Squeezed {
    before: Cell<u64>,
    after: Cell<u64>,
}

impl Squeezed {
    /// How many times more came in than went out, and hundredths of it, as nginx's `$gzip_ratio` has it.
    pub fn ratio(&self) -> Option<(u64, u64)> {
        let (before, after) = (self.before.get(), self.after.get());
        let thousandths = before.saturating_mul(1000).checked_div(after)?;
        let hundredths = (thousandths + 5) / 10;
        Some((hundredths / 100, hundredths % 100))
    }
}

/// A body that is compressed on its way.
#[derive(Debug)]
pub struct Compressed {
    inner: Body,
    encoder: Option<Encoder>,
    /// Bytes given to the encoder since it was flushed.
    unflushed: usize,
    trailers: Option<Headers>,
    count: Rc<Squeezed>,
    /// Given back with the encoder, whose memory it stands for.
    place: Option<Box<dyn fmt::Debug>>,
}

impl Compressed {
    /// `body` in this coding; `place` stands for the memory that this takes ([`Coding::memory`]).
    pub fn new(
        body: Body,
        coding: Coding,
        count: Rc<Squeezed>,
        place: impl fmt::Debug + 'static,
    ) -> Self {
        let encoder = Some(Encoder::new(coding, body.length()));
        let place: Option<Box<dyn fmt::Debug>> = Some(Box::new(place));
        Self { inner: body, encoder, unflushed: 0, trailers: None, count, place }
    }
}

impl BodySource for Compressed {
    fn length(&self) -> Length {
        Length::Unknown
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let mut taken = 0;
        loop {
            let Some(encoder) = &mut self.encoder else {
                return Poll::Ready(Ok(self.trailers.take().map(Frame::Trailers)));
            };
            let ready = match self.inner.poll_frame(cx)? {
                Poll::Pending if self.unflushed == 0 => return Poll::Pending,
                Poll::Pending => {
                    self.unflushed = 0;
                    let flushed = encoder.flush();
                    if flushed.is_empty() {
                        return Poll::Pending;
                    }
                    flushed
                }
                Poll::Ready(Some(Frame::Data(piece))) => {
                    self.unflushed += piece.len();
                    taken += piece.len();
                    self.count.before.set(self.count.before.get() + piece.len() as u64);
                    encoder.write(&piece);
                    let enough = encoder.output().len() >= GATHERED;
                    if enough { std::mem::take(encoder.output()) } else { Vec::new() }
                }
                Poll::Ready(end) => {
                    if let Some(Frame::Trailers(trailers)) = end {
                        self.trailers = Some(trailers);
                    }
                    let rest = self.encoder.take().map(Encoder::finish).unwrap_or_default();
                    self.place = None;
                    rest
                }
            };
            // A piece of no bytes would be a chunk that ends the message.
            if !ready.is_empty() {
                self.count.after.set(self.count.after.get() + ready.len() as u64);
                return Poll::Ready(Ok(Some(Frame::Data(Bytes::from(ready)))));
            }
            if taken >= TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

/// The state of one stream.
enum Encoder {
    Gzip(Box<Compress>, Vec<u8>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
}

impl Encoder {
    fn new(coding: Coding, length: Length) -> Self {
        let (level, window) = (u32::from(coding.level()), coding.window(length));
        match coding {
            Coding::Gzip(_) => {
                let state = Compress::new_gzip(Compression::new(level), window);
                Self::Gzip(Box::new(state), Vec::new())
            }
            Coding::Brotli(_) => {
                let window = u32::from(window);
                let writer = brotli::CompressorWriter::new(Vec::new(), ROOM, level, window);
                Self::Brotli(Box::new(writer))
            }
        }
    }

    /// What is ready to go out.
    fn output(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(_, out) => out,
            Self::Brotli(writer) => writer.get_mut(),
        }
    }

    fn write(&mut self, data: &[u8]) {
        match self {
            Self::Gzip(state, out) => deflate(state, out, data, FlushCompress::None),
            Self::Brotli(writer) => {
                writer.write_all(data).expect("a Vec takes all");
            }
        }
    }

    /// All that was written, in a form that the client can decode without what comes after.
    fn flush(&mut self) -> Vec<u8> {
        match self {
            Self::Gzip(state, out) => deflate(state, out, &[], FlushCompress::Sync),
            Self::Brotli(writer) => writer.flush().expect("a Vec takes all"),
        }
        std::mem::take(self.output())
    }

    /// The end of the stream.
    fn finish(self) -> Vec<u8> {
        match self {
            Self::Gzip(mut state, mut out) => {
                deflate(&mut state, &mut out, &[], FlushCompress::Finish);
                out
            }
            Self::Brotli(writer) => writer.into_inner(),
        }
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Gzip(..)) { "Gzip" } else { "Brotli" })
    }
}

/// Compresses all of `data`; with a flush, until nothing of it is left inside.
fn deflate(state: &mut Compress, out: &mut Vec<u8>, mut data: &[u8], flush: FlushCompress) {
    loop {
        out.reserve(ROOM);
        let before = state.total_in();
        let status = state.compress_vec(data, out, flush).expect("the state is never misused");
        let taken = usize::try_from(state.total_in() - before).unwrap_or(data.len());
        data = &data[taken..];
        let full = out.len() == out.capacity();
        let done = match flush {
            FlushCompress::Finish => status == Status::StreamEnd,
            _ => data.is_empty() && !full,
        };
        if done {
            return;
        }
    }
}

/// The window for a body of this length, as a power of two: what is larger than the body is wasted
/// (ngx_http_gzip_filter_memory).
fn window(length: Length, least: u8, most: u8) -> u8 {
    match length {
        Length::Known(length) => {
            let holds = |bits: &u8| length <= (1_u64 << bits) - 262;
            (least..most).find(holds).unwrap_or(most)
        }
        Length::Unknown => most,
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, BodySource, Coding, Compressed, Frame, Length, Squeezed};
    use bytes::Bytes;
    use std::cell::Cell;
    use std::io::Read;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    fn drained(coding: Coding, body: &[u8]) -> Vec<u8> {
        let body = Body::full(Bytes::copy_from_slice(body));
        let mut compressed = Compressed::new(body, coding, Rc::default(), ());
        let mut out = Vec::new();
        loop {
            match compressed.poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Some(Frame::Data(data)))) => out.extend_from_slice(&data),
                Poll::Ready(Ok(None)) => return out,
                Poll::Pending => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn gunzip(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(data).read_to_end(&mut out).expect("it is gzip");
        out
    }

    fn unbrotli(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::Decompressor::new(data, 4096).read_to_end(&mut out).expect("it is brotli");
        out
    }

    #[test]
    fn what_comes_out_is_what_went_in() {
        let mut random = fastrand::Rng::with_seed(1);
        for size in [0, 1, 100, 300, 5000, 70_000, 600_000] {
            let noise: Vec<u8> = (0..size).map(|_| random.u8(..)).collect();
            for body in [vec![b'x'; size], noise] {
                for level in [1, 9] {
                    let same = gunzip(&drained(Coding::Gzip(level), &body)) == body;
                    assert!(same, "gzip {level} of {size}");
                }
                for level in [0, 4, 6, 9] {
                    let same = unbrotli(&drained(Coding::Brotli(level), &body)) == body;
                    assert!(same, "brotli {level} of {size}");
                }
            }
        }
        assert!(drained(Coding::Gzip(1), &[b'x'; 5000]).len() < 200);
        assert!(drained(Coding::Brotli(4), &[b'x'; 5000]).len() < 200);
    }

    #[test]
    fn the_ratio_has_two_decimals() {
        let ratio =
            |before, after| Squeezed { before: Cell::new(before), after: Cell::new(after) }.ratio();
        assert_eq!(ratio(1000, 300), Some((3, 33)));
        assert_eq!(ratio(1999, 1000), Some((2, 0)));
        assert_eq!(ratio(10, 0), None);
    }

    #[test]
    fn short_bodies_get_small_windows() {
        let windows = |coding: Coding| {
            let of = |length| coding.window(Length::Known(length));
            [of(200), of(5000), of(1 << 20), coding.window(Length::Unknown)]
        };
        assert_eq!(windows(Coding::Gzip(1)), [9, 13, 15, 15]);
        assert_eq!(windows(Coding::Brotli(4)), [10, 13, 19, 16]);
        assert_eq!(windows(Coding::Brotli(9)), [17, 17, 19, 17]);
        assert_eq!(windows(Coding::Brotli(11)), [10, 13, 16, 16]);
    }

    /// A body of unknown length that stops.
    #[derive(Debug)]
    struct Stops(Option<Bytes>);

    impl BodySource for Stops {
        fn length(&self) -> Length {
            Length::Unknown
        }

        fn poll_frame(
            &mut self,
            _: &mut Context<'_>,
        ) -> Poll<Result<Option<Frame>, crate::BodyError>> {
            self.0.take().map_or(Poll::Pending, |data| Poll::Ready(Ok(Some(Frame::Data(data)))))
        }
    }

    /// Bytes of memory that this process has written to.
    fn written_to() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").trim().parse().expect("a number");
        kibibytes << 10
    }

    /// Bytes that so many encoders take, each.
    fn measured(coding: Coding, many: usize) -> u64 {
        let mut random = fastrand::Rng::with_seed(1);
        let words: Vec<String> = (0..6000).map(|_| format!("word{} ", random.u16(..))).collect();
        let body = Bytes::from(words.concat());
        let before = written_to();
        let mut all = Vec::new();
        for _ in 0..many {
            let body = Body::from_source(Stops(Some(body.clone())));
            let mut one = Compressed::new(body, coding, Rc::default(), ());
            while one.poll_frame(&mut Context::from_waker(Waker::noop())).is_ready() {}
            all.push(one);
        }
        written_to().saturating_sub(before) / many as u64
    }

    #[test]
    fn an_encoder_takes_no_more_memory_than_it_is_counted_with() {
        // In a process of its own: what other tests take is not an encoder's.
        const ALONE: &str = "FAIRWAY_TEST_ALONE";
        const NAME: &str =
            "compress::tests::an_encoder_takes_no_more_memory_than_it_is_counted_with";
        if std::env::var_os(ALONE).is_none() {
            let this = std::env::current_exe().expect("a program");
            let mut alone = std::process::Command::new(this);
            let ended = alone.args(["--exact", NAME]).env(ALONE, "1").output().expect("it runs");
            let said = String::from_utf8_lossy(&ended.stdout);
            assert!(ended.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        for coding in [Coding::Gzip(9), Coding::Brotli(4), Coding::Brotli(5), Coding::Brotli(9)] {
            let (each, counted) = (measured(coding, 32), coding.memory(Length::Unknown));
            assert!(each <= counted, "{coding:?}: {each} bytes, counted with {counted}");
        }
    }

    #[test]
    fn a_place_is_given_back_with_the_encoder() {
        let place = Rc::new(());
        let body = Body::full(Bytes::from_static(b"body"));
        let mut whole = Compressed::new(body, Coding::Gzip(1), Rc::default(), place.clone());
        let stops = Body::from_source(Stops(None));
        let broken = Compressed::new(stops, Coding::Gzip(1), Rc::default(), place.clone());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(whole.poll_frame(&mut cx).is_ready());
        assert_eq!(Rc::strong_count(&place), 2, "it is at its end");
        drop(broken);
        assert_eq!(Rc::strong_count(&place), 1);
    }
}
