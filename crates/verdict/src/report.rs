//! What was counted, for reading.

use crate::judge::{If, Standing};
use crate::tally::{Group, Tally};
use std::fmt::Write;

/// Writing to a string cannot fail.
macro_rules! line {
    ($page:expr, $($format:tt)*) => {{ let _ = writeln!($page, $($format)*); }};
}

/// How many paths that nobody asked for are listed, unless all are wanted.
const FEW: usize = 20;

/// The report as lines for reading; what matters most comes last, where a terminal shows it.
pub fn text(tally: &Tally, all: bool) -> String {
    let mut page = String::new();
    never_asked(&mut page, tally, all);
    let told = |standing: Standing| tally.groups.iter().filter(move |it| it.standing == standing);
    for (standing, title) in [
        (Standing::AlikeBut, "Decided alike, but on purpose not alike in everything"),
        (Standing::Unknown, "Cannot be told"),
        (Standing::Differs, "Decided otherwise"),
    ] {
        if told(standing).next().is_some() {
            line!(page, "{title}\n");
        }
        told(standing).for_each(|it| group(&mut page, it));
    }
    if tally.beyond > 0 {
        line!(page, "{:>9}  requests of further causes\n", tally.beyond);
    }
    sums(&mut page, tally);
    page
}

fn group(page: &mut String, group: &Group) {
    line!(page, "{:>9}  {}", group.count, group.cause.words());
    for example in &group.examples {
        line!(page, "           {}: {}", example.at, example.request);
        line!(page, "               {}", example.what);
    }
    line!(page, "");
}

fn never_asked(page: &mut String, tally: &Tally, all: bool) {
    if tally.never_asked.is_empty() {
        return;
    }
    line!(page, "Never asked for: nothing is known about them from this log\n");
    let shown = if all { tally.never_asked.len() } else { FEW };
    for path in tally.never_asked.iter().take(shown) {
        line!(page, "           {} {} of Ingress {}", path.host, path.path, path.ingress);
    }
    if tally.never_asked.len() > shown {
        line!(page, "           and {} more (--all)", tally.never_asked.len() - shown);
    }
    line!(page, "");
}

fn sums(page: &mut String, tally: &Tally) {
    line!(page, "{:>9}  requests", tally.requests);
    for (standing, words) in [
        (Standing::Alike, "decided alike"),
        (Standing::AlikeIf, "decided alike, if what the log does not show was so:"),
        (Standing::AlikeBut, "decided alike, but on purpose not alike in everything"),
        (Standing::Unknown, "cannot be told"),
        (Standing::Differs, "decided otherwise"),
    ] {
        line!(page, "{:>9}  {words}", tally.of(standing));
        if standing == Standing::AlikeIf {
            for (condition, count) in &tally.conditions {
                line!(page, "{:>9}      {count:>7}  {}", "", granted(*condition));
            }
        }
    }
    let paths = tally.paths_asked + tally.never_asked.len();
    line!(page, "{:>9}  of {paths} paths of Ingresses were asked for", tally.paths_asked);
    if tally.other_lines > 0 {
        line!(page, "{:>9}  lines are of another log, or empty", tally.other_lines);
    }
    if tally.unread > 0 {
        let lines = if tally.unread == 1 { "line" } else { "lines" };
        line!(page, "{:>9}  {lines} could not be read:", tally.unread);
        tally.unread_examples.iter().for_each(|example| line!(page, "           {example}"));
    }
}

fn granted(condition: If) -> &'static str {
    match condition {
        If::Host => {
            "the host is the only one that has the upstream (add $host to log-format-upstream)"
        }
        If::Scheme => "it came over that of HTTP and HTTPS for which both agree (add $scheme)",
        If::Path => "the path was not rewritten (add $request_uri)",
        If::Password => "the password was right",
        If::Authenticator => "the authenticator agreed",
        If::ClientCertificate => "the client's certificate was good",
        If::Canary => "the canary has its share",
        If::Snippet => "the snippet looked at nothing else (headers, cookies)",
        If::Origin => "the Origin, if any, was one that browsers send (add $http_origin)",
        If::Endpoints => "the Service has endpoints, as it had then",
        If::LeadsTo => "the redirect leads to the same place (add $sent_http_location)",
    }
}
