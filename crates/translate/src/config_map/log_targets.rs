//! Where logs go: paths, syslog, the level of the error log.

use super::Area;
use crate::settings::{Key, Settings, parse};
use model::{ErrorLevel, Global, LogTarget, Severity, Syslog};

pub(super) const AREA: Area = Area {
    name: "log_targets",
    keys: &[&ACCESS, &HTTP_ACCESS, &ERROR, &LEVEL, &SYSLOG, &HOST, &PORT, &AUTH],
    apply,
};

const KIND: &str = "absolute path, or syslog:server=…";
/// nginx's default paths.
const ACCESS_FILE: &str = "/var/log/nginx/access.log";
const ERROR_FILE: &str = "/var/log/nginx/error.log";

static ACCESS: Key<LogTarget> = Key::config_map("access-log-path", target).says(
    KIND,
    "/var/log/nginx/access.log, which means standard output",
    "Where the access log goes. The default is a file where a volume is mounted at /var/log/nginx. Files are opened \
     again on SIGUSR1; one that cannot be opened is said so, and standard output takes the lines.",
);
static HTTP_ACCESS: Key<LogTarget> = Key::config_map("http-access-log-path", target).says(
    KIND,
    "that of access-log-path",
    "Where the access log of HTTP goes.",
);
static ERROR: Key<LogTarget> = Key::config_map("error-log-path", target).says(
    KIND,
    "/var/log/nginx/error.log, which means standard error",
    "Where messages about requests go; what the controller has to say stays on standard error. The default is a file \
     where a volume is mounted at /var/log/nginx. Lines are not nginx's (docs/migration.md).",
);
static LEVEL: Key<ErrorLevel> = Key::config_map("error-log-level", level).says(
    "debug, info, notice, warn, error, crit, alert or emerg",
    "notice",
    "Which messages about requests are written; RUST_LOG goes before it.",
);
static SYSLOG: Key<bool> = Key::config_map("enable-syslog", parse::boolean).switch(
    false,
    "Access log and messages about requests go to syslog-host, in datagrams as RFC 3164 has them.",
);
static HOST: Key<String> =
    Key::config_map("syslog-host", host).says("address or name", "none", "The syslog server.");
static PORT: Key<u16> = Key::config_map("syslog-port", parse::port).number(
    "port",
    "514",
    "The UDP port of the syslog server.",
);
static AUTH: Key<bool> = Key::config_map("enable-auth-access-log", parse::boolean)
    .switch(false, "Requests to the external authenticator have a line in the access log, too.");

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    let logs = &mut global.logs;
    let common = settings.get(&ACCESS);
    let access = settings.get(&HTTP_ACCESS).or(common);
    let are_files = settings.scope().log_folder;
    let led = |target: Option<LogTarget>, path: &str| {
        leads(target.unwrap_or_else(|| LogTarget::File(path.to_owned())), are_files)
    };
    logs.access = led(access, ACCESS_FILE);
    logs.error = led(settings.get(&ERROR), ERROR_FILE);
    logs.error_level = settings.get(&LEVEL);
    logs.auth_access = settings.get_or(&AUTH, logs.auth_access);
    let (server, port) = (settings.get(&HOST), settings.get_or(&PORT, 514));
    if !settings.get_or(&SYSLOG, false) {
        return;
    }
    match server {
        Some(server) => {
            let target = LogTarget::Syslog(Syslog::new(server, port));
            (logs.access, logs.error) = (target.clone(), target);
        }
        None => {
            let message =
                "needs syslog-host, the name or address of a server; logs stay where they are";
            settings.note(SYSLOG.about.name, Severity::Warning, message.to_owned());
        }
    }
}

/// Where a path leads. The image of ingress-nginx links its default paths to standard output and standard error; a
/// volume in their folder hides these links, and whoever mounts one reads the files.
fn leads(target: LogTarget, are_files: bool) -> LogTarget {
    match target {
        LogTarget::File(path) if !are_files && path == ACCESS_FILE => LogTarget::Stdout,
        LogTarget::File(path) if !are_files && path == ERROR_FILE => LogTarget::Stderr,
        other => other,
    }
}

/// A path as `access_log` and `error_log` of nginx have it.
fn target(text: &str) -> Result<LogTarget, String> {
    match text {
        "/dev/stdout" => return Ok(LogTarget::Stdout),
        "/dev/stderr" | "stderr" => return Ok(LogTarget::Stderr),
        _ => {}
    }
    if let Some(parameters) = text.strip_prefix("syslog:") {
        return syslog(parameters).map(LogTarget::Syslog);
    }
    if !text.starts_with('/') || text.contains(['$', '\0', '\n']) || text.ends_with('/') {
        return Err("is no place for a log: write an absolute path without variables, such as /var/log/access.log, or \
                    syslog:server=192.0.2.1:514"
            .to_owned());
    }
    Ok(LogTarget::File(text.to_owned()))
}

/// `server=address[:port][,facility=…][,severity=…][,tag=…][,nohostname]` (ngx_syslog_parse_args).
fn syslog(parameters: &str) -> Result<Syslog, String> {
    let mut syslog = Syslog::new(String::new(), 514);
    for parameter in parameters.split(',') {
        let wrong = || {
            format!(
                "has the syslog parameter {parameter:?}, which is not understood: write server=192.0.2.1:514"
            )
        };
        match parameter.split_once('=') {
            Some(("server", server)) => {
                (syslog.server, syslog.port) = address(server).ok_or_else(wrong)?;
            }
            Some(("facility", name)) => {
                syslog.facility = number_of(&Syslog::FACILITIES, name).ok_or_else(wrong)?;
            }
            Some(("severity", name)) => {
                syslog.severity = number_of(&Syslog::SEVERITIES, name).ok_or_else(wrong)?;
            }
            Some(("tag", tag)) if is_tag(tag) => syslog.tag = tag.to_owned(),
            None if parameter == "nohostname" => syslog.nohostname = true,
            _ => return Err(wrong()),
        }
    }
    if syslog.server.is_empty() {
        Err("names no syslog server: write server=192.0.2.1:514".to_owned())
    } else {
        Ok(syslog)
    }
}

fn number_of(names: &[&str], name: &str) -> Option<u8> {
    u8::try_from(names.iter().position(|known| *known == name)?).ok()
}

fn is_tag(tag: &str) -> bool {
    (1..=32).contains(&tag.len())
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Host and port; `unix:/path` is a socket of this machine.
fn address(text: &str) -> Option<(String, u16)> {
    if let Some(path) = text.strip_prefix("unix:") {
        return path.starts_with('/').then(|| (text.to_owned(), 0));
    }
    if let Ok(address) = text.parse::<std::net::SocketAddr>() {
        return Some((address.ip().to_string(), address.port()));
    }
    match text.rsplit_once(':') {
        Some((name, digits)) if !name.contains(':') => {
            Some((host(name).ok()?, parse::port(digits).ok()?))
        }
        _ => Some((host(text).ok()?, 514)),
    }
}

fn host(text: &str) -> Result<String, String> {
    parse::host(text, "syslog.logging.svc")
}

fn level(text: &str) -> Result<ErrorLevel, String> {
    Ok(match text {
        "emerg" | "alert" | "crit" => ErrorLevel::Critical,
        "error" => ErrorLevel::Error,
        "warn" => ErrorLevel::Warn,
        "notice" => ErrorLevel::Notice,
        "info" => ErrorLevel::Info,
        "debug" => ErrorLevel::Debug,
        _ => {
            return Err("is no level of nginx's error log: write debug, info, notice, warn, error, crit, alert or emerg"
                .to_owned());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{LogTarget, leads, level, target};

    #[test]
    fn the_default_paths_are_the_standard_streams_unless_a_volume_hides_these() {
        let led = |path, are_files| target(path).map(|target| leads(target, are_files));
        assert_eq!(led("/var/log/nginx/access.log", false), Ok(LogTarget::Stdout));
        assert_eq!(led("/var/log/nginx/error.log", false), Ok(LogTarget::Stderr));
        for path in ["/var/log/nginx/access.log", "/var/log/nginx/error.log"] {
            assert_eq!(led(path, true), Ok(LogTarget::File(path.to_owned())));
        }
        assert_eq!(led("/dev/stdout", true), Ok(LogTarget::Stdout));
        assert_eq!(target("/dev/stdout"), Ok(LogTarget::Stdout));
        assert_eq!(target("/logs/a.log"), Ok(LogTarget::File("/logs/a.log".to_owned())));
        for wrong in ["off", "access.log", "/logs/$host.log", "/logs/", "memory:32m"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_syslog_server_has_an_address_and_nginx_parameters() {
        let Ok(LogTarget::Syslog(syslog)) = target(
            "syslog:server=[2001:db8::1]:1514,facility=local0,severity=warn,tag=edge,nohostname",
        ) else {
            panic!("it is understood");
        };
        assert_eq!((syslog.server.as_str(), syslog.port), ("2001:db8::1", 1514));
        assert_eq!((syslog.facility, syslog.severity, syslog.tag.as_str()), (16, 4, "edge"));
        assert!(syslog.nohostname);
        let Ok(LogTarget::Syslog(syslog)) = target("syslog:server=logs.example") else {
            panic!("it is understood");
        };
        assert_eq!((syslog.server.as_str(), syslog.port), ("logs.example", 514));
        for wrong in ["syslog:", "syslog:server=", "syslog:server=a:0", "syslog:server=a,tag=a b"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels_are_those_of_nginx() {
        assert!(level("notice").is_ok() && level("crit") < level("error"));
        assert!(level("verbose").is_err());
    }
}
