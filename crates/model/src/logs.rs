//! Where logs go (ngx_http_log_module, ngx_syslog; compat/behaviour.md section 20).

use serde::Serialize;

/// The logs of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Logs {
    /// `access-log-path`, `http-access-log-path`, or the server of `enable-syslog`.
    pub access: LogTarget,
    /// `error-log-path`, or the server of `enable-syslog`: what traffic has to say.
    pub error: LogTarget,
    /// `error-log-level`; none leaves it to `--v`.
    pub error_level: Option<ErrorLevel>,
    /// `enable-auth-access-log`: requests to the external authenticator have a line, too.
    pub auth_access: bool,
}

/// Where the lines of a log go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, by its absolute path.
    File(String),
    /// A syslog server.
    Syslog(Syslog),
}

/// A syslog server: datagrams of RFC 3164, one for each line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Syslog {
    /// Address or name; a path that begins with `unix:` is a socket of this machine.
    pub server: String,
    /// Port, where there is an address.
    pub port: u16,
    /// Number of the facility; `local7` is 23.
    pub facility: u8,
    /// Number of the severity of access log lines; `info` is 6.
    pub severity: u8,
    /// What the lines are said to come from.
    pub tag: String,
    /// Whether this machine's name is left out.
    pub nohostname: bool,
}

/// nginx's levels of the error log, the quietest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ErrorLevel {
    /// `emerg`, `alert` and `crit`: nothing that a request can cause.
    Critical,
    /// `error`: upstreams that fail.
    Error,
    /// `warn`.
    Warn,
    /// `notice`.
    Notice,
    /// `info`: what clients do wrong, too.
    Info,
    /// `debug`.
    Debug,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            access: LogTarget::Stdout,
            error: LogTarget::Stderr,
            error_level: None,
            auth_access: false,
        }
    }
}

impl Syslog {
    /// The names of facilities by their numbers.
    pub const FACILITIES: [&str; 24] = [
        "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock",
        "authpriv", "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3",
        "local4", "local5", "local6", "local7",
    ];
    /// The names of severities by their numbers.
    pub const SEVERITIES: [&str; 8] =
        ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];

    /// A server with what nginx assumes for everything else.
    pub fn new(server: String, port: u16) -> Self {
        Self { server, port, facility: 23, severity: 6, tag: "nginx".to_owned(), nohostname: false }
    }
}
