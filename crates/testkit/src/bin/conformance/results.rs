//! What became of each test of the suite, and whether that is what is expected.

use std::collections::{BTreeMap, BTreeSet};

const EXPECTED: &str = include_str!("../../../../../tests/conformance/expected-failures.txt");

/// The tests by name, and a word for each.
#[derive(Debug, Default)]
pub(crate) struct Results(BTreeMap<String, &'static str>);

impl Results {
    /// Adds what the suite's output says: `--- PASS: TestConformance/NAME (1.00s)`.
    pub(crate) fn read(&mut self, said: &str) {
        for line in said.lines().map(str::trim_start) {
            for (sign, word) in
                [("--- PASS: ", "pass"), ("--- FAIL: ", "fail"), ("--- SKIP: ", "skip")]
            {
                let named =
                    line.strip_prefix(sign).and_then(|rest| rest.strip_prefix("TestConformance/"));
                let Some(name) = named.and_then(|rest| rest.split(' ').next()) else { continue };
                // Where one test is asked for, all others are skipped.
                let is_news = word != "skip" || !self.0.contains_key(name);
                let is_asked = !name.contains('/') && !name.starts_with("Mesh");
                if is_asked && is_news {
                    self.0.insert(name.to_owned(), word);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, word: &str) -> BTreeSet<&str> {
        let all = self.0.iter().filter(|(_, result)| **result == word);
        all.map(|(name, _)| name.as_str()).collect()
    }

    pub(crate) fn all_pass(&self) -> bool {
        self.of("fail").is_empty() && !self.of("pass").is_empty()
    }

    /// The results as a page.
    pub(crate) fn table(&self) -> String {
        let count = |word| self.of(word).len();
        let mut text = format!(
            "{} passed, {} failed, {} skipped\n\n| test | result |\n|---|---|\n",
            count("pass"),
            count("fail"),
            count("skip")
        );
        let only_one = count("pass") + count("fail") < count("skip");
        for (name, result) in self.0.iter().filter(|(_, result)| !only_one || **result != "skip") {
            text.push_str(&format!("| {name} | {result} |\n"));
        }
        text
    }

    /// Whether exactly what the list names failed; says what is different.
    pub(crate) fn are_as_expected(&self) -> bool {
        let expected: BTreeSet<&str> =
            EXPECTED.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        let failed = self.of("fail");
        for name in failed.difference(&expected) {
            println!("{name} fails, and did not before");
        }
        for name in expected.difference(&failed) {
            println!(
                "{name} does not fail: take it out of tests/conformance/expected-failures.txt"
            );
        }
        failed == expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "
--- FAIL: TestConformance (12.00s)
    --- PASS: TestConformance/One (0.10s)
        --- PASS: TestConformance/One/part (0.05s)
    --- FAIL: TestConformance/Two (0.10s)
    --- SKIP: TestConformance/Three (0.00s)
    --- SKIP: TestConformance/MeshThings (0.00s)
";

    #[test]
    fn only_whole_tests_count() {
        let mut results = Results::default();
        results.read(SAID);
        assert!(
            results.table().starts_with("1 passed, 1 failed, 1 skipped"),
            "{}",
            results.table()
        );
        assert!(!results.all_pass());
        assert!(!results.are_as_expected());
    }

    #[test]
    fn a_test_that_another_run_left_out_keeps_its_result() {
        let mut results = Results::default();
        results.read(
            "    --- PASS: TestConformance/One (0.1s)\n    --- SKIP: TestConformance/Two (0s)\n",
        );
        results.read(
            "    --- SKIP: TestConformance/One (0s)\n    --- PASS: TestConformance/Two (0.1s)\n",
        );
        assert!(results.all_pass());
        assert!(results.table().starts_with("2 passed, 0 failed, 0 skipped"));
    }
}
