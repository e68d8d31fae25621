//! What a Pod of ingress-nginx may bring that means another thing here or nothing: files that are mounted where its
//! image has some, and a time zone. The image alone is changed often, and nobody reads a chart's words then.

use crate::flags::EngineName;
use std::fs;
use std::path::Path;

/// Where nginx has its logs, as links to standard output and standard error in the image of ingress-nginx.
const LOGS: &str = "/var/log/nginx";
/// Where libraries look for the time zone; the image of ingress-nginx has the table of all of them.
const ZONE: &str = "/etc/localtime";
/// Files and folders that only a volume can have brought, and what is missing with them.
const LOST: [(&str, &str); 3] = [
    (
        "etc/nginx/template/nginx.tmpl",
        "there is no template of nginx.conf, and what it adds is missing, guards among it: say that with annotations and \
         the ConfigMap (docs/migration.md)",
    ),
    ("modules_mount", NO_MODULES),
    ("chroot/modules_mount", NO_MODULES),
];
const NO_MODULES: &str = "modules are not loaded, and what they guard is open: docs/nginx-modules.md says which are built in";
/// Spellings of the time zone that logs have.
const UTC: [&str; 6] = ["UTC", "UTC0", "GMT", "GMT0", "Etc/UTC", "Etc/GMT"];

/// Says what has been brought along, and that it has no effect.
pub(crate) fn tell(engine: EngineName) {
    for line in lost(Path::new("/")) {
        tracing::error!("{line}");
    }
    let (zone, mounts) = (crate::own_pod::variable("TZ"), mounts());
    // nginx has its own ways.
    let is_ours = engine == EngineName::Native;
    if let Some(what) = zone_of_its_own(zone.as_deref(), &mounts).filter(|_| is_ours) {
        tracing::warn!(
            "{what} has no effect: times in logs are those of UTC, as their offset (+0000) says"
        );
    }
    if is_among(LOGS, &mounts) {
        tracing::info!(
            "a volume is mounted at {LOGS}: access.log and error.log are files there, as far as the ConfigMap names no \
             other place"
        );
    }
}

/// Whether a volume is mounted where nginx has its logs, so that somebody reads them there.
pub(crate) fn has_log_folder() -> bool {
    is_among(LOGS, &mounts())
}

fn lost(root: &Path) -> impl Iterator<Item = String> {
    let there = LOST.iter().filter(|(path, _)| root.join(path).exists());
    there.map(|(path, why)| format!("/{path} is mounted and has no effect: {why}"))
}

fn zone_of_its_own(variable: Option<&str>, mounts: &str) -> Option<String> {
    match variable.map(|zone| zone.trim_start_matches(':')) {
        Some(zone) => (!UTC.contains(&zone)).then(|| format!("TZ={zone}")),
        None => is_among(ZONE, mounts).then(|| format!("what is mounted at {ZONE}")),
    }
}

/// What is mounted where, as proc(5) has it; nothing where the system does not say so.
fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

fn is_among(path: &str, mounts: &str) -> bool {
    mounts.lines().any(|mount| mount.split(' ').nth(4) == Some(path))
}

#[cfg(test)]
mod tests {
    use super::{LOGS, is_among, lost, mounts, zone_of_its_own};
    use std::fs;

    const MOUNTED: &str = "\
        812 801 0:152 / / rw,relatime master:301 - overlay overlay rw,lowerdir=/var/log/nginx\n\
        820 812 8:1 /var/lib/kubelet/pods/a/volumes/logs /var/log/nginx rw,relatime - ext4 /dev/sda1 rw\n\
        821 812 8:1 /usr/share/zoneinfo/Europe/Berlin /etc/localtime ro,relatime - ext4 /dev/sda1 rw\n";

    #[test]
    fn a_template_and_modules_that_are_mounted_are_told_with_what_is_missing() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(lost(root.path()).count(), 0);
        fs::create_dir_all(root.path().join("etc/nginx/template")).expect("a folder");
        fs::create_dir(root.path().join("modules_mount")).expect("a folder");
        fs::write(root.path().join("etc/nginx/template/nginx.tmpl"), "events {}").expect("a file");
        let lines: Vec<String> = lost(root.path()).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("/etc/nginx/template/nginx.tmpl is mounted"), "{lines:?}");
        assert!(lines[1].starts_with("/modules_mount is mounted"), "{lines:?}");
    }

    #[test]
    fn a_time_zone_other_than_that_of_the_logs_is_told() {
        let told = |variable| zone_of_its_own(variable, "");
        assert_eq!(told(Some("Europe/Berlin")).as_deref(), Some("TZ=Europe/Berlin"));
        for same in [None, Some("UTC"), Some(":UTC"), Some("Etc/UTC")] {
            assert_eq!(told(same), None);
        }
        let mounted = zone_of_its_own(None, MOUNTED);
        assert_eq!(mounted.as_deref(), Some("what is mounted at /etc/localtime"));
    }

    #[test]
    fn a_volume_is_known_by_where_it_is_mounted() {
        assert!(is_among(LOGS, MOUNTED) && !is_among("/var/log", MOUNTED));
        assert!(is_among("/proc", &mounts()) && !is_among("/proc/self", &mounts()));
    }
}
