//! The content of a page: all of it at once, or in pieces that are made as they are sent, beside the thread that
//! carries connections.

use crate::places::Answering;
use crate::turns::Turns;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::fmt;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

/// Contents that are compressed at a time; each takes about 300 KiB for it. Further ones are sent as they are.
const COMPRESSED: usize = 8;
static COMPRESSING: Semaphore = Semaphore::const_new(COMPRESSED);

/// Pieces that are made at a time, one for each address: probes and the loop that follows the cluster share a thread,
/// and traffic shares the processor.
const MADE: usize = 2;
static MAKING: LazyLock<Arc<Turns>> = LazyLock::new(|| Turns::new(MADE));

/// The content of a page.
pub struct Content {
    form: Form,
    /// Who takes it.
    peer: IpAddr,
    /// Held until all of it is on its way.
    answering: Option<Answering>,
}

enum Form {
    Whole(Bytes),
    /// Each piece is asked for when the one before it is on its way.
    Pieces(Pieces),
    /// The next one is being made.
    Making(Making),
    /// They come when they come; the end is the end of the sender.
    Stream(mpsc::Receiver<Bytes>),
}

type Pieces = Box<dyn Iterator<Item = Bytes> + Send>;
type Making = Pin<Box<dyn Future<Output = (Pieces, Option<Bytes>)> + Send>>;

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
        Self { form, peer: Ipv4Addr::UNSPECIFIED.into(), answering: None }
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

    /// The same for somebody, which holds this until all of it is on its way.
    pub(crate) fn answering(self, peer: IpAddr, answering: Answering) -> Self {
        Self { peer, answering: Some(answering), ..self }
    }
}

/// Makes the next piece, when it is its reader's turn: whoever asks for long pages in a loop, over however many
/// connections, has one piece made between those of others, and who does not read has none.
async fn make(mut pieces: Pieces, peer: IpAddr) -> (Pieces, Option<Bytes>) {
    let turn = MAKING.turn(peer).await;
    let making = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let piece = pieces.next();
        (pieces, piece)
    });
    match making.await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(made) => made,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The process ends.
        Err(Err(_)) => std::future::pending().await,
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
            Form::Pieces(_) | Form::Making(_) => f.write_str("Pieces"),
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
        let Self { form, peer, .. } = &mut *self;
        let next = loop {
            match form {
                Form::Whole(bytes) => {
                    break Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty());
                }
                Form::Stream(pieces) => break ready!(pieces.poll_recv(context)),
                Form::Pieces(pieces) => {
                    let pieces = std::mem::replace(pieces, Box::new(std::iter::empty()));
                    *form = Form::Making(Box::pin(make(pieces, *peer)));
                }
                Form::Making(making) => {
                    let (pieces, piece) = ready!(making.as_mut().poll(context));
                    *form = Form::Pieces(pieces);
                    // Compressed ones become nothing at first.
                    if piece.as_ref().is_none_or(|piece| !piece.is_empty()) {
                        break piece;
                    }
                }
            }
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
            Form::Pieces(_) | Form::Making(_) | Form::Stream(_) => SizeHint::default(),
        }
    }
}
