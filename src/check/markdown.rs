//! Findings as a report in Markdown.

use super::{ORDER, Reason, by_reason, is_worth_a_line, of, reasons, some, words};
use std::fmt::Write;
use translate::{Check, Remark};
use verdict::cell;

/// Writing to a string cannot fail.
macro_rules! line {
    ($page:expr, $($format:tt)*) => {{ let _ = writeln!($page, $($format)*); }};
}

/// A table of sums, then a section for each standing that has something to say.
pub(super) fn page(check: &Check, all: bool) -> String {
    let mut page = "# From ingress-nginx to Fairway\n\n| Ingresses | |\n|---:|---|\n".to_owned();
    for group in ORDER {
        line!(page, "| {} | {} |", of(check, group).count(), words(group));
    }
    if !check.others.is_empty() {
        line!(page, "| {} | not ours, not looked at |", check.others.len());
    }
    if !check.unread.is_empty() {
        line!(page, "| {} | not read: nothing is known about them |", check.unread.len());
        line!(page, "\n## Not read\n");
        check.unread.iter().for_each(|remark| line!(page, "- {}", text(remark)));
    }
    for group in ORDER {
        let mut findings =
            of(check, group).filter(|finding| is_worth_a_line(finding, all)).peekable();
        if findings.peek().is_some() {
            line!(page, "\n## {}\n\n| Ingress | Why | Notes |\n|---|---|---|", title(words(group)));
        }
        for finding in findings {
            let reasons = reasons(check, finding).into_iter().map(|reason| match reason {
                Reason::Own(remark) => text(remark),
                Reason::OfAll(text) => cell(&text),
            });
            let reasons = reasons.collect::<Vec<_>>().join("<br>");
            let notes = texts(&finding.notes);
            line!(page, "| {} | {reasons} | {notes} |", cell(&finding.ingress));
        }
    }
    if !check.others.is_empty() {
        line!(page, "\n## Not ours\n\n| Ingresses | Why |\n|---|---|");
    }
    for (reason, names) in by_reason(check) {
        line!(page, "| {} | {} |", cell(&some(&names, all)), cell(reason));
    }
    for (what, remarks) in super::of_gateway_api(check) {
        if !remarks.is_empty() {
            line!(page, "\n## Gateway API: {what}\n");
        }
        remarks.iter().for_each(|remark| line!(page, "- {}", text(remark)));
    }
    for (title, remarks) in
        [("Mistakes in the ConfigMap", &check.refused), ("Other objects", &check.objects)]
    {
        if !remarks.is_empty() {
            line!(page, "\n## {title}\n");
        }
        remarks.iter().for_each(|remark| line!(page, "- {}", text(remark)));
    }
    page
}

fn title(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

fn texts(remarks: &[Remark]) -> String {
    remarks.iter().map(text).collect::<Vec<_>>().join("<br>")
}

fn text(remark: &Remark) -> String {
    let message = cell(&remark.message);
    match &remark.key {
        Some(key) if key.contains(['`', '|', '\\']) => format!("{}: {message}", cell(key)),
        Some(key) => format!("`{key}`: {message}"),
        None => message,
    }
}
