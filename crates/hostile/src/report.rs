//! What is printed and written.

use crate::judge::Verdict;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;

/// One judged case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The case.
    pub id: String,
    /// The table's `expected_outcome`.
    pub expected: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What happened.
    pub happened: String,
}

/// All rows and their sums.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Cases that ended as the table says.
    pub as_expected: usize,
    /// Cases that were refused where they could have been accepted.
    pub stricter: usize,
    /// All others.
    pub worse: usize,
    /// One per case, in the table's order.
    pub rows: Vec<Row>,
}

impl Report {
    /// Adds the rows up.
    pub fn new(rows: Vec<Row>) -> Self {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let (as_expected, stricter) = (count(Verdict::AsExpected), count(Verdict::Stricter));
        Self { as_expected, stricter, worse: count(Verdict::Worse), rows }
    }

    /// The table, and the sums as its last line.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let verdict = match row.verdict {
                Verdict::AsExpected => "as expected",
                Verdict::Stricter => "stricter",
                Verdict::Worse => "WORSE",
            };
            let wanted = row.expected.split(':').next().unwrap_or_default();
            text += &format!("{:<5} {wanted:<26} {verdict:<12} {}\n", row.id, row.happened);
        }
        let Self { as_expected, stricter, worse, .. } = self;
        text + &format!("{as_expected} as expected, {stricter} stricter, {worse} worse")
    }

    /// Writes everything as JSON.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_json(path, self)
    }
}

/// Writes a value as JSON, making the folder first.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let text = serde_json::to_string_pretty(value)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}
