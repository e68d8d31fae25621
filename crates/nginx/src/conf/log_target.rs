//! Where a log goes, as nginx has it.

use super::Word;
use model::{LogTarget, Syslog};

/// The parameter of `access_log` and `error_log`.
pub(super) fn word(target: &LogTarget) -> Word {
    match target {
        LogTarget::Stdout => Word::from("/dev/stdout"),
        LogTarget::Stderr => Word::from("stderr"),
        LogTarget::File(path) => Word::literal(path),
        LogTarget::Syslog(syslog) => log_server(syslog),
    }
}

fn log_server(syslog: &Syslog) -> Word {
    const FACILITIES: [&str; 24] = [
        "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock",
        "authpriv", "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3",
        "local4", "local5", "local6", "local7",
    ];
    const SEVERITIES: [&str; 8] =
        ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];
    let Syslog { server, port, facility, severity, tag, nohostname } = syslog;
    let at = if server.starts_with("unix:") { server.clone() } else { format!("{server}:{port}") };
    let mut word = Word::from("syslog:server=")
        .then(Word::literal(&at))
        .then(",facility=")
        .then(FACILITIES[usize::from(*facility).min(23)])
        .then(",severity=")
        .then(SEVERITIES[usize::from(*severity).min(7)])
        .then(",tag=")
        .then(Word::literal(tag));
    if *nohostname {
        word = word.then(",nohostname");
    }
    word
}
