//! Runs the cases of a corpus against a controller and judges every step.

mod bed;
mod judge;
mod lane;
mod report;
mod steps;

use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::lane::{Batch, Lanes};
pub use self::{
    judge::disagreements,
    report::{Family, Report, StepResult, Verdict},
};
use crate::{
    case::{self, Case, References},
    certificates::Certificates,
    fixtures::{self, Places},
};

/// The engine of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// The default, which needs no flag.
    #[default]
    Native,
    /// A supervised nginx.
    Nginx,
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Nginx => "nginx",
        }
    }
}

/// What to run, and against what.
#[derive(Clone, Debug)]
pub struct Options {
    /// The corpus: a folder of families of cases.
    pub corpus: PathBuf,
    /// The controller.
    pub binary: PathBuf,
    /// Its engine.
    pub engine: Engine,
    /// The folder whose cases may carry further decisions.
    pub overlay: Option<PathBuf>,
    /// Makes other objects of those of a case, and takes the requests away that make no sense then; it also gets the
    /// fixtures.
    pub alter: Option<fn(&mut Case, &[Value])>,
    /// Only these families, if any are named.
    pub families: Vec<String>,
    /// Only cases whose name contains this.
    pub filter: String,
    /// How many cases share the controller.
    pub batch: usize,
    /// How many controllers run at a time, each in a network namespace of its own.
    pub lanes: usize,
    /// How long to wait after a change has shown.
    pub settle: Duration,
    /// How long a change may take to show.
    pub patience: Duration,
    /// Where the controllers' output goes, that of each with engine and number before the ending.
    pub log: PathBuf,
}

impl Options {
    /// All cases of a corpus against a controller.
    #[must_use]
    pub fn new(corpus: &Path, binary: &Path) -> Self {
        Self {
            corpus: corpus.to_owned(),
            binary: binary.to_owned(),
            engine: Engine::default(),
            overlay: None,
            alter: None,
            families: Vec::new(),
            filter: String::new(),
            batch: 20,
            lanes: 3,
            settle: Duration::from_millis(100),
            patience: Duration::from_secs(60),
            log: std::env::temp_dir().join(format!("fairway-exchanges-{}.log", std::process::id())),
        }
    }
}

/// Runs the cases that the options choose. Must be called in the namespace of [`crate::namespace`].
///
/// # Errors
/// When the corpus cannot be read, or the fixtures or the controller cannot be started.
pub async fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    let work = batches(options, &mut report)?;
    let total = work.iter().map(|batch| batch.cases.len()).sum::<usize>();
    let mut done = 0;
    let (_lanes, mut told) = Lanes::start(options, work);
    while let Some(outcomes) = told.recv().await {
        let outcomes = outcomes?;
        done += outcomes.len();
        let last = outcomes.last().map(|(case, _)| case.name.clone()).unwrap_or_default();
        eprintln!("{done:4} of {total} cases with {}  {last}", options.engine.name());
        for (case, outcomes) in outcomes {
            judge::judge(&case, options.engine, outcomes, &mut report);
        }
    }
    ensure!(done == total, "only {done} of {total} cases have run");
    report.sort();
    Ok(report)
}

/// What the lanes have to do: cases that share a controller, then those that need it for themselves.
fn batches(options: &Options, report: &mut Report) -> Result<VecDeque<Batch>> {
    let places = Places::recorded();
    let objects = fixtures::objects(&Certificates::shared(), &places);
    let references = References::new(places, &objects);
    let mut groups: BTreeMap<Vec<String>, [Vec<Case>; 2]> = BTreeMap::new();
    for name in chosen(options)? {
        match Case::load(&options.corpus, &name, options.overlay.as_deref(), &references) {
            Ok(case) if case.review => report.skip(&name),
            Ok(case) if case.steps.is_empty() => {}
            Ok(mut case) => {
                let alone = case.alone();
                if let Some(alter) = options.alter {
                    alter(&mut case, &objects);
                    if case.steps.iter().all(|step| step.request.is_none()) {
                        continue;
                    }
                }
                let [together, lonely] = groups.entry(case.settings.flags.clone()).or_default();
                if alone { lonely.push(case) } else { together.push(case) }
            }
            Err(error) => report.unreadable(&name, &error),
        }
    }
    let mut work = VecDeque::new();
    for (flags, [together, alone]) in groups {
        let chunks = together.chunks(options.batch.max(1)).chain(alone.chunks(1));
        work.extend(chunks.map(|cases| Batch { flags: flags.clone(), cases: cases.to_vec() }));
    }
    Ok(work)
}

/// The names of the cases to run.
fn chosen(options: &Options) -> Result<Vec<String>> {
    let names =
        case::names(&options.corpus).context("the corpus cannot be read; DIR= names its folder")?;
    let wanted = |name: &String| {
        let family = name.split('/').next().unwrap_or_default();
        (options.families.is_empty() || options.families.iter().any(|wanted| wanted == family))
            && name.contains(&options.filter)
    };
    Ok(names.into_iter().filter(wanted).collect())
}
