//! The quotas of a control group, version 2 or 1.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";
/// Version 1 writes no bound as a number near the largest one.
pub(crate) const UNBOUNDED: u64 = 1 << 60;

/// What the control groups of a process grant; none is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cgroup {
    /// Processors, in parts: 1.5 is one and a half.
    pub processors: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

impl Cgroup {
    /// The quotas of this process; no bounds where they cannot be read.
    pub fn of_this_process() -> Self {
        Self::read(Path::new(MOUNT), &of_this_process())
    }

    /// The quotas below `mount` for `groups`, the text of /proc/<pid>/cgroup.
    fn read(mount: &Path, groups: &str) -> Self {
        let mut quotas = Self::default();
        for (controllers, folders) in groups_in(mount, groups) {
            let has = |name| controllers.split(',').any(|controller| controller == name);
            for folder in folders {
                if has("cpu") {
                    quotas.bound_processors(processors_v1(&folder));
                }
                if has("memory") {
                    quotas.bound_memory(number(&folder.join("memory.limit_in_bytes")));
                }
                if controllers.is_empty() {
                    quotas.bound_processors(processors_v2(&folder));
                    quotas.bound_memory(number(&folder.join("memory.max")));
                }
            }
        }
        quotas
    }

    fn bound_processors(&mut self, quota: Option<f64>) {
        self.processors = self.processors.into_iter().chain(quota).reduce(f64::min);
    }

    fn bound_memory(&mut self, bytes: Option<u64>) {
        let bound = bytes.filter(|bytes| *bytes < UNBOUNDED);
        self.memory = self.memory.into_iter().chain(bound).min();
    }
}

/// The text of /proc/<pid>/cgroup of this process.
pub(crate) fn of_this_process() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// From such a text, lines of `id:controllers:path`: the controllers of each group, none in version 2, with the folders
/// of the group and of all groups around it: each may set a bound. In a container the path is often that of the host
/// and does not exist; the last folder, the mount itself, then is the container's own group.
pub(crate) fn groups_in<'a>(
    mount: &'a Path,
    text: &'a str,
) -> impl Iterator<Item = (&'a str, impl Iterator<Item = PathBuf>)> {
    text.lines().filter_map(move |line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let base = mount.join(controllers);
        let path = Path::new(path.trim_start_matches('/'));
        Some((controllers, path.ancestors().map(move |part| base.join(part))))
    })
}

/// `<quota> <period>` in microseconds, or `max <period>`.
fn processors_v2(folder: &Path) -> Option<f64> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

/// The quota is -1 where there is none, which is no number here.
fn processors_v1(folder: &Path) -> Option<f64> {
    ratio(number(&folder.join("cpu.cfs_quota_us"))?, number(&folder.join("cpu.cfs_period_us"))?)
}

fn ratio(quota: u64, period: u64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// The number in a file.
pub(crate) fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Cgroup;
    use std::fs;
    use tempfile::TempDir;

    fn mount(files: &[(&str, &str)]) -> TempDir {
        let mount = TempDir::new().expect("a temporary folder");
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().expect("a file has a folder"))
                .expect("the folder is ours");
            fs::write(path, text).expect("the folder is ours");
        }
        mount
    }

    fn quotas(files: &[(&str, &str)], groups: &str) -> (Option<f64>, Option<u64>) {
        let Cgroup { processors, memory } = Cgroup::read(mount(files).path(), groups);
        (processors, memory)
    }

    #[test]
    fn version_2_of_a_container() {
        let files = [("cpu.max", "150000 100000\n"), ("memory.max", "134217728\n")];
        assert_eq!(quotas(&files, "0::/\n"), (Some(1.5), Some(128 << 20)));
        assert_eq!(quotas(&files, "0::/../pod/container\n"), (Some(1.5), Some(128 << 20)));
    }

    #[test]
    fn the_tightest_group_around_decides() {
        let files = [
            ("pods/cpu.max", "50000 100000"),
            ("pods/one/cpu.max", "200000 100000"),
            ("pods/memory.max", "1000"),
            ("pods/one/memory.max", "max"),
        ];
        assert_eq!(quotas(&files, "0::/pods/one\n"), (Some(0.5), Some(1000)));
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let files = [
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1"),
            ("cpu,cpuacct/pod/cpu.cfs_quota_us", "300000"),
            ("cpu,cpuacct/pod/cpu.cfs_period_us", "100000"),
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/pod/memory.limit_in_bytes", "4096"),
        ];
        let groups = "4:memory:/pod\n3:cpu,cpuacct:/pod\n1:name=systemd:/pod\n";
        assert_eq!(quotas(&files, groups), (Some(3.0), Some(4096)));
    }

    #[test]
    fn no_bound_and_nonsense_are_no_bound() {
        let files = [("cpu.max", "max 100000\n"), ("memory.max", "max\n")];
        assert_eq!(quotas(&files, "0::/\n"), (None, None));
        assert_eq!(quotas(&[("cpu.max", "100000 0")], "0::/\nnonsense\n"), (None, None));
        assert_eq!(
            quotas(&[("memory/memory.limit_in_bytes", "9223372036854771712")], "1:memory:/\n"),
            (None, None)
        );
    }
}
