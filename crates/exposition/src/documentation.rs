//! docs/metrics.md: made of the tables of families.

use super::families::{ALL, Family, request_help};
use super::requests::PREFIX;
use request_metrics::Measure;
use runtime::exposition::Kind;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = include_str!("documentation.md");

fn page() -> String {
    let mut page = HEAD.to_owned();
    table(
        &mut page,
        "Requests",
        "One series for each combination of these labels; `host` only with `--metrics-per-host`.",
    );
    for measure in Measure::ALL {
        let kind = if measure == Measure::Requests { Kind::Counter } else { Kind::Histogram };
        let labels = "identity, `status`, `method`, `path`, `namespace`, `ingress`, `service`, `canary`, `host`";
        row(&mut page, &format!("{PREFIX}{}", measure.name()), kind, labels, request_help(measure));
    }
    let of =
        |prefix: &'static str| ALL.iter().filter(move |family| family.name.starts_with(prefix));
    table(&mut page, "The controller, as ingress-nginx tells it", "");
    of(PREFIX).for_each(|family| of_family(&mut page, family));
    table(&mut page, "Fairway's own", "");
    of("fairway_").for_each(|family| of_family(&mut page, family));
    table(
        &mut page,
        "The process",
        "With or without `--enable-metrics`, like `fairway_build_info`.",
    );
    of("pro").for_each(|family| of_family(&mut page, family));
    page
}

fn table(page: &mut String, title: &str, text: &str) {
    write!(page, "\n## {title}\n\n").expect("a String takes all");
    if !text.is_empty() {
        write!(page, "{text}\n\n").expect("a String takes all");
    }
    page.push_str("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
}

fn of_family(page: &mut String, family: &Family) {
    let identity = family.identity.then(|| "identity".to_owned());
    let own = family.labels.iter().map(|label| format!("`{label}`"));
    let labels: Vec<_> = identity.into_iter().chain(own).collect();
    row(page, family.name, family.kind, &labels.join(", "), family.help);
}

fn row(page: &mut String, name: &str, kind: Kind, labels: &str, help: &str) {
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let labels = if labels.is_empty() { "–" } else { labels };
    writeln!(page, "| `{name}` | {kind} | {labels} | {help} |").expect("a String takes all");
}

#[test]
fn the_page_of_metrics_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("pages can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/metrics.md is stale: UPDATE=1 cargo test -p exposition");
}

#[test]
fn every_family_has_a_name_of_its_own() {
    let mut names: Vec<_> = ALL.iter().map(|family| family.name).collect();
    names.extend(Measure::ALL.map(Measure::name));
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
