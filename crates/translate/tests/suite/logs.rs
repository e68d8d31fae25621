//! Where logs go.

use crate::builders::*;
use model::LogTarget;
use translate::{Options, translate};

#[test]
fn nginxs_default_paths_are_files_where_a_volume_is_mounted_in_their_folder() {
    let read = |log_folder: bool, data: &[(&str, &str)]| {
        let mut snapshot = cluster();
        put_config_map(&mut snapshot, config_map("x", "settings", data));
        let config_map = Some(key("x", "settings"));
        let options = Options { config_map, log_folder, ..Options::default() };
        let logs = translate(&snapshot, &options).configuration.global.logs.clone();
        (logs.access, logs.error)
    };
    let file = |path: &str| LogTarget::File(path.to_owned());
    let files = (file("/var/log/nginx/access.log"), file("/var/log/nginx/error.log"));
    let written = [
        ("access-log-path", "/var/log/nginx/access.log"),
        ("error-log-path", "/var/log/nginx/error.log"),
    ];
    for data in [&[][..], &written] {
        assert_eq!(read(false, data), (LogTarget::Stdout, LogTarget::Stderr));
        assert_eq!(read(true, data), files);
    }
    let streams = [("access-log-path", "/dev/stdout"), ("error-log-path", "/dev/stderr")];
    assert_eq!(read(true, &streams), (LogTarget::Stdout, LogTarget::Stderr));
}
