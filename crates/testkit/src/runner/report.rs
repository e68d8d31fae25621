//! The result of a run: a table, a file for programs, a file for readers.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use serde::Serialize;

use crate::exchange::Outcome;

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As recorded.
    Passed,
    /// Different, by this decision.
    OnPurpose(String),
    /// Different with this engine alone, for this reason.
    OfEngine(String),
    /// Different.
    Failed,
}

/// One compared step.
#[derive(Clone, Debug, Serialize)]
pub struct StepResult {
    /// Family and case.
    pub case: String,
    /// The step's title.
    pub step: String,
    /// Its number, from 1.
    pub number: usize,
    /// How it ended.
    pub verdict: Verdict,
    /// What differs.
    pub differences: Vec<String>,
    /// What differs in framing.
    pub framing: Vec<String>,
    /// What happened.
    #[serde(skip)]
    pub got: Outcome,
}

/// The counts of a family, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Family {
    /// Cases that ran.
    pub cases: usize,
    /// Cases that were skipped: they are for the admission webhook.
    pub skipped: usize,
    /// Steps that were compared.
    pub steps: usize,
    /// Steps that went as recorded.
    pub passed: usize,
    /// Steps that differ on purpose.
    pub on_purpose: usize,
    /// Steps that differ with this engine alone.
    pub of_engine: usize,
    /// Steps that differ.
    pub failed: usize,
}

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The counts by family.
    pub families: BTreeMap<String, Family>,
    /// All steps.
    pub steps: Vec<StepResult>,
}

impl Report {
    /// The counts of all families together.
    #[must_use]
    pub fn total(&self) -> Family {
        self.families.values().fold(Family::default(), |sum, family| Family {
            cases: sum.cases + family.cases,
            skipped: sum.skipped + family.skipped,
            steps: sum.steps + family.steps,
            passed: sum.passed + family.passed,
            on_purpose: sum.on_purpose + family.on_purpose,
            of_engine: sum.of_engine + family.of_engine,
            failed: sum.failed + family.failed,
        })
    }

    /// The steps that failed.
    pub fn failures(&self) -> impl Iterator<Item = &StepResult> {
        self.steps.iter().filter(|result| result.verdict == Verdict::Failed)
    }

    /// The differences, for reading.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("# Exchanges\n\n{}\n", self.sentence());
        section(&mut out, "Failed", self.failures());
        let on_purpose = |result: &&StepResult| matches!(result.verdict, Verdict::OnPurpose(_));
        section(&mut out, "Different on purpose", self.steps.iter().filter(on_purpose));
        let of_engine = |result: &&StepResult| matches!(result.verdict, Verdict::OfEngine(_));
        section(&mut out, "Different with this engine", self.steps.iter().filter(of_engine));
        let framed: Vec<&StepResult> =
            self.steps.iter().filter(|result| !result.framing.is_empty()).collect();
        if !framed.is_empty() {
            out += &format!("\n## Framing differs in {} steps\n", framed.len());
            for result in framed {
                out +=
                    &format!("- {}: {}: {}\n", result.case, result.step, result.framing.join("; "));
            }
        }
        out
    }

    /// Counts for programs, and the steps that did not pass.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let other: Vec<&StepResult> =
            self.steps.iter().filter(|step| step.verdict != Verdict::Passed).collect();
        serde_json::json!({"families": self.families, "total": self.total(), "differences": other})
    }

    /// By case and step, whoever was done first.
    pub(super) fn sort(&mut self) {
        self.steps.sort_by(|one, other| (&one.case, one.number).cmp(&(&other.case, other.number)));
    }

    pub(super) fn begin(&mut self, family: &str) {
        self.family(family).cases += 1;
    }

    pub(super) fn skip(&mut self, case: &str) {
        let family = case.split('/').next().unwrap_or_default().to_owned();
        self.family(&family).skipped += 1;
    }

    /// A case that cannot be read fails as a whole.
    pub(super) fn unreadable(&mut self, case: &str, error: &anyhow::Error) {
        let family = case.split('/').next().unwrap_or_default().to_owned();
        self.begin(&family);
        let result = StepResult {
            case: case.to_owned(),
            step: "reading the case".to_owned(),
            number: 0,
            verdict: Verdict::Failed,
            differences: vec![format!("{error:#}")],
            framing: Vec::new(),
            got: Outcome::default(),
        };
        self.add(&family, result);
    }

    pub(super) fn add(&mut self, family: &str, result: StepResult) {
        let counts = self.family(family);
        counts.steps += 1;
        match result.verdict {
            Verdict::Passed => counts.passed += 1,
            Verdict::OnPurpose(_) => counts.on_purpose += 1,
            Verdict::OfEngine(_) => counts.of_engine += 1,
            Verdict::Failed => counts.failed += 1,
        }
        self.steps.push(result);
    }

    fn family(&mut self, name: &str) -> &mut Family {
        self.families.entry(name.to_owned()).or_default()
    }

    fn sentence(&self) -> String {
        let Family { steps, passed, on_purpose, of_engine, failed, .. } = self.total();
        let of_engine = match of_engine {
            0 => String::new(),
            count => format!(" {count} with this engine,"),
        };
        format!(
            "{passed} of {steps} steps passed, {on_purpose} on purpose,{of_engine} {failed} failed"
        )
    }

    /// The reasons for which steps differ, with how many do.
    fn reasons(&self, family: &str) -> BTreeMap<String, usize> {
        let mut out = BTreeMap::new();
        for result in &self.steps {
            let reason = match &result.verdict {
                Verdict::OnPurpose(decision) => format!("on purpose: {decision}"),
                Verdict::OfEngine(reason) => format!("with this engine: {reason}"),
                Verdict::Passed | Verdict::Failed => continue,
            };
            if result.case.split('/').next() == Some(family) {
                *out.entry(reason).or_default() += 1;
            }
        }
        out
    }
}

/// The table, and the sentence that a run ends with.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{:20} {:>6} {:>6} {:>7} {:>11} {:>7}",
            "family", "cases", "steps", "passed", "on purpose", "failed"
        )?;
        for (name, family) in self.families.iter().map(|(name, family)| (name.as_str(), *family)) {
            row(out, name, family)?;
            for (reason, count) in self.reasons(name) {
                writeln!(out, "    {count} {reason}")?;
            }
        }
        row(out, "all", self.total())?;
        write!(out, "{}", self.sentence())
    }
}

fn row(out: &mut fmt::Formatter<'_>, name: &str, family: Family) -> fmt::Result {
    let Family { cases, skipped, steps, passed, on_purpose, of_engine, failed } = family;
    let on_purpose = on_purpose + of_engine;
    write!(out, "{name:20} {cases:6} {steps:6} {passed:7} {on_purpose:11} {failed:7}")?;
    if skipped > 0 {
        write!(out, "   {skipped} admission cases skipped")?;
    }
    writeln!(out)
}

fn section<'a>(out: &mut String, title: &str, results: impl Iterator<Item = &'a StepResult>) {
    let results: Vec<&StepResult> = results.collect();
    if results.is_empty() {
        return;
    }
    *out += &format!("\n## {title}\n");
    for result in results {
        writeln!(out, "\n### {}, step {}: {}", result.case, result.number, result.step)
            .expect("strings can be written");
        match &result.verdict {
            Verdict::OnPurpose(decision) => *out += &format!("By decision: {decision}\n"),
            Verdict::OfEngine(reason) => *out += &format!("With this engine: {reason}\n"),
            Verdict::Passed | Verdict::Failed => {}
        }
        for difference in &result.differences {
            *out += &format!("- {difference}\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_its_counts() {
        let mut report = Report::default();
        let result = |verdict| StepResult {
            case: "f/c".to_owned(),
            step: "s".to_owned(),
            number: 1,
            verdict,
            differences: vec!["status: want 1, got 2".to_owned()],
            framing: Vec::new(),
            got: Outcome::default(),
        };
        report.begin("f");
        report.add("f", result(Verdict::Passed));
        report.add("f", result(Verdict::OnPurpose("row 3".to_owned())));
        report.add("f", result(Verdict::Failed));
        report.skip("admission/a");
        let text = report.to_string();
        assert!(text.ends_with("\n1 of 3 steps passed, 1 on purpose, 1 failed"), "{text}");
        assert!(text.contains("    1 on purpose: row 3\n"), "{text}");
        assert!(text.contains("1 admission cases skipped"), "{text}");
        assert!(report.markdown().contains("### f/c, step 1: s\nBy decision: row 3\n"));
    }
}
