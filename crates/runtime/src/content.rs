//! The content of a page: all of it at once, or in pieces that are made as they are sent.

use crate::places::Answering;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::fmt;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

/// Contents that are compressed at a time; each takes about 300 KiB for it. Further ones are sent as they are.
const COMPRESSED: usize = 8;
static COMPRESSING: Semaphore = Semaphore::const_new(COMPRESSED);

/// The content of a page.
pub struct Content {
    form: Form,
    /// Others have had their turn since the last piece.
    rested: bool,
    /// Held until all of it is on its way.
    answering: Option<Answering>,
}

enum Form {
    Whole(Bytes),
    /// Each piece is asked for when the one before it is on its way.
    Pieces(Pieces),
    /// They come when they come; the end is the end of the sender.
    Stream(mpsc::Receiver<Bytes>),
}

type Pieces = Box<dyn Iterator<Item = Bytes> + Send>;

impl Content {
    /// Content in pieces, for what is too long to be held at once.
    pub fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Form::Pieces(Box::new(pieces)))
    }

    /// Content that comes as it is made elsewhere.
    pub fn stream(pieces: mpsc::Receiver<Bytes>) -> Self {
        Self::of(Form::Stream(pieces))
    }

    fn of(form: Form) -> Self {
        Self { form, rested: false, answering: None }
    }

    /// Compresses what comes in pieces; false if it stays as it is.
    pub(crate) fn gzip(&mut self) -> bool {
        let Form::Pieces(pieces) = &mut self.form else { return false };
        let Ok(turn) = COMPRESSING.try_acquire() else { return false };
        let pieces = std::mem::replace(pieces, Box::new(std::iter::empty()));
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        self.form = Form::Pieces(Box::new(Gzip { pieces, encoder, _turn: turn }));
        true
    }

    /// The same, which holds this until all of it is on its way.
    pub(crate) fn holding(self, answering: Answering) -> Self {
        Self { answering: Some(answering), ..self }
    }
}

/// Pieces that are compressed one by one; some of them become nothing at first.
struct Gzip {
    pieces: Pieces,
    encoder: Option<GzEncoder<Vec<u8>>>,
    _turn: SemaphorePermit<'static>,
}

impl Iterator for Gzip {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let encoder = self.encoder.as_mut()?;
        match self.pieces.next() {
            Some(piece) => {
                encoder.write_all(&piece).expect("a Vec takes all");
                Some(std::mem::take(encoder.get_mut()).into())
            }
            None => Some(self.encoder.take()?.finish().expect("a Vec takes all").into()),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Content {
    fn from(whole: T) -> Self {
        Self::of(Form::Whole(whole.into()))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Whole(bytes) => f.debug_tuple("Whole").field(&bytes.len()).finish(),
            Form::Pieces(_) => f.write_str("Pieces"),
            Form::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self { form, rested, .. } = &mut *self;
        let next = match form {
            Form::Whole(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Form::Stream(pieces) => match pieces.poll_recv(context) {
                Poll::Ready(next) => next,
                Poll::Pending => return Poll::Pending,
            },
            // Whoever takes a long page fast keeps nobody waiting: between two pieces others have their turn.
            Form::Pieces(pieces) => match rested.then(|| pieces.next()) {
                Some(next) if next.as_ref().is_none_or(|piece| !piece.is_empty()) => {
                    *rested = false;
                    next
                }
                _ => {
                    *rested = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            },
        };
        if next.is_none() {
            self.answering = None;
        }
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.form, Form::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.form {
            Form::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Form::Pieces(_) | Form::Stream(_) => SizeHint::default(),
        }
    }
}
