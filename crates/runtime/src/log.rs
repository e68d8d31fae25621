//! Logs of the process itself: text or JSON on stderr, times in UTC. What one part of it says can go elsewhere, at a
//! level of its own.

use crate::stderr::Stderr;
use parking_lot::RwLock;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tracing::level_filters::STATIC_MAX_LEVEL;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;

pub use tracing::Level;
pub use tracing_subscriber::filter::LevelFilter;

/// Why logging could not start.
#[derive(Debug, Error)]
pub enum LogError {
    /// RUST_LOG was not understood.
    #[error("RUST_LOG={0}: {1}; write for example RUST_LOG=info or RUST_LOG=info,proxy=debug")]
    Filter(String, ParseError),
    /// The system refuses a thread.
    #[error("cannot start the thread that writes messages: {0}")]
    Thread(io::Error),
    /// Somebody was first.
    #[error("logging was started already")]
    Started,
}

/// What libraries say drowns what we say; RUST_LOG brings it back.
const LIBRARIES: &str = "h2=off,hyper=info,hyper_util=info,kube=info,kube_client=off,kube_runtime=off,mio=info,rustls=info,tower=info";

/// How long the last messages may take.
const SETTLING: Duration = Duration::from_secs(1);

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// An object for each line: `timestamp`, `level`, `target`, `message`, and what else the line tells.
    Json,
}

/// Takes a line with its level.
pub type Line = Arc<dyn Fn(Level, String) + Send + Sync>;

/// What can be changed about logging while it goes on.
pub struct Control {
    directives: String,
    /// RUST_LOG decided.
    fixed: bool,
    reload: Reload,
    outlet: Outlet,
}

type Reload = Box<dyn Fn(EnvFilter) + Send + Sync>;

/// Starts logging. `verbosity` is the number of `-v` as ingress-nginx has it: up to 2 is `info`, 3 and 4 `debug`,
/// from 5 everything of our own. RUST_LOG, where set, decides instead.
pub fn init(verbosity: u8, format: Format) -> Result<Control, LogError> {
    let own = std::env::var("RUST_LOG").ok();
    let (directives, fixed) = directives(own.as_deref(), verbosity, STATIC_MAX_LEVEL);
    start(directives, fixed, format)
}

/// Starts logging for a command that answers and ends: nothing is among its answer but what RUST_LOG asks for, and
/// what goes wrong on the way to the objects.
pub fn init_quiet() -> Result<Control, LogError> {
    let own = std::env::var("RUST_LOG").ok().filter(|own| !own.trim().is_empty());
    start(own.unwrap_or_else(|| "off,kubernetes=warn".to_owned()), true, Format::Text)
}

fn start(directives: String, fixed: bool, format: Format) -> Result<Control, LogError> {
    let stderr = Stderr::start(format).map_err(LogError::Thread)?;
    let outlet = Outlet { stderr, diverted: Arc::default() };
    // Who reads the log may go away; a line that cannot be written is no reason to stop serving, or not to stop.
    let subscriber = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_writer(outlet.clone())
        .with_env_filter(filter(&directives)?);
    let (started, reload): (_, Reload) = match format {
        Format::Text => {
            let subscriber = subscriber.with_filter_reloading();
            let handle = subscriber.reload_handle();
            (subscriber.try_init(), Box::new(move |filter| drop(handle.reload(filter))))
        }
        Format::Json => {
            let subscriber = subscriber.json().flatten_event(true).with_current_span(false);
            let subscriber = subscriber.with_span_list(false).with_filter_reloading();
            let handle = subscriber.reload_handle();
            (subscriber.try_init(), Box::new(move |filter| drop(handle.reload(filter))))
        }
    };
    started.map_err(|_| LogError::Started)?;
    Ok(Control { directives, fixed, reload, outlet })
}

impl Control {
    /// What `part` (the name of a crate) says goes to `line`, or back to stderr, from `level` on or as `-v` says.
    /// RUST_LOG goes before the level.
    pub fn follow(&self, part: &'static str, level: Option<LevelFilter>, line: Option<Line>) {
        let own = level.filter(|_| !self.fixed).map(|level| level.min(STATIC_MAX_LEVEL));
        let own = own.map(|level| format!(",{part}={level}"));
        let directives = format!("{}{}", self.directives, own.unwrap_or_default());
        if let Ok(filter) = filter(&directives) {
            (self.reload)(filter);
        }
        let mut diverted = self.outlet.diverted.write();
        *diverted = line.map(|line| (part, line));
    }
}

/// The last messages are written before the process ends.
impl Drop for Control {
    fn drop(&mut self) {
        self.outlet.stderr.settle(SETTLING);
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("directives", &self.directives).finish_non_exhaustive()
    }
}

/// Where lines go: stderr, but for those of one part.
#[derive(Clone)]
struct Outlet {
    stderr: Stderr,
    diverted: Arc<RwLock<Option<(&'static str, Line)>>>,
}

/// Takes one line.
enum Taker {
    Stderr(Stderr),
    Line(Level, Line),
}

impl<'a> MakeWriter<'a> for Outlet {
    type Writer = Taker;

    fn make_writer(&'a self) -> Taker {
        Taker::Stderr(self.stderr.clone())
    }

    fn make_writer_for(&'a self, about: &tracing::Metadata<'_>) -> Taker {
        let diverted = self.diverted.read();
        match diverted.as_ref().filter(|(part, _)| is_of(about.target(), part)) {
            Some((_, line)) => Taker::Line(*about.level(), line.clone()),
            None => self.make_writer(),
        }
    }
}

/// Whether a message comes from a module of the crate `part`.
fn is_of(target: &str, part: &str) -> bool {
    target.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// A message as one line, whatever texts of others it tells: they are not to look like messages of their own, nor to
/// move a terminal's cursor.
fn as_one_line(message: &[u8]) -> Cow<'_, [u8]> {
    let (text, end) = message.split_at(message.len() - usize::from(message.ends_with(b"\n")));
    let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if !text.iter().any(is_control) {
        return Cow::Borrowed(message);
    }
    let mut line = Vec::with_capacity(message.len() + 8);
    for byte in text {
        if is_control(byte) {
            line.extend(byte.escape_ascii());
        } else {
            line.push(*byte);
        }
    }
    line.extend_from_slice(end);
    Cow::Owned(line)
}

impl Write for Taker {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The subscriber writes a whole message at once.
        let message = as_one_line(bytes);
        match self {
            Self::Stderr(stderr) => stderr.write(&message),
            Self::Line(level, line) => line(*level, String::from_utf8_lossy(&message).into_owned()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The directives, and whether RUST_LOG made them. They ask for no more than there is in this build: whoever asks for
/// more gets a line on standard error that is none of the log.
fn directives(rust_log: Option<&str>, verbosity: u8, most: LevelFilter) -> (String, bool) {
    let own = match (rust_log.map(str::trim), verbosity) {
        (Some(own), _) if !own.is_empty() => return (own.to_owned(), true),
        // The h2 crate would warn of what strangers send, a line for each frame.
        (_, 0..=1) => "info,h2=off,kube_client=off,kube_runtime=off",
        // What changes in a configuration file, as ingress-nginx has it from here on.
        (_, 2) => "info,diff=debug,h2=off,kube_client=off,kube_runtime=off",
        (_, 3..=4) => return (format!("debug,{LIBRARIES}"), false),
        _ => return (format!("{},{LIBRARIES}", LevelFilter::TRACE.min(most)), false),
    };
    (own.to_owned(), false)
}

fn filter(directives: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(directives).map_err(|error| LogError::Filter(directives.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::{LevelFilter, Taker, as_one_line, directives, filter, is_of};
    use parking_lot::Mutex;
    use std::io::Write;
    use std::sync::Arc;

    fn level(rust_log: Option<&str>, verbosity: u8) -> String {
        let filter = filter(&directives(rust_log, verbosity, LevelFilter::TRACE).0)
            .expect("it is understood");
        filter.max_level_hint().expect("there is a level").to_string()
    }

    #[test]
    fn a_message_is_one_line_whatever_it_tells() {
        let line = |text: &str| String::from_utf8(as_one_line(text.as_bytes()).into_owned());
        assert_eq!(line("a\tb é\n").as_deref(), Ok("a\tb é\n"));
        assert_eq!(line("a\r\nERROR b\x1b[2J\0\n").as_deref(), Ok("a\\r\\nERROR b\\x1b[2J\\x00\n"));
        assert_eq!(line("").as_deref(), Ok(""));
    }

    #[test]
    fn more_verbosity_says_more() {
        let levels = [0, 1, 3, 4, 5, 9].map(|verbosity| level(None, verbosity));
        assert_eq!(levels, ["info", "info", "debug", "debug", "trace", "trace"]);
        let (second, _) = directives(None, 2, LevelFilter::TRACE);
        assert!(second.starts_with("info,diff=debug,"), "{second}");
    }

    #[test]
    fn nothing_is_asked_for_that_a_released_build_does_not_have() {
        for verbosity in [5, 6, 9, 255] {
            let (own, _) = directives(None, verbosity, LevelFilter::DEBUG);
            assert!(own.starts_with("debug,") && !own.contains("trace"), "{own}");
        }
    }

    #[test]
    fn peers_of_http2_cannot_write_lines_at_will() {
        for verbosity in 0..5 {
            let (own, _) = directives(None, verbosity, LevelFilter::TRACE);
            assert!(own.split(',').any(|part| part == "h2=off"), "{verbosity}: {own}");
        }
    }

    #[test]
    fn rust_log_decides_where_it_is_set() {
        assert_eq!(level(Some("warn"), 5), "warn");
        assert_eq!(level(Some(" "), 0), "info");
    }

    #[test]
    fn a_rust_log_that_is_not_understood_is_named() {
        let (own, _) = directives(Some("info,=x=y"), 0, LevelFilter::TRACE);
        let error = filter(&own).expect_err("this is no filter").to_string();
        assert!(error.starts_with("RUST_LOG=info,=x=y: "), "{error}");
    }

    #[test]
    fn a_part_is_a_crate_and_not_what_its_name_begins() {
        assert!(is_of("proxy", "proxy") && is_of("proxy::phases", "proxy"));
        assert!(!is_of("proxying", "proxy") && !is_of("log", "proxy"));
    }

    #[test]
    fn a_line_that_goes_elsewhere_goes_there_whole_and_with_its_level() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let own = seen.clone();
        let line = move |level, text| own.lock().push((level, text));
        let mut taker = Taker::Line(tracing::Level::WARN, Arc::new(line));
        taker.write_all(b"a line\n").expect("it takes all");
        let expected = [(tracing::Level::WARN, "a line\n".to_owned())];
        assert_eq!(*seen.lock(), expected);
    }
}
