//! A body that was read whole: in memory up to a bound as long as there is some to lend, or a little further; of what
//! is larger, the beginning in a file without a name.

use super::scratch::{NotKept, Scrap};
use super::{BodyError, Frame, Headers, Loan, Scratch, turn};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use shares::Lines;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::task::JoinHandle;

/// Bytes read back from the file at once.
const READ: u64 = 64 << 10;
/// Bytes in memory that every body may have without asking; so many at least are gathered before they are written to a
/// file, by a thread that may take the core from that of traffic.
const OWN: usize = 16 << 10;
/// Bytes that a body may gather while there is plenty of memory to lend: threads hand over to one another for each
/// write, and again for its end, which costs as much as moving those bytes.
const PLENTY: u64 = 256 << 10;
/// Smaller pieces are copied behind one another: each would keep the whole buffer that it came in.
const SMALL: usize = 4 << 10;

/// A body that was read whole. It can be sent several times.
#[derive(Debug, Default)]
pub struct Spool {
    /// How the body begins, if it did not fit into memory.
    file: Option<Arc<Scrap>>,
    in_file: u64,
    /// Memory that it has beyond that.
    loan: Option<Arc<Loan>>,
    /// What comes after that.
    memory: VecDeque<Bytes>,
    /// Small pieces at its end.
    loose: BytesMut,
    in_memory: u64,
    trailers: Option<Headers>,
    position: u64,
    piece: usize,
    /// What was read last: whoever got it is mostly done with it when the next piece is wanted, which takes its place.
    last: Bytes,
    /// What a thread reads from the disk itself.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Spool {
    /// Takes a piece. When more than `limit` bytes are in memory, or than can be lent, they go into a file of the
    /// namespace `owner`.
    pub async fn push(
        &mut self,
        data: Bytes,
        limit: usize,
        scratch: &Scratch,
        owner: &Arc<str>,
    ) -> Result<(), BodyError> {
        self.in_memory += data.len() as u64;
        // One that is alone may be all there is: it is copied once another one comes.
        let is_first = self.memory.is_empty() && self.loose.is_empty();
        if data.len() >= SMALL || is_first {
            self.tie_up();
            self.memory.push_back(data);
        } else {
            if self.loose.is_empty()
                && let Some(before) = self.memory.pop_back_if(|before| before.len() < SMALL)
            {
                self.loose.extend_from_slice(&before);
            }
            self.loose.extend_from_slice(&data);
        }
        let most = if self.file.is_some() { OWN } else { limit.min(OWN) };
        if self.in_memory <= most as u64 || self.borrows(limit, scratch, owner) {
            return Ok(());
        }
        self.write(scratch, owner).await
    }

    /// Whether it may stay in memory all the same: a file costs far more than a small body does, and many writes more
    /// than a few.
    fn borrows(&mut self, limit: usize, scratch: &Scratch, owner: &Arc<str>) -> bool {
        let limit = if self.file.is_some() { 0 } else { limit as u64 };
        if self.in_memory > PLENTY.max(limit) {
            return false;
        }
        let loan = self.loan.get_or_insert_with(|| Arc::new(scratch.lend(owner)));
        let beyond_plenty = self.in_memory > Loan::STEP.max(limit) && !loan.is_of_plenty();
        !beyond_plenty && loan.is_enough(self.in_memory)
    }

    /// Writes what is in memory to the file.
    async fn write(&mut self, scratch: &Scratch, owner: &Arc<str>) -> Result<(), BodyError> {
        self.tie_up();
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(Arc::new(scratch.file(owner))).clone(),
        };
        let pieces = Vec::from(std::mem::take(&mut self.memory));
        let written = tokio::task::spawn_blocking(move || file.append(&pieces)).await;
        written.map_err(|_| BodyError::Storage)?.map_err(error)?;
        self.in_file += std::mem::take(&mut self.in_memory);
        self.loan = None;
        Ok(())
    }

    fn tie_up(&mut self) {
        if !self.loose.is_empty() {
            self.memory.push_back(self.loose.split().freeze());
        }
    }

    /// The body is over, with these trailers.
    pub fn end(&mut self, trailers: Option<Headers>) {
        self.tie_up();
        self.loose = BytesMut::new();
        self.trailers = trailers;
    }

    /// The same body once more, from its beginning.
    pub fn again(&self) -> Self {
        Self {
            file: self.file.clone(),
            in_file: self.in_file,
            loan: self.loan.clone(),
            memory: self.memory.clone(),
            in_memory: self.in_memory,
            trailers: self.trailers.clone(),
            ..Self::default()
        }
    }

    /// Bytes in all.
    pub fn size(&self) -> u64 {
        self.in_memory + self.in_file
    }

    /// Bytes that were not given out yet.
    pub fn remaining(&self) -> u64 {
        self.size() - self.position
    }

    /// Whether nothing is to come, trailers neither.
    pub(super) fn is_over(&self) -> bool {
        self.remaining() == 0 && self.trailers.is_none()
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame>, BodyError>> {
        if let Some(file) = self.file.as_ref().filter(|_| self.position < self.in_file) {
            let file = file.clone();
            let data = ready!(self.poll_file(&file, cx))?;
            turn::moved(data.len());
            self.position += data.len() as u64;
            if self.position < self.in_file {
                self.last = data.clone();
            }
            return Poll::Ready(Ok(Some(Frame::Data(data))));
        }
        if let Some(data) = self.memory.get(self.piece) {
            self.piece += 1;
            self.position += data.len() as u64;
            return Poll::Ready(Ok(Some(Frame::Data(data.clone()))));
        }
        let trailers = self.trailers.take().filter(|trailers| !trailers.is_empty());
        Poll::Ready(Ok(trailers.map(Frame::Trailers)))
    }

    /// The next bytes of the file. What was just written is still in memory of the system, and is read at once; only
    /// what has to come from a disk is waited for.
    fn poll_file(
        &mut self,
        file: &Arc<Scrap>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, BodyError>> {
        // What is given out goes to an upstream at once.
        if self.reading.as_ref().is_none_or(JoinHandle::is_finished) {
            ready!(turn::poll_room(cx));
        }
        if self.reading.is_none() {
            let count = READ.min(self.in_file - self.position);
            let mut room = std::mem::take(&mut self.last).try_into_mut().unwrap_or_default();
            room.resize(usize::try_from(count).unwrap_or(0), 0);
            let read = file.read_at_hand(&mut room, self.position);
            if read > 0 {
                room.truncate(read);
                return Poll::Ready(Ok(room.freeze()));
            }
            let (file, offset) = (file.clone(), self.position);
            let read = tokio::task::spawn_blocking(move || read_at(&file, offset, room));
            self.reading = Some(read);
        }
        let Some(reading) = &mut self.reading else { return Poll::Pending };
        let read = ready!(std::pin::Pin::new(reading).poll(cx));
        self.reading = None;
        let data = read.map_err(|_| BodyError::Storage)?;
        Poll::Ready(data.map_err(|failed| error(NotKept::Refused(failed))))
    }
}

fn read_at(file: &Scrap, offset: u64, mut room: BytesMut) -> io::Result<Bytes> {
    file.read_exact_at(&mut room, offset)?;
    Ok(room.freeze())
}

/// A folder that is full fails all large bodies, whoever's they are.
static TOLD: LazyLock<Mutex<Lines>> = LazyLock::new(|| Mutex::new(Lines::new(Instant::now())));

fn error(reason: NotKept) -> BodyError {
    match reason {
        NotKept::Full => BodyError::NoRoom,
        NotKept::Refused(error) => {
            let told = || TOLD.lock();
            let line = told().line(Instant::now(), 1);
            if let Some(line) = line {
                let folder = crate::scratch::folder();
                tracing::error!(
                    %error, directory = %folder.display(), before = line.left_out,
                    "a request body could not be kept in a temporary file: make room there (told once a minute; before: how \
                     many were not)"
                );
            }
            BodyError::Storage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Spool;
    use crate::{Body, BodyError, Frame, Scratch};
    use bytes::Bytes;
    use std::sync::Arc;

    #[tokio::test]
    async fn single_bytes_are_written_and_read_back_in_large_pieces() {
        let (scratch, owner): (_, Arc<str>) = (Scratch::default(), "demo".into());
        let (mut spool, mut writes) = (Spool::default(), 0);
        let whole: Vec<u8> = (0..600_000).map(|at| (at % 251) as u8).collect();
        for at in 0..whole.len() {
            let before = spool.in_file;
            let byte = Bytes::copy_from_slice(&whole[at..=at]);
            spool.push(byte, 8 << 10, &scratch, &owner).await.expect("kept");
            writes += usize::from(spool.in_file > before);
        }
        spool.end(None);
        assert!((2..=1 + whole.len() / super::OWN).contains(&writes), "{writes} writes");
        for _ in 0..2 {
            let (mut body, mut read, mut frames) = (Body::spool(spool.again()), Vec::new(), 0);
            while let Some(Frame::Data(data)) = body.frame().await.expect("read") {
                read.extend_from_slice(&data);
                frames += 1;
            }
            assert!(read == whole && frames <= 12, "{frames} frames");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_a_little_too_large_stays_in_memory_while_there_is_some_to_lend() {
        let (scratch, owner): (_, Arc<str>) = (Scratch::default(), "demo".into());
        let mut spool = Spool::default();
        let mut push = async |size| {
            spool.push(Bytes::from(vec![7; size]), 8 << 10, &scratch, &owner).await.expect("kept");
            (spool.file.is_some(), spool.loan.is_some())
        };
        assert_eq!(push(8 << 10).await, (false, false));
        assert_eq!(push(8 << 10).await, (false, true));
        assert_eq!(push(240 << 10).await, (false, true));
        assert_eq!(push(1).await, (true, false));
        let lend = || Some(scratch.lend(&owner)).filter(|loan| loan.is_enough(1));
        let lent: Vec<_> = std::iter::from_fn(lend).collect();
        let mut late = Spool::default();
        let pushed = late.push(Bytes::from(vec![7; 16 << 10]), 8 << 10, &scratch, &owner).await;
        assert!(pushed.is_ok() && late.file.is_some(), "all is lent: {}", lent.len());
    }

    #[tokio::test]
    async fn a_large_body_is_written_in_few_pieces_while_there_is_memory_to_lend() {
        let (scratch, owner): (_, Arc<str>) = (Scratch::default(), "demo".into());
        let writes = async || {
            let (mut spool, mut writes) = (Spool::default(), 0);
            for _ in 0..128 {
                let before = spool.in_file;
                let piece = Bytes::from(vec![7; 8 << 10]);
                spool.push(piece, 8 << 10, &scratch, &owner).await.expect("kept");
                writes += usize::from(spool.in_file > before);
            }
            assert_eq!(spool.size(), 1 << 20);
            writes
        };
        assert!(writes().await <= 4);
        assert_eq!(scratch.memory().0, 0, "what is lent for a piece is given back with it");
        let lend = || Some(scratch.lend(&owner)).filter(|loan| loan.is_enough(1));
        let lent: Vec<_> = std::iter::from_fn(lend).collect();
        assert!(writes().await > 16, "all is lent: {}", lent.len());
    }

    #[tokio::test]
    async fn a_large_buffer_is_kept_to_as_long_as_there_is_memory_to_lend() {
        let (scratch, owner): (_, Arc<str>) = (Scratch::default(), "demo".into());
        let mut in_memory = 0;
        let mut bodies = Vec::new();
        for _ in 0..8 {
            let mut spool = Spool::default();
            for _ in 0..64 {
                let piece = Bytes::from(vec![7; 64 << 10]);
                spool.push(piece, 4000 << 20, &scratch, &owner).await.expect("kept");
            }
            assert_eq!(spool.size(), 4 << 20);
            in_memory += spool.in_memory;
            bodies.push(spool);
        }
        assert!(bodies[0].file.is_none(), "the first one has the buffer that it asks for");
        assert!(in_memory <= 8 << 20, "half of all for a namespace: {in_memory}");
    }

    #[tokio::test]
    async fn what_has_no_room_is_said_so() {
        let (scratch, owner): (_, Arc<str>) = (Scratch::default(), "demo".into());
        scratch.bound(1 << 20);
        let mut spool = Spool::default();
        let mut push =
            async || spool.push(Bytes::from(vec![0; 300 << 10]), 8 << 10, &scratch, &owner).await;
        assert_eq!(push().await, Ok(()));
        assert_eq!(push().await, Err(BodyError::NoRoom));
    }
}
