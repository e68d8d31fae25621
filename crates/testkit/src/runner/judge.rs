//! What happened against what was recorded, and one engine against the other.

use super::{Engine, Report, StepResult, Verdict};
use crate::{
    case::Case,
    exchange::{Outcome, compare},
};

/// Compares the outcomes with the recorded ones.
pub(super) fn judge(case: &Case, engine: Engine, outcomes: Vec<Outcome>, report: &mut Report) {
    report.begin(case.family());
    for (index, (step, got)) in case.steps.iter().zip(outcomes).enumerate() {
        if step.request.is_none() || step.unstable {
            continue;
        }
        let comparison = compare(&step.outcome, &got, case.settings.strict_body);
        let mut differences = comparison.differences;
        let of_nginx = case.differs_with_nginx.decision(index, step);
        let of_engine = of_nginx.filter(|_| engine == Engine::Nginx);
        let verdict = match (of_engine, case.differs.decision(index, step)) {
            (None, _) if differences.is_empty() => Verdict::Passed,
            (Some(_), _) if differences.is_empty() => {
                differences.push("passes: its differs-with-nginx can go".to_owned());
                Verdict::Failed
            }
            (Some(reason), _) => Verdict::OfEngine(reason.to_owned()),
            (None, Some(decision)) => Verdict::OnPurpose(decision.to_owned()),
            (None, None) => Verdict::Failed,
        };
        let result = StepResult {
            case: case.name.clone(),
            step: step.title().to_owned(),
            number: index + 1,
            verdict,
            differences,
            framing: comparison.framing,
            got,
        };
        report.add(case.family(), result);
    }
}

/// Steps that go otherwise than recorded with nginx, by a decision, but not in the way of the native engine; each with
/// what differs between the two.
#[must_use]
pub fn disagreements(native: &Report, nginx: &Report) -> Vec<StepResult> {
    let decided = |result: &&StepResult| matches!(result.verdict, Verdict::OnPurpose(_));
    let differing = nginx.steps.iter().filter(decided).filter_map(|result| {
        let same_step =
            |other: &&StepResult| (&other.case, other.number) == (&result.case, result.number);
        let other = native.steps.iter().find(same_step)?;
        let differences = compare(&other.got, &result.got, false).differences;
        (!differences.is_empty()).then(|| StepResult { differences, ..result.clone() })
    });
    differing.collect()
}
