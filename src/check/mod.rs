//! `fairway check`: what becomes of each Ingress that moves from ingress-nginx.

mod markdown;
mod table;

use crate::flags::{Check as Flags, FailOn, Format};
use crate::objects;
use anyhow::Result;
use std::process::ExitCode;
use std::time::Instant;
use translate::{Check, Finding, Standing};

/// Checks, prints, and says by the exit code what was found.
pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    let Flags { paths, format, fail_on, all, mut source, classes } = flags;
    source.manifests.extend(paths);
    let started = Instant::now();
    eprintln!("reading the objects …");
    let (snapshot, options) = objects::read(source, &classes)?;
    eprintln!(
        "{} Ingresses and {} Services read in {:.1} s",
        snapshot.ingresses.len(),
        snapshot.services.len(),
        started.elapsed().as_secs_f64()
    );
    for malformed in snapshot.malformed.values() {
        eprintln!(
            "not read: {} {}/{}: {}",
            malformed.kind, malformed.key.namespace, malformed.key.name, malformed.message
        );
    }
    let check = translate::check(&snapshot, &options);
    eprintln!("checked in {:.1} s", started.elapsed().as_secs_f64());
    match format {
        Format::Table => print!("{}", table::page(&check, all)),
        Format::Markdown => print!("{}", markdown::page(&check, all)),
        Format::Json => println!("{}", serde_json::to_string_pretty(&check)?),
    }
    Ok(if fails(&check, fail_on) { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn fails(check: &Check, fail_on: FailOn) -> bool {
    let least = match fail_on {
        FailOn::Never => return false,
        FailOn::Refused => Standing::Refused,
        FailOn::NeedsNginx => Standing::NeedsNginx,
        FailOn::Differs => Standing::Differs,
    };
    check.ingresses.iter().any(|finding| finding.standing >= least)
}

/// The order of pages: the worst first.
const ORDER: [Standing; 4] =
    [Standing::Refused, Standing::NeedsNginx, Standing::Differs, Standing::Identical];

/// A standing in words.
fn words(standing: Standing) -> &'static str {
    match standing {
        Standing::Identical => "served identically",
        Standing::Differs => "differs on purpose",
        Standing::NeedsNginx => "needs the nginx engine",
        Standing::Refused => "refused",
    }
}

fn of(check: &Check, standing: Standing) -> impl Iterator<Item = &Finding> {
    check.ingresses.iter().filter(move |finding| finding.standing == standing)
}

/// Whether a page has something to say of an Ingress.
fn is_worth_a_line(finding: &Finding, all: bool) -> bool {
    all || finding.standing != Standing::Identical || !finding.notes.is_empty()
}
