//! How much of its memory and of its file descriptors the process uses.

use crate::limits::cgroup::{self, MOUNT, UNBOUNDED, groups_in, number};
use std::fs;
use std::path::{Path, PathBuf};

/// Memory with a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// What the process has written to counts against a bound of its own.
    Own(u64),
    /// What control groups charge, each against its bound.
    Groups(Vec<Group>),
}

/// A control group with a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    folder: PathBuf,
    files: &'static Files,
}

/// The files of a version of control groups.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    bound: &'static str,
    usage: &'static str,
    /// The line in `memory.stat` of what can be had back at any time: pages of files that nobody used lately.
    spare: &'static str,
}

const VERSION_1: Files = Files {
    bound: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    spare: "total_inactive_file",
};
const VERSION_2: Files =
    Files { bound: "memory.max", usage: "memory.current", spare: "inactive_file" };

impl Memory {
    /// So many bytes for the process itself.
    pub fn own(bytes: u64) -> Self {
        Self::Own(bytes.max(1))
    }

    /// The control groups of this process; none if they have no bound.
    pub fn of_control_group() -> Option<Self> {
        Self::read(Path::new(MOUNT), &cgroup::of_this_process())
    }

    /// As above, below `mount`, for the text of /proc/<pid>/cgroup.
    fn read(mount: &Path, text: &str) -> Option<Self> {
        let mut groups = Vec::new();
        for (controllers, folders) in groups_in(mount, text) {
            let files = match controllers {
                "" => &VERSION_2,
                _ if controllers.split(',').any(|name| name == "memory") => &VERSION_1,
                _ => continue,
            };
            groups.extend(folders.map(|folder| Group { folder, files }));
        }
        groups.retain(|group| group.bound().is_some());
        (!groups.is_empty()).then_some(Self::Groups(groups))
    }

    /// How many bytes there may be; the fewest where several groups have a bound.
    pub fn bound(&self) -> Option<u64> {
        match self {
            Self::Own(bound) => Some(*bound),
            Self::Groups(groups) => groups.iter().filter_map(Group::bound).min(),
        }
    }

    /// The share that is used; the largest one where several groups have a bound.
    pub fn used(&self) -> Option<f64> {
        match self {
            Self::Own(bound) => Some(own_memory()? as f64 / *bound as f64),
            Self::Groups(groups) => groups.iter().filter_map(Group::used).reduce(f64::max),
        }
    }
}

impl Group {
    fn bound(&self) -> Option<u64> {
        number(&self.folder.join(self.files.bound)).filter(|bound| (1..UNBOUNDED).contains(bound))
    }

    fn used(&self) -> Option<f64> {
        let usage = number(&self.folder.join(self.files.usage))?;
        let stat = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let spare =
            stat.lines().find_map(|line| line.strip_prefix(self.files.spare)?.strip_prefix(' '));
        let spare = spare.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
        Some(usage.saturating_sub(spare) as f64 / self.bound()? as f64)
    }
}

/// Bytes of memory that hold what this process has written.
fn own_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// File descriptors with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    bound: u64,
}

impl Descriptors {
    /// So many at most.
    pub fn new(bound: u64) -> Self {
        Self { bound: bound.max(1) }
    }

    /// The share that is used.
    pub fn used(&self) -> Option<f64> {
        // Since Linux 6.2 the size of the folder is their number; before, they have to be counted.
        let size = fs::metadata("/proc/self/fd").ok()?.len();
        let count = match size {
            0 => fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            size => size,
        };
        Some(count as f64 / self.bound as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::{Descriptors, Memory};
    use std::fs;
    use tempfile::TempDir;

    fn used(files: &[(&str, &str)], groups: &str) -> Option<f64> {
        let mount = TempDir::new().expect("a temporary folder");
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().expect("a file has a folder")).expect("ours");
            fs::write(path, text).expect("the folder is ours");
        }
        Memory::read(mount.path(), groups)?.used()
    }

    #[test]
    fn pages_of_files_that_nobody_uses_do_not_count() {
        let files = [
            ("memory.max", "1000\n"),
            ("memory.current", "900\n"),
            ("memory.stat", "anon 100\ninactive_file 400\nactive_file 5\n"),
        ];
        assert_eq!(used(&files, "0::/\n"), Some(0.5));
        assert_eq!(used(&files, "0::/../pod/container\n"), Some(0.5));
        let files = [
            ("memory/pod/memory.limit_in_bytes", "1000"),
            ("memory/pod/memory.usage_in_bytes", "900"),
            ("memory/pod/memory.stat", "inactive_file 1\ntotal_inactive_file 300"),
        ];
        assert_eq!(used(&files, "4:memory:/pod\n1:name=systemd:/pod\n"), Some(0.6));
    }

    #[test]
    fn the_group_that_is_fullest_decides_and_one_without_bound_does_not_count() {
        let files = [
            ("a/memory.max", "100"),
            ("a/memory.current", "90"),
            ("a/b/memory.max", "1000"),
            ("a/b/memory.current", "90"),
            ("a/b/c/memory.max", "max"),
            ("a/b/c/memory.current", "90"),
        ];
        assert_eq!(used(&files, "0::/a/b/c\n"), Some(0.9));
        assert_eq!(used(&files[4..], "0::/a/b/c\n"), None);
        assert_eq!(
            used(&[("memory/memory.limit_in_bytes", "9223372036854771712")], "1:memory:/\n"),
            None
        );
    }

    #[test]
    fn this_process_uses_something() {
        assert_eq!(Memory::own(7).bound(), Some(7));
        let own = Memory::own(1 << 40).used().expect("Linux tells");
        assert!(own > 0.0 && own < 0.5, "{own}");
        let before = Descriptors::new(1000).used().expect("Linux tells");
        let held: Vec<_> =
            (0..20).map(|_| fs::File::open("/dev/null").expect("it opens")).collect();
        let after = Descriptors::new(1000).used().expect("Linux tells");
        assert!(after >= before + 0.015, "{before} {after} with {} more", held.len());
    }
}
