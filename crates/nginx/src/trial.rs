//! `nginx -t`: whether nginx takes a configuration, and if not, which line is to blame.

use crate::conf::Environment;
use crate::process::ROOM;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Why nginx does not take a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What nginx says, without the place in the file.
    pub message: String,
    /// The line that is to blame, where nginx says so.
    pub line: Option<usize>,
}

impl Fault {
    /// The variable that nobody declares, where that is what is wrong: nginx names no line then.
    pub(crate) fn unknown_variable(&self) -> Option<&str> {
        self.message.strip_prefix("unknown \"")?.strip_suffix("\" variable")
    }
}

/// Tests a configuration. The outer error: there was no test, or it took longer than it may (`TimedOut`).
pub(crate) async fn test(
    program: &Path,
    environment: &Environment,
    conf: &Path,
    patience: Duration,
) -> io::Result<Result<(), Fault>> {
    let child = Command::new(program)
        .arg("-t")
        .args(["-p".as_ref(), environment.directory.as_os_str()])
        .args(["-c".as_ref(), conf.as_os_str()])
        .args(["-e", "stderr"])
        .envs([ROOM])
        .stdin(Stdio::null())
        // As when it runs: it opens what logs name, and that may be /dev/stdout.
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = timeout(patience, child.wait_with_output()).await??;
    if output.status.success() {
        return Ok(Ok(()));
    }
    Ok(Err(fault(&String::from_utf8_lossy(&output.stderr), conf)))
}

/// The first error in what nginx printed. What it quotes of a configuration may have line breaks and look like a place:
/// its own one is the last.
fn fault(printed: &str, conf: &Path) -> Fault {
    let grave = ["[emerg]", "[alert]", "[crit]", "[error]"];
    let line = printed.lines().find(|line| grave.iter().any(|level| line.contains(level)));
    let text = line.or(printed.lines().last()).unwrap_or("nginx says nothing about why");
    let text = text.split_once("] ").map_or(text, |(_, text)| text);
    // `12#12: ` between level and message, in what is logged while it starts.
    let text = text.split_once(": ").map_or(text, |(number, rest)| {
        if number.chars().all(|c| c.is_ascii_digit() || c == '#') { rest } else { text }
    });
    let end = format!("nginx: configuration file {} test failed", conf.display());
    let place = format!(" in {}:", conf.display());
    let said = printed.trim_end().strip_suffix(&end).map(str::trim_end);
    let number = said.and_then(|said| said.rsplit_once(&place)).map(|(_, number)| number);
    let line = number.and_then(|number| number.parse().ok());
    // Where the message is one line, that is the end of it.
    let place = number.map(|number| format!("{place}{number}")).unwrap_or_default();
    Fault { message: text.strip_suffix(&place).unwrap_or(text).to_owned(), line }
}

#[cfg(test)]
mod tests {
    use super::{Fault, fault};
    use std::path::Path;

    #[test]
    fn the_line_that_is_to_blame_is_read() {
        let printed = "nginx: [warn] something in /d/next.conf:3\n\
            nginx: [emerg] unknown directive \"x\" in /d/next.conf:12\n\
            nginx: configuration file /d/next.conf test failed\n";
        let message = "unknown directive \"x\"".to_owned();
        assert_eq!(fault(printed, Path::new("/d/next.conf")), Fault { message, line: Some(12) });
    }

    #[test]
    fn a_place_that_is_in_what_nginx_quotes_is_none() {
        let conf = Path::new("/d/next.conf");
        let end = "nginx: configuration file /d/next.conf test failed\n";
        let quoted = "/x in /d/next.conf:3\nnginx: [emerg] y in /d/next.conf:4";
        let printed = format!(
            "nginx: [emerg] pcre2_compile() failed in \"^{quoted}\" in /d/next.conf:12\n{end}"
        );
        assert_eq!(fault(&printed, conf).line, Some(12));
        // Nor is it one where nginx names none.
        let printed = format!("nginx: [emerg] open() \"{quoted}\" failed (2: No such file)\n{end}");
        assert_eq!(fault(&printed, conf).line, None);
        let printed = format!("nginx: [emerg] unknown \"{quoted}\n{end}\" variable\n{end}");
        assert_eq!(fault(&printed, conf).line, None);
    }

    #[test]
    fn a_fault_without_a_line_is_one_too() {
        let printed = "nginx: [emerg] 12#12: bind() to 0.0.0.0:80 failed (13: Permission denied)\n";
        let message = "bind() to 0.0.0.0:80 failed (13: Permission denied)".to_owned();
        assert_eq!(fault(printed, Path::new("/d/next.conf")), Fault { message, line: None });
        assert_eq!(fault("", Path::new("/d")).message, "nginx says nothing about why");
    }
}
