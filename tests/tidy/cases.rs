//! Every family of keys has a case; every folder of a case has what the runner reads.

use crate::tree::Tree;

/// Where the families of keys are declared, one file each.
const FAMILIES: &str = "crates/translate/src/annotations/";

/// What reads annotations without being a family.
const BESIDES: [&str; 3] = ["guards", "known", "raw"];

/// Where cases are, as `<root>/<family>/<case>/`, and the files without which the runner passes a folder by. A lone
/// `case.yaml` says why Fairway differs from a recorded case of that name.
const CASES: [(&str, &[&str]); 2] = [
    ("tests/translate", &["in.yaml"]),
    ("tests/exchanges", &["exchange.yaml", "review.yaml", "case.yaml"]),
];

/// Families without a case, and cases that nothing runs.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let mut complaints: Vec<String> = families(tree)
        .filter(|family| !CASES.iter().any(|(root, _)| tree.below(root).contains(&family.as_str())))
        .map(|family| {
            format!("family {family} has no case: add tests/translate/{family}/<case>/in.yaml")
        })
        .collect();
    for (root, needed) in CASES {
        for family in tree.below(root) {
            let folder = format!("{root}/{family}");
            let dead = tree.below(&folder).into_iter().map(|case| format!("{folder}/{case}"));
            let dead =
                dead.filter(|case| !needed.iter().any(|file| tree.has(&format!("{case}/{file}"))));
            complaints.extend(
                dead.map(|case| format!("{case}: none of {needed:?} in it, so nothing runs it")),
            );
        }
    }
    complaints
}

/// `upstream_tls.rs` declares the family `upstream-tls`.
fn families(tree: &Tree) -> impl Iterator<Item = String> {
    let declares =
        |file: &str| tree.text(file).is_some_and(|text| text.contains(" FAMILY: Family"));
    let declaring = tree.rust().filter(move |file| file.starts_with(FAMILIES) && declares(file));
    let names = declaring.filter_map(|file| file.strip_prefix(FAMILIES)?.split(['/', '.']).next());
    names.chain(BESIDES).map(|name| name.replace('_', "-"))
}
