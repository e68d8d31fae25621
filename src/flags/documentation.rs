//! docs/flags.md: made of the flags themselves, and of a table of those that are accepted only.

use super::accepted::{Row, rows};
use super::command;
use std::fmt::Write;
use std::path::Path;

/// Flags that ingress-nginx does not have.
const OWN: &[&str] = &[
    "manifests",
    "bind-address",
    "worker-threads",
    "geoip-directory",
    "trace-secret-file",
    "memory-limit",
    "body-files-limit",
    "metrics-series-limit",
    "namespace-budget",
    "engine",
    "nginx-directory",
    "log-format",
    "validating-webhook-client-ca",
    "allow-target-networks",
    "gateway-controller-name",
    "gateway-addresses",
    "gateway-services",
    "gateway-target-ports",
];

const SPELLINGS: &str = "A flag is spelled as pflag has it: `--flag=value` or `--flag value`; a switch as `--flag` or `--flag=false` (also 1, t, T, \
    TRUE, True and 0, f, F, FALSE, False), never `--flag false`; `-v 2`, `-v=2`, `--v=2`. `-` and `_` mean the same. Durations are \
    Go's: `1h30m`, `1.5s`, `100ms`. The last one of a name counts, but lists grow. What is given and has no effect is named in the \
    log at start with the reason below; an unknown flag ends the program with one line that names the nearest one.\n";

fn page() -> String {
    let mut page =
        "# Flags\n\nGenerated from the flags in `src/flags`; do not edit.\n\nThe flags of ingress-nginx, and Fairway's own \
         ones. `fairway run --help` says the same in short.\n\n"
            .to_owned();
    page.push_str(SPELLINGS);
    works(&mut page);
    let mut rows: Vec<&Row> = rows().iter().collect();
    rows.sort_by_key(|row| row.name);
    let (later, never): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.reason.is_empty());
    let tables = [("Not yet", later), ("Accepted, without effect", never)];
    for (title, rows) in tables.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        head(&mut page, title);
        for Row { name, kind, default, doc, reason } in rows {
            let why = match *reason {
                "" => String::new(),
                reason => format!(". No effect: {reason}."),
            };
            line(&mut page, &format!("`--{name}`"), kind, default, &format!("{doc}{why}"));
        }
    }
    page
}

/// What clap knows about the flags of `run`.
fn works(page: &mut String) {
    let command = command();
    let run = command.find_subcommand("run").expect("there is a command run");
    let mut flags: Vec<_> = run
        .get_arguments()
        .filter(|flag| !flag.is_hide_set() && flag.get_long().is_some())
        .collect();
    flags.sort_by_key(|flag| flag.get_long());
    head(page, "Works");
    for flag in flags {
        let long = flag.get_long().unwrap_or_default();
        let short = flag.get_short().map(|short| format!(", `-{short}`")).unwrap_or_default();
        let own = if OWN.contains(&long) { " Fairway's own." } else { "" };
        let kind: Vec<&str> =
            flag.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
        let defaults = flag.get_default_values().iter().map(|value| value.to_string_lossy());
        let default = defaults.collect::<Vec<_>>().join(",");
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let (help, said) = without_default(&help);
        let default = if default.is_empty() { said.unwrap_or("none") } else { &default };
        let doc = format!("{}.{own}", help.trim_end_matches('.'));
        line(page, &format!("`--{long}`{short}"), &kind.join(" ").to_lowercase(), default, &doc);
    }
}

/// A help without the default that it ends with, where the presence of the flag alone means something.
fn without_default(help: &str) -> (&str, Option<&str>) {
    match help.trim_end_matches('.').rsplit_once(" [default: ") {
        Some((help, default)) => (help, Some(default.trim_end_matches(']'))),
        None => (help, None),
    }
}

fn head(page: &mut String, title: &str) {
    let text =
        format!("\n## {title}\n\n| Flag | Value | Default | What it does |\n|---|---|---|---|\n");
    page.push_str(&text);
}

fn line(page: &mut String, flag: &str, kind: &str, default: &str, doc: &str) {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    let cells = [flag.to_owned(), cell(kind), cell(default), cell(doc)].join(" | ");
    writeln!(page, "| {cells} |").expect("a String takes all");
}

#[test]
fn the_page_of_flags_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/flags.md");
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("pages can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/flags.md is stale: UPDATE=1 cargo test --bin fairway flags");
}
