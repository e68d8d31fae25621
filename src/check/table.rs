//! Findings as lines for reading.

use super::{ORDER, Reason, by_reason, is_worth_a_line, of, reasons, some, words};
use std::fmt::Write;
use translate::{Check, Remark};

/// Writing to a string cannot fail.
macro_rules! line {
    ($page:expr, $($format:tt)*) => {{ let _ = writeln!($page, $($format)*); }};
}

/// All findings, the worst first, and the sums.
pub(super) fn page(check: &Check, all: bool) -> String {
    let mut page = String::new();
    for group in ORDER {
        for finding in of(check, group).filter(|finding| is_worth_a_line(finding, all)) {
            line!(page, "{:<24}{}", words(group), finding.ingress);
            for reason in reasons(check, finding) {
                match reason {
                    Reason::Own(remark) => push(&mut page, "because", remark),
                    Reason::OfAll(text) => line!(page, "    because  {text}"),
                }
            }
            finding.notes.iter().for_each(|remark| push(&mut page, "note", remark));
        }
    }
    for (what, remarks) in super::of_gateway_api(check) {
        for remark in remarks {
            let key = remark.key.as_deref().unwrap_or_default();
            line!(page, "{what:<24}{key}: {}", remark.message);
        }
    }
    for (what, remarks) in [("refused", &check.refused), ("note", &check.objects)] {
        for remark in remarks {
            let key = remark.key.as_deref().unwrap_or_default();
            line!(page, "{what:<24}{key}: {}", remark.message);
        }
    }
    for remark in &check.unread {
        let key = remark.key.as_deref().unwrap_or_default();
        line!(page, "{:<24}{key}: {}", "not read", remark.message);
    }
    for (reason, names) in by_reason(check) {
        line!(page, "{:<24}{}", "not ours", some(&names, all));
        line!(page, "    {:<9}{reason}", "because");
    }
    line!(page, "");
    for group in ORDER {
        line!(page, "{:>6}  {}", of(check, group).count(), words(group));
    }
    if !check.others.is_empty() {
        line!(page, "{:>6}  not ours, not looked at", check.others.len());
    }
    if !check.refused.is_empty() {
        line!(page, "{:>6}  mistakes in the ConfigMap, which count for all", check.refused.len());
    }
    if check.gateway.found > 0 {
        let (ours, all) = (check.gateway.ours, check.gateway.found);
        line!(page, "{ours:>6}  of {all} Gateways and routes are of a class of ours");
    }
    if !check.unread.is_empty() {
        line!(page, "{:>6}  not read: nothing is known about them", check.unread.len());
    }
    page
}

fn push(page: &mut String, kind: &str, remark: &Remark) {
    match &remark.key {
        Some(key) => line!(page, "    {kind:<9}{key}: {}", remark.message),
        None => line!(page, "    {kind:<9}{}", remark.message),
    }
}
