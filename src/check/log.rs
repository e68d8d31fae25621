//! `fairway check --log`: the verdict on requests that ingress-nginx has logged.

use crate::flags::{Check as Flags, FailOn, Format as Output};
use crate::reading::{self, Objects};
use crate::say;
use crate::say::{aside, note};
use anyhow::{Context, Result, bail, ensure};
use model::{Configuration, Printable};
use objects::Snapshot;
use proxy::{DryRun, Question};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use translate::{Options, Standing as OfIngress};
use verdict::log::{DEFAULT, Escape, Format, Reading, Record, Seen, is_too_much};
use verdict::{
    Asked, Decision, End, Finding, Known, Oracle, Standing, Tally, Verdict, judge, text,
};

/// What is said of logs that nothing could be read of.
const NO_REQUEST: &str = "no request was found in the logs, so that nothing was compared; if they have a format of their \
    own, --log-format names it (log-format-upstream of the ConfigMap)";

/// How often progress is told.
const PULSE: Duration = Duration::from_millis(500);
/// The ports as clients see them.
const PORTS: (u16, u16) = (80, 443);

/// Reads the logs, asks about each request, and prints what came of it.
pub(super) fn run(flags: Flags) -> Result<ExitCode> {
    let Flags {
        paths,
        format: output,
        fail_on,
        all,
        log,
        log_format,
        show_queries,
        mut source,
        classes,
        geoip,
    } = flags;
    ensure!(
        output != Output::Markdown,
        "--format markdown is for objects; with --log choose table, json or lines"
    );
    let stdin = Path::new("-");
    let twice = paths.iter().chain(&source.manifests).any(|path| path == stdin)
        && log.iter().any(|path| path == stdin);
    ensure!(!twice, "standard input is either objects or a log: give one of them as a file");
    // A log that is not there is told before anything else is said.
    for path in log.iter().filter(|path| *path != stdin) {
        std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    source.manifests.extend(paths);
    let Objects { snapshot, mut options, .. } = reading::read(source, &classes)?;
    options.has_databases = geoip.are_there();
    let format = format(log_format.as_deref(), &snapshot, &options)?;
    let (configuration, findings) = meaning(&snapshot, &options)?;
    let known = Known::new(configuration, findings);
    let native = Native(DryRun::new(&known.asked(), PORTS)?);
    let mut judging = Judging {
        known: &known,
        native: &native,
        format: &format,
        queries: show_queries,
        each: output == Output::Lines,
        tally: Tally::default(),
        broken_off: Vec::new(),
        progress: Progress::new(),
    };
    for path in &log {
        judging.file(path)?;
    }
    let Judging { mut tally, broken_off, progress, .. } = judging;
    progress.end();
    tally.finish(&known);
    ensure!(tally.requests > 0, NO_REQUEST);
    match output {
        Output::Json => say::json(&serde_json::to_string_pretty(&tally)?)?,
        Output::Table => say::text(text(&tally, all))?,
        Output::Lines | Output::Markdown => {}
    }
    if let Some(first) = tally.unread_examples.first() {
        let lines = if tally.unread == 1 { "line" } else { "lines" };
        note!("{} {lines} could not be read, the first is {first}", tally.unread);
    }
    broken_off.iter().for_each(|said| note!("{said}"));
    Ok(exit_code(&tally, &broken_off, fail_on))
}

/// What a pipeline goes by: what was not read is never green.
fn exit_code(tally: &Tally, broken_off: &[String], fail_on: FailOn) -> ExitCode {
    match fail_on {
        _ if is_too_much(tally.unread, tally.requests) => {
            note!("too much of the log could not be read: nothing is proven");
            ExitCode::FAILURE
        }
        _ if tally.of(Standing::Unknown) == tally.requests => {
            note!(
                "of none of {} requests anything could be told: nothing is proven",
                tally.requests
            );
            ExitCode::FAILURE
        }
        _ if !broken_off.is_empty() => ExitCode::FAILURE,
        FailOn::Never => ExitCode::SUCCESS,
        _ if tally.of(Standing::Differs) > 0 => ExitCode::from(2),
        FailOn::Differs if tally.of(Standing::AlikeBut) > 0 => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

/// The format that the flag names, that of the controller's ConfigMap, or the default.
fn format(flag: Option<&str>, snapshot: &Snapshot, options: &Options) -> Result<Format> {
    let map = options.config_map.as_ref().and_then(|key| snapshot.config_maps.get(key));
    let of_map = |key: &str| map.and_then(|map| map.data.get(key)).map(ToString::to_string);
    let is_on = |key: &str| of_map(key).is_some_and(|value| value == "true");
    let escape = match () {
        () if is_on("log-format-escape-none") => Escape::None,
        () if is_on("log-format-escape-json") => Escape::Json,
        () => Escape::Default,
    };
    let own = of_map("log-format-upstream").filter(|text| !text.is_empty());
    if let (None, Some(_)) = (flag, &own) {
        note!("using log-format-upstream of the ConfigMap (--log-format names another)");
    }
    let text = flag.map(ToOwned::to_owned).or(own);
    Ok(Format::new(text.as_deref().unwrap_or(DEFAULT), escape)?)
}

/// What is to be served, and what `check` finds about Ingresses.
fn meaning(
    snapshot: &Snapshot,
    options: &Options,
) -> Result<(Configuration, BTreeMap<String, Finding>)> {
    let check = super::found(snapshot, options);
    // What was told as the objects were read is not told again.
    let is_told = |message: &String| {
        snapshot.malformed.values().any(|it| Printable(&it.message).to_string() == *message)
    };
    for remark in check.unread.iter().filter(|remark| !is_told(&remark.message)) {
        let key = remark.key.as_deref().unwrap_or_default();
        note!("not read: {key}: {}", remark.message);
    }
    if check.ingresses.is_empty() {
        bail!("no Ingress is ours among the objects: there is nothing to compare the log with");
    }
    let findings = check.ingresses.into_iter().filter(|it| it.standing != OfIngress::Identical);
    let findings = findings.map(|finding| {
        let is_closed = finding.standing > OfIngress::Differs;
        let closed = is_closed.then(|| super::words(super::group_of(&finding)));
        let reasons = finding.reasons.into_iter().map(|remark| match remark.key {
            Some(key) => format!("{key}: {}", remark.message),
            None => remark.message,
        });
        (finding.ingress, Finding { closed, reasons: reasons.collect() })
    });
    let findings = findings.collect();
    Ok((translate::translate(snapshot, options).configuration, findings))
}

/// The native engine, asked without sending anything.
struct Native(DryRun);

impl Oracle for Native {
    fn ask(&self, asked: Asked) -> Decision {
        let Asked { head, http2, tls, client } = asked;
        let question = Question {
            head: head.into(),
            http2,
            tls: tls.map(Some),
            client: SocketAddr::new(client, 40_000),
            ports: PORTS,
        };
        let outcome = self.0.ask(question);
        let routed = outcome.location.as_ref().is_some_and(|it| it.policy.route.is_some());
        Decision {
            status: outcome.status,
            sent: outcome.sent,
            end: end(outcome.end),
            place: outcome.server.map(|(name, index)| (name.as_str().to_owned(), index)),
            routed,
            upstream: outcome.upstream,
            stands_in: outcome.stands_in,
            leads_to: outcome.leads_to,
            dotted: outcome.dotted,
        }
    }
}

fn end(end: proxy::End) -> End {
    use proxy::End as Of;
    match end {
        Of::Unread => End::Unread,
        Of::Blocks => End::Blocks,
        Of::Location | Of::Preflight | Of::Redirect | Of::HttpsRedirect => End::Decided,
        Of::Body => End::Decided,
        Of::Snippet => End::Snippet,
        Of::Endpoints => End::Endpoints,
        Of::Limits => End::Limits,
        Of::Access => End::Access,
        Of::Upstream => End::Upstream,
    }
}

/// Logs as they are read.
struct Judging<'a> {
    known: &'a Known,
    native: &'a Native,
    format: &'a Format,
    queries: bool,
    each: bool,
    tally: Tally,
    /// What is said of logs whose end is missing.
    broken_off: Vec<String>,
    progress: Progress,
}

impl Judging<'_> {
    fn file(&mut self, path: &Path) -> Result<()> {
        let mut log = Reading::open(path, self.format)?;
        while let Some(seen) = log.line()? {
            match seen {
                Seen::Request(record) => self.record(&record, || log.at())?,
                Seen::Other => self.tally.other_line(),
                Seen::Unread(why) => self.tally.unread(|| why),
            }
            self.progress.tell(self.tally.requests);
        }
        self.broken_off.extend(log.broken_off());
        Ok(())
    }

    fn record(&mut self, record: &Record, at: impl Fn() -> String) -> Result<()> {
        let verdict = judge(record, self.known, self.native);
        self.tally.count(record, &verdict, &at, self.queries);
        if !self.each {
            return Ok(());
        }
        let Verdict { standing, cause, conditions, words, .. } = &verdict;
        let cause = cause.as_ref().map(verdict::Cause::words);
        let value = json!({
            "at": at(), "standing": standing, "cause": cause, "conditions": conditions, "what": words,
        });
        // Whoever has read enough may go.
        match writeln!(io::stdout().lock(), "{value}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => bail!("nobody reads on"),
            written => Ok(written?),
        }
    }
}

/// How far it is, on a terminal.
struct Progress {
    begun: Instant,
    told: Instant,
    is_terminal: bool,
}

impl Progress {
    fn new() -> Self {
        let now = Instant::now();
        Self { begun: now, told: now, is_terminal: io::stderr().is_terminal() }
    }

    fn tell(&mut self, requests: u64) {
        if !self.is_terminal || self.told.elapsed() < PULSE {
            return;
        }
        self.told = Instant::now();
        let seconds = self.begun.elapsed().as_secs_f64();
        let rate = requests as f64 / seconds;
        aside!("\r{requests} requests compared in {seconds:.0} s, {rate:.0}/s ");
    }

    fn end(&self) {
        if self.is_terminal {
            note!();
        }
    }
}
