//! Runs the cases of a corpus against a controller and judges every step.

mod baseline;
mod bed;
mod report;
mod steps;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use self::bed::Bed;
pub use self::{
    baseline::Baseline,
    report::{Family, Report, StepResult, Verdict},
};
use crate::{
    case::{self, Case},
    exchange::{Answer, Outcome, compare},
};

/// What to run, and against what.
#[derive(Clone, Debug)]
pub struct Options {
    /// The corpus: a folder of families of cases.
    pub corpus: PathBuf,
    /// The controller.
    pub binary: PathBuf,
    /// More flags for every start of the controller.
    pub flags: Vec<String>,
    /// The folder whose cases may carry further decisions.
    pub overlay: Option<PathBuf>,
    /// Only these families, if any are named.
    pub families: Vec<String>,
    /// Only cases whose name contains this.
    pub filter: String,
    /// Leave out the cases that need a controller for themselves.
    pub together_only: bool,
    /// How many cases share the controller.
    pub batch: usize,
    /// How long to wait after a change has shown.
    pub settle: Duration,
    /// How long a change may take to show.
    pub patience: Duration,
    /// Where the controller's output goes.
    pub log: PathBuf,
}

impl Options {
    /// All cases of a corpus against a controller.
    #[must_use]
    pub fn new(corpus: &Path, binary: &Path) -> Self {
        Self {
            corpus: corpus.to_owned(),
            binary: binary.to_owned(),
            flags: Vec::new(),
            overlay: None,
            families: Vec::new(),
            filter: String::new(),
            together_only: false,
            batch: 20,
            settle: Duration::from_millis(100),
            patience: Duration::from_secs(15),
            log: std::env::temp_dir().join(format!("fairway-exchanges-{}.log", std::process::id())),
        }
    }
}

/// Runs the cases that the options choose. Must be called in the namespace of [`crate::namespace`].
///
/// # Errors
/// When the corpus cannot be read, or the fixtures or the controller cannot be started.
pub async fn run(options: &Options) -> Result<Report> {
    let mut bed = Bed::new(options).await?;
    let mut report = Report::default();
    let mut groups: BTreeMap<Vec<String>, Vec<Case>> = BTreeMap::new();
    for name in chosen(options)? {
        match Case::load(&options.corpus, &name, options.overlay.as_deref(), &bed.references) {
            Ok(case) if case.review => report.skip(&name),
            Ok(case) if case.steps.is_empty() => {}
            Ok(case) => groups.entry(case.settings.flags.clone()).or_default().push(case),
            Err(error) => report.unreadable(&name, &error),
        }
    }
    let total = groups.values().map(Vec::len).sum::<usize>();
    let mut done = 0;
    for (flags, group) in groups {
        bed.start(&flags).await?;
        let (mut alone, together): (Vec<Case>, Vec<Case>) =
            group.into_iter().partition(Case::alone);
        if options.together_only {
            alone.clear();
        }
        for work in together.chunks(options.batch.max(1)).chain(alone.chunks(1)) {
            run_batch(&mut bed, work, &mut report).await?;
            done += work.len();
            eprintln!(
                "{done:4} of {total} cases  {}",
                work.last().map_or("", |case| case.name.as_str())
            );
        }
    }
    bed.stop().await?;
    Ok(report)
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

/// Runs cases that share the controller.
async fn run_batch(bed: &mut Bed, work: &[Case], report: &mut Report) -> Result<()> {
    bed.revive().await?;
    for object in work.iter().flat_map(|case| &case.objects) {
        bed.manifests.apply(object)?;
    }
    bed.settle().await?;
    for case in work {
        let outcomes = match steps::run(bed, case).await {
            Ok(outcomes) => outcomes,
            Err(error) => case.steps.iter().map(|_| failed(&error)).collect(),
        };
        judge(case, outcomes, report);
    }
    for case in work {
        bed.remove(&case.all_objects(&bed.references)?)?;
    }
    Ok(())
}

fn failed(error: &anyhow::Error) -> Outcome {
    Outcome { answer: Some(Answer::failed(format!("{error:#}"))), ..Outcome::default() }
}

/// Compares the outcomes with the recorded ones.
fn judge(case: &Case, outcomes: Vec<Outcome>, report: &mut Report) {
    report.begin(case.family());
    for (index, (step, got)) in case.steps.iter().zip(outcomes).enumerate() {
        if step.request.is_none() || step.unstable {
            continue;
        }
        let comparison = compare(&step.outcome, &got, case.settings.strict_body);
        let verdict = match case.differs.decision(index, step) {
            _ if comparison.differences.is_empty() => Verdict::Passed,
            Some(decision) => Verdict::OnPurpose(decision.to_owned()),
            None => Verdict::Failed,
        };
        let result = StepResult {
            case: case.name.clone(),
            step: step.title().to_owned(),
            number: index + 1,
            verdict,
            differences: comparison.differences,
            framing: comparison.framing,
        };
        report.add(case.family(), result);
    }
}
