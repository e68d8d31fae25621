//! What happened against what was recorded, and one engine against the other.

use super::{Engine, Report, StepResult, Verdict};
use crate::{
    case::Case,
    exchange::{Outcome, compare},
};

/// What a reason begins with that is for what goes otherwise only now and then, by nature.
const NOW_AND_THEN: &str = "sometimes ";

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
        let decision = case.differs.decision(index, step);
        let passes = |reason: &&str| differences.is_empty() && !reason.starts_with(NOW_AND_THEN);
        // Decisions are about the native engine; the other may well pass.
        let of_native = decision.filter(|_| engine == Engine::Native && case.differs.names_steps());
        let stale = match (of_engine.filter(passes), of_native.filter(passes)) {
            (Some(_), _) => Some("differs-with-nginx"),
            (None, Some(_)) => Some("differs"),
            (None, None) => None,
        };
        let verdict = match (of_engine, decision) {
            _ if stale.is_some() => Verdict::Failed,
            _ if differences.is_empty() => Verdict::Passed,
            (Some(reason), _) => Verdict::OfEngine(reason.to_owned()),
            (None, Some(decision)) => Verdict::OnPurpose(decision.to_owned()),
            (None, None) => Verdict::Failed,
        };
        differences.extend(stale.map(|key| format!("passes: its {key} can go")));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Answer;

    fn report(verdict: Verdict, status: u16) -> Report {
        let answer = Some(Answer { status: Some(status), ..Answer::default() });
        let mut report = Report::default();
        report.add(
            "f",
            StepResult {
                case: "f/c".to_owned(),
                step: "s".to_owned(),
                number: 1,
                verdict,
                differences: vec!["from the recording".to_owned()],
                framing: Vec::new(),
                got: Outcome { answer, ..Outcome::default() },
            },
        );
        report
    }

    #[test]
    fn what_both_engines_decide_has_to_be_the_same() {
        let decided = || Verdict::OnPurpose("row 3".to_owned());
        let native = report(decided(), 503);
        assert!(disagreements(&native, &report(decided(), 503)).is_empty());
        let other = disagreements(&native, &report(decided(), 403));
        assert_eq!(other[0].differences, ["status: want 503, got 403"]);
        let explained = Verdict::OfEngine("no module".to_owned());
        assert!(disagreements(&native, &report(explained, 403)).is_empty());
    }
}
