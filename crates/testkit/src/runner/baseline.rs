//! Steps that are known to fail: a list that a run may be held against, so that nothing new breaks.

use std::{collections::BTreeSet, fmt::Write, path::Path};

use anyhow::{Context, Result};

use super::{Report, StepResult, Verdict};

/// One line for each step: the case, the number of the step, its title.
#[derive(Clone, Debug, Default)]
pub struct Baseline(BTreeSet<String>);

impl Baseline {
    /// Reads a list; lines that start with `#` are remarks.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{}: cannot be read", path.display()))?;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        Ok(Self(lines.map(|line| key_of(line).to_owned()).collect()))
    }

    /// The failures of a run that are not in the list.
    #[must_use]
    pub fn news<'a>(&self, report: &'a Report) -> Vec<&'a StepResult> {
        report.failures().filter(|result| !self.0.contains(key_of(&line(result)))).collect()
    }

    /// The lines of the list that a run has passed, so that they can go.
    #[must_use]
    pub fn mended(&self, report: &Report) -> Vec<String> {
        let passed = report.steps.iter().filter(|result| result.verdict == Verdict::Passed);
        passed.map(line).filter(|line| self.0.contains(key_of(line))).collect()
    }

    /// The list of what failed in a run.
    #[must_use]
    pub fn text(report: &Report) -> String {
        report.failures().fold(String::new(), |mut text, result| {
            writeln!(text, "{}", line(result)).expect("writing to a string does not fail");
            text
        })
    }
}

fn line(result: &StepResult) -> String {
    format!("{} {} {}", result.case, result.number, result.step)
}

/// Case and number: titles may be reworded.
fn key_of(line: &str) -> &str {
    let end = line.match_indices(' ').nth(1).map_or(line.len(), |(end, _)| end);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(number: usize, verdict: Verdict) -> StepResult {
        StepResult {
            case: "f/c".to_owned(),
            step: "a title".to_owned(),
            number,
            verdict,
            differences: Vec::new(),
            framing: Vec::new(),
        }
    }

    #[test]
    fn only_failures_that_are_not_listed_are_news() {
        let mut report = Report::default();
        report.add("f", result(1, Verdict::Failed));
        let path = std::env::temp_dir().join(format!("testkit-baseline-{}", std::process::id()));
        std::fs::write(&path, format!("# known\n{}f/c 3 another title\n", Baseline::text(&report)))
            .unwrap();
        let baseline = Baseline::read(&path).unwrap();
        report.add("f", result(2, Verdict::Failed));
        report.add("f", result(3, Verdict::Passed));
        assert_eq!(
            baseline.news(&report).iter().map(|result| result.number).collect::<Vec<_>>(),
            [2]
        );
        assert_eq!(baseline.mended(&report), ["f/c 3 a title"]);
        std::fs::remove_file(path).unwrap();
    }
}
