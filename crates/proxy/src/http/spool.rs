//! A body that was read whole: in memory up to a bound, the rest in a file without a name.

use super::{BodyError, Frame, Headers};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes read back from the file at once.
const READ: u64 = 64 << 10;

/// A body that was read whole. It can be sent several times.
#[derive(Debug, Default)]
pub struct Spool {
    memory: VecDeque<Bytes>,
    in_memory: u64,
    file: Option<Arc<File>>,
    in_file: u64,
    trailers: Option<Headers>,
    position: u64,
    piece: usize,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Spool {
    /// Takes a piece; what goes beyond `limit` bytes of memory goes into the file.
    pub async fn push(&mut self, data: Bytes, limit: usize) -> Result<(), BodyError> {
        if self.file.is_none() && self.in_memory + data.len() as u64 <= limit as u64 {
            self.in_memory += data.len() as u64;
            self.memory.push_back(data);
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(Arc::new(unnamed_file().map_err(storage)?)).clone(),
        };
        let (offset, length) = (self.in_file, data.len() as u64);
        let written = tokio::task::spawn_blocking(move || file.write_all_at(&data, offset)).await;
        written.map_err(|_| BodyError::Storage)?.map_err(storage)?;
        self.in_file += length;
        Ok(())
    }

    /// Takes the trailers.
    pub fn end(&mut self, trailers: Headers) {
        self.trailers = Some(trailers);
    }

    /// The same body once more, from its beginning.
    pub fn again(&self) -> Self {
        Self {
            memory: self.memory.clone(),
            in_memory: self.in_memory,
            file: self.file.clone(),
            in_file: self.in_file,
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

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame>, BodyError>> {
        if let Some(data) = self.memory.get(self.piece) {
            self.piece += 1;
            self.position += data.len() as u64;
            return Poll::Ready(Ok(Some(Frame::Data(data.clone()))));
        }
        let Some(file) = self.file.as_ref().filter(|_| self.position < self.size()) else {
            let trailers = self.trailers.take().filter(|trailers| !trailers.is_empty());
            return Poll::Ready(Ok(trailers.map(Frame::Trailers)));
        };
        let offset = self.position - self.in_memory;
        let count = READ.min(self.in_file - offset);
        let reading = self.reading.get_or_insert_with(|| {
            let file = file.clone();
            tokio::task::spawn_blocking(move || read_at(&file, offset, count))
        });
        let read = ready!(std::pin::Pin::new(reading).poll(cx));
        self.reading = None;
        let data = read.map_err(|_| BodyError::Storage)?.map_err(storage)?;
        self.position += data.len() as u64;
        Poll::Ready(Ok(Some(Frame::Data(data))))
    }
}

fn read_at(file: &File, offset: u64, count: u64) -> io::Result<Bytes> {
    let mut data = BytesMut::zeroed(usize::try_from(count).unwrap_or(0));
    file.read_exact_at(&mut data, offset)?;
    Ok(data.freeze())
}

/// A file in the directory for temporary files that has no name and goes away with its last handle.
fn unnamed_file() -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(file))
}

fn storage(error: io::Error) -> BodyError {
    let directory = std::env::temp_dir();
    tracing::error!(%error, directory = %directory.display(), "a request body could not be kept in a temporary file");
    BodyError::Storage
}
