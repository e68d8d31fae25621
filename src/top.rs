//! `fairway top`: the routes with most requests, errors or latency, in a terminal.

use crate::flags::{By, Top};
use crate::say;
use crate::{admin_port, dbg, reading, sources};
use anyhow::{Context, Result, bail, ensure};
use kubernetes::{Client, PodPort};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Lines where nobody says how many fit.
const USUAL: u64 = 20;
/// Lines above the routes.
const HEAD: u64 = 4;
/// What begins a screen anew: to the top, and away with what was there.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Where the numbers come from.
enum Asked {
    /// The admin port of this machine.
    Near(u16),
    /// A Pod, through the API server.
    Pod(Client, PodPort, String),
}

/// Looks until it is stopped; once where there is no terminal.
#[expect(clippy::disallowed_methods, reason = "a look now and then")]
pub(crate) fn run(flags: &Top) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = Asked::of(flags, &runtime)?;
    let terminal = io::stdout().is_terminal() && !flags.once;
    let pause = Duration::from_secs(flags.interval);
    // Rates lie between two looks.
    let mut page = asked.look(flags, &runtime, lines(flags, terminal))?;
    if !terminal {
        runtime.block_on(async { tokio::time::sleep(pause).await });
        page = asked.look(flags, &runtime, lines(flags, terminal))?;
        return say::text(&page);
    }
    loop {
        say::text(format_args!("{CLEAR}{page}"))?;
        runtime.block_on(async { tokio::time::sleep(pause).await });
        page = asked.look(flags, &runtime, lines(flags, terminal))?;
    }
}

/// How many routes are shown.
fn lines(flags: &Top, terminal: bool) -> u64 {
    let fit =
        || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| u64::from(size.ws_row));
    let fit = if terminal { fit() } else { None };
    let room = fit.filter(|rows| *rows > 0).map(|rows| rows.saturating_sub(HEAD + 1).max(1));
    flags.lines.or(room).unwrap_or(USUAL)
}

fn width(terminal: bool) -> usize {
    let fit =
        || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    let fit = if terminal { fit() } else { None };
    fit.filter(|columns| *columns > 0).unwrap_or(usize::MAX)
}

impl Asked {
    fn of(flags: &Top, runtime: &Runtime) -> Result<Self> {
        let Some(key) = &flags.pod else {
            ensure!(
                flags.token_file.is_none() && flags.kubeconfig.is_none() && flags.context.is_none(),
                "--token-file, --kubeconfig and --context are for a Pod elsewhere: name it by --pod namespace/name"
            );
            return Ok(Self::Near(flags.healthz_port.unwrap_or_else(admin_port::here)));
        };
        let file = flags.token_file.as_deref().context(
            "--pod needs --token-file, the token that --admin-token-file of that Fairway names; without one, use \
             kubectl port-forward and leave --pod out",
        )?;
        let token = std::fs::read_to_string(file);
        let token =
            token.with_context(|| format!("cannot read {} (--token-file)", file.display()))?;
        let options = sources::client(&reading::as_kubectl(flags.source()));
        let client = runtime.block_on(kubernetes::client(&options))?;
        let (namespace, pod) = (key.namespace.to_string(), key.name.to_string());
        let port = flags.healthz_port.unwrap_or(admin_port::USUAL);
        Ok(Self::Pod(client, PodPort { namespace, pod, port }, token.trim().to_owned()))
    }

    /// An answer of the API.
    fn ask(&self, runtime: &Runtime, path: &str) -> Result<Value> {
        let (status, body) = match self {
            Self::Near(port) => dbg::get(*port, path)?,
            Self::Pod(client, from, token) => {
                let field = Some((runtime::TOKEN, token.as_str()));
                runtime.block_on(kubernetes::pod_page(client, from, path, field))?
            }
        };
        if status == 200 {
            return serde_json::from_str(&body)
                .context("that was no answer of Fairway: check --healthz-port");
        }
        let told: Option<Value> = serde_json::from_str(&body).ok();
        let field = |name| told.as_ref().and_then(|told| told[name].as_str());
        match field("error").or_else(|| field("message")) {
            Some(error) => bail!("{status}: {}", one_line(error)),
            None if status == 404 => {
                bail!("404: there is no such page: it may be an older Fairway, or something else")
            }
            None => bail!("{status}: {}", one_line(body.trim())),
        }
    }

    /// One screen.
    fn look(&self, flags: &Top, runtime: &Runtime, lines: u64) -> Result<String> {
        let sort = match flags.by {
            By::Rate => "rate",
            By::Errors => "errors",
            By::Latency => "latency",
        };
        let search: String = form_urlencoded::byte_serialize(flags.search.as_bytes()).collect();
        let overview = self.ask(runtime, "/api/v1/overview")?;
        let path = format!("/api/v1/routes?sort={sort}&search={search}&limit={lines}");
        let routes = self.ask(runtime, &path)?;
        ensure!(
            overview["counted"] == true,
            "requests are not counted: start Fairway with --enable-metrics=true (in the chart: controller.metrics.enabled)"
        );
        let terminal = io::stdout().is_terminal() && !flags.once;
        Ok(screen(&overview, &routes, width(terminal)))
    }
}

fn screen(overview: &Value, routes: &Value, width: usize) -> String {
    let all = &overview["traffic"];
    let problems = |severity: &str| overview["problems"][severity].as_u64().unwrap_or(0);
    let mut page = String::new();
    let first = format!(
        "fairway {}  generation {}  {} requests/s  {} errors/s  p50 {}  p99 {}",
        text(&overview["version"]),
        overview["generation"],
        rate(&all["rate"]),
        rate(&all["errors"]),
        latency(&all["p50"]),
        latency(&all["p99"]),
    );
    let second = format!(
        "{} of {} routes  problems: {} errors, {} warnings  pressure {}",
        routes["found"],
        routes["total"],
        problems("error"),
        problems("warning"),
        one_line(overview["pressure"].as_str().unwrap_or("unknown")),
    );
    let head =
        format!("{:>9} {:>9} {:>9} {:>9} {:>6}  ROUTE", "REQ/S", "5XX/S", "P50", "P99", "READY");
    for line in [first, second, String::new(), head] {
        let _ = writeln!(page, "{}", cut(&line, width));
    }
    for route in routes["routes"].as_array().into_iter().flatten() {
        let traffic = &route["traffic"];
        let ready = if route["external"].is_null() {
            route["ready"].to_string()
        } else {
            "name".to_owned()
        };
        let line = format!(
            "{:>9} {:>9} {:>9} {:>9} {ready:>6}  {}{}{}  {}  {}",
            rate(&traffic["rate"]),
            rate(&traffic["errors"]),
            latency(&traffic["p50"]),
            latency(&traffic["p99"]),
            text(&route["host"]),
            text(&route["path"]),
            if route["of_host"] == true { " (of the host itself)" } else { "" },
            text(if route["ingress"].is_null() { &route["route"] } else { &route["ingress"] }),
            text(&route["backend"]),
        );
        let _ = writeln!(page, "{}", cut(line.trim_end(), width));
    }
    page
}

/// A text of somebody's object, with no character that moves the cursor.
fn text(value: &Value) -> String {
    one_line(value.as_str().unwrap_or("-"))
}

fn one_line(text: &str) -> String {
    model::Printable(text).to_string()
}

fn cut(line: &str, width: usize) -> &str {
    line.char_indices().nth(width).map_or(line, |(at, _)| &line[..at])
}

fn rate(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(rate) if rate >= 100.0 || rate == 0.0 => format!("{rate:.0}"),
        Some(rate) => format!("{rate:.2}"),
    }
}

fn latency(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1.0 => format!("{:.1}ms", seconds * 1000.0),
        Some(seconds) => format!("{seconds:.2}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, screen};
    use serde_json::json;

    #[test]
    fn a_screen_has_a_line_for_each_route_and_no_name_moves_the_cursor() {
        let traffic = json!({"rate": 120.4, "errors": 0.5, "p50": 0.0021, "p99": 1.5});
        let overview = json!({
            "version": "1", "generation": 7, "traffic": traffic, "pressure": "normal",
            "problems": {"error": 1, "warning": 0},
        });
        let route = json!({
            "host": "a.test\u{1b}[2J", "path": "/", "ingress": "shop/front", "backend": "shop-web-80",
            "external": null, "ready": 2, "traffic": traffic,
        });
        let routes = json!({"found": 1, "total": 3, "routes": [route]});
        let page = screen(&overview, &routes, 200);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(
            lines[0],
            "fairway 1  generation 7  120 requests/s  0.50 errors/s  p50 2.1ms  p99 1.50s"
        );
        assert!(
            lines[4].starts_with("      120      0.50     2.1ms     1.50s      2  a.test"),
            "{page}"
        );
        assert!(!page.contains('\u{1b}'), "{page}");
        assert!(screen(&overview, &routes, 30).lines().all(|line| line.chars().count() <= 30));
        assert_eq!(cut("äöü", 2), "äö");
    }
}
