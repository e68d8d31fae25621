//! Room for bodies that are too large for memory: files without names in the folder for temporary files, bounded for
//! the process and for each namespace.

use super::{Loan, Room};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Bytes of all files together, where nothing else is said.
const TOTAL: u64 = 1 << 30;
/// The same in memory, where nothing can be written: enough for a little, and no danger to the rest of the process.
const IN_MEMORY: u64 = 32 << 20;

/// Bytes lent at the same time, whatever buffers annotations and snippets ask for: enough for a file to be the
/// exception, and no danger to the rest of the process.
const LENT: u64 = 16 << 20;

/// Where bodies are kept that are too large for memory.
#[derive(Debug)]
pub struct Scratch {
    place: Arc<Place>,
    /// Of files.
    room: Room,
    /// How many of them there may be: each is a descriptor that others need.
    number: Room,
    /// Of what bodies keep in memory beyond what every body may have.
    lent: Room,
}

#[derive(Debug)]
enum Place {
    Folder(PathBuf),
    /// Nothing can be written; this is why.
    Memory(String),
}

/// Why bytes were not kept.
#[derive(Debug)]
pub(super) enum NotKept {
    /// The namespace, or all of them together, has as much as it may.
    Full,
    /// The system refuses.
    Refused(io::Error),
}

/// Names the folder. The system takes TMPDIR away from a program that has a capability of its file, as that of the
/// image has for low ports.
const VARIABLE: &str = "FAIRWAY_TMPDIR";

/// The folder for temporary files.
pub(super) fn folder() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
    named.map_or_else(std::env::temp_dir, PathBuf::from)
}

impl Scratch {
    /// The folder for temporary files, which is tried once. Where nothing can be written there, it is memory.
    pub fn in_folder(folder: PathBuf) -> Self {
        let place = match unnamed_file(&folder).and_then(|file| file.write_all_at(b"tried", 0)) {
            Ok(()) => Place::Folder(folder),
            Err(error) => Place::Memory(format!(
                "request bodies that are larger than client-body-buffer-size cannot be kept in {}: {error}; \
                 mount a folder that can be written there (in a Pod an emptyDir), or let {VARIABLE} name one",
                folder.display()
            )),
        };
        let total = match place {
            Place::Folder(_) => TOTAL,
            Place::Memory(_) => IN_MEMORY,
        };
        // Of each a namespace may have half, and no more than is left: clients may hold what they have for days.
        let room = |most| Room::leaving_some(most, 2);
        let (number, lent) = (room(u64::MAX), room(LENT));
        Self { place: Arc::new(place), room: room(total), number, lent }
    }

    /// What is wrong with the folder, if nothing can be written there.
    pub fn trouble(&self) -> Option<&str> {
        match &*self.place {
            Place::Folder(_) => None,
            Place::Memory(why) => Some(why),
        }
    }

    /// Lets all files together hold so many bytes, and those of one namespace half of that, and as much as is left.
    pub fn bound(&self, total: u64) {
        if matches!(*self.place, Place::Folder(_)) {
            self.room.set(total);
        }
    }

    /// Lets there be so many files, and half of them for one namespace.
    pub fn bound_number(&self, most: u64) {
        self.number.set(most);
    }

    /// Bytes of all files, how many there may be, and how often there was no room: for one namespace or for all.
    pub fn files(&self) -> (u64, u64, u64) {
        self.room.now()
    }

    /// The same of the memory that bodies are lent.
    pub fn memory(&self) -> (u64, u64, u64) {
        self.lent.now()
    }

    /// An empty file for a body of this namespace.
    pub(super) fn file(&self, namespace: &Arc<str>) -> Scrap {
        let (place, loan) = (self.place.clone(), self.room.lend(namespace));
        Scrap { place, file: OnceLock::new(), loan, number: self.number.lend(namespace) }
    }

    /// Memory for a body of this namespace, beyond what every body may have; nothing as yet.
    pub(super) fn lend(&self, namespace: &Arc<str>) -> Loan {
        self.lent.lend(namespace)
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::in_folder(folder())
    }
}

/// A file without a name. It is made with its first bytes and goes away with its last handle, neither on the thread
/// that has the connection, and its bytes may be used by others then.
#[derive(Debug)]
pub(super) struct Scrap {
    place: Arc<Place>,
    /// There once something was written.
    file: OnceLock<File>,
    loan: Loan,
    number: Loan,
}

impl Scrap {
    /// Appends pieces; blocks. One writes at a time.
    pub(super) fn append(&self, pieces: &[bytes::Bytes]) -> Result<(), NotKept> {
        let written = self.write(pieces);
        if matches!(written, Err(NotKept::Refused(_))) {
            self.loan.refuse();
        }
        written
    }

    fn write(&self, pieces: &[bytes::Bytes]) -> Result<(), NotKept> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                self.number.grow(1).ok_or(NotKept::Full)?;
                let file = self.place.file().map_err(NotKept::Refused)?;
                self.file.get_or_init(|| file)
            }
        };
        let count = pieces.iter().map(|piece| piece.len() as u64).sum();
        let mut at = self.loan.grow(count).ok_or(NotKept::Full)?;
        for piece in pieces {
            file.write_all_at(piece, at).map_err(NotKept::Refused)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Fills `data` from this place on as far as the system has it in memory, and never waits; how far that is.
    pub(super) fn read_at_hand(&self, data: &mut [u8], offset: u64) -> usize {
        let Some(file) = self.file.get() else { return 0 };
        let mut room = [IoSliceMut::new(data)];
        // Some file systems know no such reading: whoever wants the bytes waits for them then.
        rustix::io::preadv2(file, &mut room, offset, ReadWriteFlags::NOWAIT).unwrap_or(0)
    }

    /// Fills `data` from this place on.
    pub(super) fn read_exact_at(&self, data: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.file.get().ok_or(io::ErrorKind::UnexpectedEof)?;
        file.read_exact_at(data, offset)
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        // The system gives all of its pages back at once: of a mebibyte that takes as long as moving hundreds of
        // kibibytes.
        let here = tokio::runtime::Handle::try_current();
        if let (Some(file), Ok(here)) = (self.file.take(), here) {
            here.spawn_blocking(move || drop(file));
        }
    }
}

impl Place {
    fn file(&self) -> io::Result<File> {
        match self {
            Self::Folder(folder) => unnamed_file(folder),
            Self::Memory(_) => {
                Ok(File::from(rustix::fs::memfd_create("body", MemfdFlags::CLOEXEC)?))
            }
        }
    }
}

/// A file that nobody else finds. Where the file system knows none without a name (overlayfs before Linux 6.1, NFS), it
/// loses its name at once.
fn unnamed_file(folder: &std::path::Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(folder, flags | OFlags::TMPFILE, mode) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            let name = format!(".fairway-body-{:016x}", fastrand::u64(..));
            let path = folder.join(name);
            let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
            rustix::fs::unlink(&path)?;
            Ok(File::from(file))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{NotKept, Scratch};
    use bytes::Bytes;
    use std::path::PathBuf;

    #[test]
    fn a_namespace_has_half_of_the_room_and_no_more_than_is_left_for_others() {
        let scratch = Scratch::default();
        scratch.bound(100);
        let piece = [Bytes::from_static(&[0; 10])];
        let fill =
            |file: &super::Scrap| (0..10).take_while(|_| file.append(&piece).is_ok()).count();
        let files = ["a", "b", "c"].map(|namespace| scratch.file(&namespace.into()));
        assert_eq!(files.each_ref().map(fill), [5, 2, 1]);
        let [first, ..] = &files;
        assert!(matches!(first.append(&piece), Err(NotKept::Full)));
        drop(files);
        assert_eq!((scratch.files().0, fill(&scratch.file(&"b".into()))), (0, 5));
    }

    #[test]
    fn so_it_is_of_the_files_however_small_they_are() {
        let scratch = Scratch::default();
        scratch.bound_number(16);
        let piece = [Bytes::from_static(b"1")];
        let fill = |namespace: &str| -> Vec<_> {
            let files = (0..16).map(|_| scratch.file(&namespace.into()));
            files.take_while(|file| file.append(&piece).is_ok()).collect()
        };
        let files = ["a", "b", "c"].map(fill);
        assert_eq!(files.each_ref().map(Vec::len), [8, 4, 2]);
        assert!(files[0][0].append(&piece).is_ok(), "a file that is there grows");
        drop(files);
        assert!(scratch.file(&"a".into()).append(&piece).is_ok());
    }

    #[test]
    fn where_nothing_can_be_written_it_is_memory_within_a_bound() {
        let scratch = Scratch::in_folder(PathBuf::from("/proc"));
        let trouble = scratch.trouble().expect("nothing can be written to /proc");
        assert!(trouble.contains("cannot be kept in /proc: ") && trouble.contains("emptyDir"));
        let file = scratch.file(&"a".into());
        let large = [Bytes::from(vec![7; 1 << 20])];
        let kept = (0..64).take_while(|_| file.append(&large).is_ok()).count();
        assert_eq!(kept, 16);
        let mut read = [0; 2];
        file.read_exact_at(&mut read, 1 << 20).expect("read");
        assert_eq!(read, [7, 7]);
    }

    #[test]
    fn what_the_system_does_not_keep_is_counted() {
        let scratch = Scratch::default();
        let file = scratch.file(&"a".into());
        // As much as a disk has that is full.
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("there is one");
        file.file.set(full).expect("nothing was written");
        let kept = file.append(&[Bytes::from_static(b"lost")]);
        assert!(matches!(kept, Err(NotKept::Refused(_))));
        assert_eq!(scratch.files().2, 1);
    }
}
