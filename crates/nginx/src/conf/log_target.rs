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
    let Syslog { server, port, facility, severity, tag, nohostname } = syslog;
    let at = if server.starts_with("unix:") { server.clone() } else { format!("{server}:{port}") };
    let mut word = Word::from("syslog:server=")
        .then(Word::literal(&at))
        .then(",facility=")
        .then(Syslog::FACILITIES[usize::from(*facility).min(23)])
        .then(",severity=")
        .then(Syslog::SEVERITIES[usize::from(*severity).min(7)])
        .then(",tag=")
        .then(Word::literal(tag));
    if *nohostname {
        word = word.then(",nohostname");
    }
    word
}
