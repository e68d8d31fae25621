//! What came of a comparison, for people and for programs.

use super::kept::not_kept;
use super::page::escaped;
use super::run::{Outcome, Report};
use crate::shown::cell;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Writing to a string cannot fail.
macro_rules! line {
    ($page:expr, $($format:tt)*) => {{ let _ = writeln!($page, $($format)*); }};
}

/// How many requests each kind of difference shows.
const EXAMPLES: usize = 3;

/// Sums in words.
fn sums(report: &Report) -> Vec<String> {
    let compared = report.alike + report.different;
    let mut sums = vec![
        format!("{compared} request{} compared", if compared == 1 { "" } else { "s" }),
        format!("{} answered alike", report.alike),
        format!("{} answered otherwise", report.different),
    ];
    if report.not_compared > 0 {
        let words =
            "NOT COMPARED: they cannot be sent, or a side cannot be reached, or none answers";
        sums.push(format!("{} {words}", report.not_compared));
    }
    let unstable = report.unstable;
    if unstable > 0 {
        let words =
            "where the old side itself answers otherwise each time: that part was not compared";
        sums.push(format!("{unstable} {words}"));
    }
    let further: usize = report.outcomes.iter().map(|outcome| outcome.further).sum();
    if further > 0 {
        sums.push(format!("{further} differences are not shown: their requests have many"));
    }
    if report.not_kept > 0 {
        sums.push(not_kept(report.not_kept));
    }
    sums.extend(report.left_out.words());
    if let Some(stopped) = &report.stopped {
        sums.push(format!("STOPPED: {}", stopped.words()));
    }
    sums
}

/// Outcomes by what differs, or that nothing was compared, the most frequent first.
fn kinds(report: &Report) -> Vec<(&str, Vec<(&Outcome, &str)>)> {
    let mut kinds: BTreeMap<&str, Vec<(&Outcome, &str)>> = BTreeMap::new();
    for outcome in &report.outcomes {
        for (what, how) in &outcome.differences {
            kinds.entry(what).or_default().push((outcome, how));
        }
        if let Some(why) = &outcome.not_compared {
            kinds.entry("not compared").or_default().push((outcome, why));
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    kinds
}

/// Markdown.
pub fn markdown(report: &Report) -> String {
    let mut page = format!("# {} beside {}\n\n", report.new, report.old);
    sums(report).iter().for_each(|sum| line!(page, "- {sum}"));
    for (what, all) in kinds(report) {
        line!(page, "\n## {} ({})\n\n| Request | How |\n|---|---|", cell(what), all.len());
        for (outcome, how) in all.iter().take(EXAMPLES) {
            line!(page, "| {} | {} |", cell(&outcome.request), cell(how));
        }
    }
    page
}

/// A page that loads nothing.
pub fn html(report: &Report) -> String {
    let title = escaped(&format!("{} beside {}", report.new, report.old));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
         body{{font:1rem/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}}\
         td,th{{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;overflow-wrap:anywhere}}</style></head>\n\
         <body><h1>{title}</h1>\n<ul>\n"
    );
    sums(report).iter().for_each(|sum| line!(page, "<li>{}</li>", escaped(sum)));
    line!(page, "</ul>");
    for (what, all) in kinds(report) {
        line!(page, "<h2>{} ({})</h2>", escaped(what), all.len());
        line!(page, "<table><tr><th>Request</th><th>How</th></tr>");
        for (outcome, how) in all.iter().take(EXAMPLES) {
            line!(page, "<tr><td>{}</td><td>{}</td></tr>", escaped(&outcome.request), escaped(how));
        }
        line!(page, "</table>");
    }
    page.push_str("</body></html>\n");
    page
}

/// An object with every outcome.
///
/// # Errors
/// Never to be expected.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report)
}

/// A test case for each request, as pipelines show them.
pub fn junit(report: &Report) -> String {
    let stopped = usize::from(report.stopped.is_some());
    let errors = stopped + report.not_compared;
    let mut page = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"fairway compare\" tests=\"{}\" failures=\"{}\" \
         errors=\"{errors}\">\n",
        report.outcomes.len() + report.not_kept + stopped,
        report.different
    );
    for outcome in &report.outcomes {
        let name = escaped(&outcome.request);
        if let Some(why) = &outcome.not_compared {
            let message = escaped(&format!("not compared: {why}"));
            line!(page, "<testcase name=\"{name}\"><error message=\"{message}\"/></testcase>");
            continue;
        }
        if outcome.differences.is_empty() {
            line!(page, "<testcase name=\"{name}\"/>");
            continue;
        }
        let all = outcome.differences.iter().map(|(what, how)| format!("{what}: {how}"));
        let message = escaped(&all.collect::<Vec<_>>().join("; "));
        line!(page, "<testcase name=\"{name}\"><failure message=\"{message}\"/></testcase>");
    }
    if report.stopped.is_some() {
        let why = sums(report).pop().map(|sum| escaped(&sum)).unwrap_or_default();
        line!(page, "<testcase name=\"stopped\"><error message=\"{why}\"/></testcase>");
    }
    page.push_str("</testsuite>\n");
    page
}
