//! `fairway check`: what becomes of each Ingress that moves from ingress-nginx.

mod log;
mod markdown;
mod table;

use crate::flags::{Check as Flags, FailOn, Format};
use crate::reading::{self, Objects};
use crate::say;
use crate::say::note;
use anyhow::{Result, ensure};
use objects::Snapshot;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use translate::{Check, Finding, Options, Other, RefusedBy, Remark, Standing};

/// What there is to say of all objects now.
fn found(snapshot: &Snapshot, options: &Options) -> Check {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    translate::check(snapshot, options, now.cast_signed())
}

/// Checks, prints, and says by the exit code what was found.
pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    if !flags.log.is_empty() {
        return log::run(flags);
    }
    let Flags { paths, format, fail_on, all, mut source, classes, geoip, .. } = flags;
    ensure!(format != Format::Lines, "--format lines has a line for each request: it needs --log");
    source.manifests.extend(paths);
    let started = Instant::now();
    note!("reading the objects …");
    let Objects { mut snapshot, mut options, assumed } = reading::read(source.clone(), &classes)?;
    options.has_databases = geoip.are_there();
    reading::add_issuers(source, &mut snapshot);
    note!(
        "{} and {} read in {:.1} s",
        counted(snapshot.ingresses.len(), "Ingress", "Ingresses"),
        counted(snapshot.services.len(), "Service", "Services"),
        started.elapsed().as_secs_f64()
    );
    let mut check = found(&snapshot, &options);
    let class = |message| Remark { key: Some("IngressClass".to_owned()), message };
    check.objects.extend(assumed.map(class));
    note!("checked in {:.1} s", started.elapsed().as_secs_f64());
    match format {
        Format::Table | Format::Lines => say::text(table::page(&check, all))?,
        Format::Markdown => say::text(markdown::page(&check, all))?,
        Format::Json => say::json(&serde_json::to_string_pretty(&check)?)?,
    }
    if let Some(gap) = gap(&check) {
        note!("{gap}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(if fails(&check, fail_on) { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// So many of them.
fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// What was not checked, in words: then nothing that was found is the whole truth.
fn gap(check: &Check) -> Option<String> {
    match (check.unread.len(), check.ingresses.len(), check.others.len()) {
        (0, 0, _) if check.gateway.ours > 0 => None,
        (0, 0, 0) if check.gateway.found > 0 => {
            let found = check.gateway.found;
            Some(format!("none of {found} Gateways and routes is ours: nothing was checked"))
        }
        (0, 0, 0) => Some("no Ingress was found: nothing was checked".to_owned()),
        (0, 0, 1) => Some("the only Ingress is not ours: nothing was checked".to_owned()),
        (0, 0, others) => Some(format!("none of {others} Ingresses is ours: nothing was checked")),
        (0, _, _) => None,
        (unread, _, _) => {
            let remedy = if check.has_overlays {
                "; overlays: kustomize build DIR | fairway check -"
            } else {
                ""
            };
            Some(format!("not everything was checked: {unread} could not be read{remedy}"))
        }
    }
}

/// Ingresses that are not ours by the reason why.
fn by_reason(check: &Check) -> BTreeMap<&str, Vec<&str>> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Other { reason, ingress } in &check.others {
        by_reason.entry(reason).or_default().push(ingress);
    }
    by_reason
}

/// Names, so many of them as a reader bears unless all are wanted.
fn some(names: &[&str], all: bool) -> String {
    const FEW: usize = 5;
    if names.len() > FEW && !all {
        format!("{} and {} more (--all)", names[..FEW].join(", "), names.len() - FEW)
    } else {
        names.join(", ")
    }
}

fn fails(check: &Check, fail_on: FailOn) -> bool {
    let least = match fail_on {
        FailOn::Never => return false,
        FailOn::Refused => Standing::Refused,
        FailOn::NeedsNginx => Standing::NeedsNginx,
        FailOn::Differs => Standing::Differs,
    };
    let is_refused = !check.gateway.refused.is_empty() || !check.refused.is_empty();
    is_refused || check.ingresses.iter().any(|finding| finding.standing >= least)
}

/// What there is to say about objects of the Gateway API, and how it is called.
fn of_gateway_api(check: &Check) -> [(&'static str, &[Remark]); 2] {
    [("refused", &check.gateway.refused), ("note", &check.gateway.notes)]
}

/// A standing, and who refuses.
type Group = (Standing, Option<RefusedBy>);

/// The order of pages: first what a move loses.
const ORDER: [Group; 6] = [
    (Standing::Refused, Some(RefusedBy::Fairway)),
    (Standing::Refused, Some(RefusedBy::Unknown)),
    (Standing::Refused, Some(RefusedBy::Both)),
    (Standing::NeedsNginx, None),
    (Standing::Differs, None),
    (Standing::Identical, None),
];

/// A standing in words.
fn words((standing, by): Group) -> &'static str {
    match (standing, by) {
        (Standing::Identical, _) => "served identically",
        (Standing::Differs, _) => "differs on purpose",
        (Standing::NeedsNginx, _) => "needs the nginx engine",
        (Standing::Refused, Some(RefusedBy::Fairway)) => "refused by Fairway only",
        (Standing::Refused, Some(RefusedBy::Both)) => "refused by both",
        (Standing::Refused, Some(RefusedBy::Unknown) | None) => "refused, maybe by both",
    }
}

/// The group of an Ingress.
fn group_of(finding: &Finding) -> Group {
    (finding.standing, finding.refused_by)
}

fn of(check: &Check, group: Group) -> impl Iterator<Item = &Finding> {
    check.ingresses.iter().filter(move |finding| group_of(finding) == group)
}

/// A reason of an Ingress as it is printed.
enum Reason<'a> {
    /// One of its own.
    Own(&'a Remark),
    /// What is the matter with every Ingress is said once, further down; here only whose matter it is.
    OfAll(String),
}

/// The reasons of an Ingress in their order; those that it shares with all are one.
fn reasons<'a>(check: &Check, finding: &'a Finding) -> Vec<Reason<'a>> {
    let is_shared =
        |remark: &&Remark| check.objects.contains(remark) || check.refused.contains(remark);
    let shared = finding.reasons.iter().filter(is_shared);
    let mut names: Vec<&str> = shared.filter_map(|remark| remark.key.as_deref()).collect();
    names.dedup();
    let mut all = Vec::new();
    for remark in &finding.reasons {
        if !is_shared(&remark) {
            all.push(Reason::Own(remark));
        } else if !names.is_empty() {
            let names = std::mem::take(&mut names).join(", ");
            all.push(Reason::OfAll(format!("{names}: as for all Ingresses, see below")));
        }
    }
    all
}

/// Whether a page has something to say of an Ingress.
fn is_worth_a_line(finding: &Finding, all: bool) -> bool {
    all || finding.standing != Standing::Identical || !finding.notes.is_empty()
}
