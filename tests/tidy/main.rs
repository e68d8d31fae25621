//! Checks what a compiler does not: arrows between crates, sizes, names, first lines, and that every family has a case.

mod arrows;
mod cases;
mod circles;
mod citations;
mod code;
mod deny;
mod dependencies;
mod faults;
mod findings;
mod snippets;
mod text;
mod tree;

use dependencies::Packages;
use tree::Tree;

/// Fails with all complaints at once, so that one run suffices to mend them.
fn expect_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaint(s):\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn crates_use_what_the_table_in_architecture_md_says() {
    expect_none(&arrows::complaints(&Tree::open(), &Packages::ask()));
}

#[test]
fn directives_that_are_called_native_are_obeyed() {
    expect_none(&snippets::complaints(&Tree::open()));
}

#[test]
fn every_dependency_is_used() {
    expect_none(&Packages::ask().unused(&Tree::open()));
}

#[test]
fn every_crate_builds_alone() {
    expect_none(&Packages::ask().broken_alone());
}

/// An edit of an annotation, `check` and a fuzz target wait for these.
#[test]
fn the_translation_is_built_of_few_packages() {
    let seen = dependencies::external_of("translate");
    assert!((40..=87).contains(&seen.len()), "{} packages: {seen:?}", seen.len());
}

#[test]
fn files_that_need_one_another_are_few() {
    expect_none(&circles::complaints(&Tree::open()));
}

#[test]
fn the_list_of_large_things_only_shrinks() {
    expect_none(&code::sizes(&Tree::open()));
}

#[test]
fn production_code_does_not_unwrap() {
    expect_none(&code::unwraps(&Tree::open()));
}

#[test]
fn connections_are_opened_at_the_doors_only() {
    expect_none(&code::doors(&Tree::open()));
}

#[test]
fn every_file_opens_with_a_sentence_about_itself() {
    expect_none(&code::first_lines(&Tree::open()));
}

#[test]
fn folders_of_tests_are_in_architecture_md() {
    expect_none(&text::folders_of_tests(&Tree::open()));
}

#[test]
fn names_say_what_a_file_is_about() {
    expect_none(&text::names(&Tree::open()));
}

#[test]
fn comments_fit_the_page() {
    expect_none(&text::comments(&Tree::open()));
}

#[test]
fn nothing_names_the_machine_it_was_made_on() {
    expect_none(&text::machine_paths(&Tree::open()));
}

#[test]
fn links_between_pages_lead_somewhere() {
    expect_none(&text::links(&Tree::open()));
}

#[test]
fn citations_lead_somewhere() {
    expect_none(&citations::complaints(&Tree::open()));
}

#[test]
fn vulnerabilities_that_could_not_be_checked_are_said_loudly_and_fail_a_release() {
    let usual = deny::without_database("");
    let said = String::from_utf8_lossy(&usual.stderr).into_owned();
    assert!(usual.status.success() && said.contains("WERE NOT CHECKED"), "{said}");
    let release = deny::without_database("required");
    let said = String::from_utf8_lossy(&release.stderr).into_owned();
    assert!(!release.status.success() && said.contains("NOT checked"), "{said}");
}

#[test]
fn every_fault_has_tests_that_exist_or_a_reason() {
    expect_none(&faults::complaints(&Tree::open()));
}

#[test]
fn every_finding_of_a_review_has_tests_that_exist() {
    expect_none(&findings::complaints(&Tree::open()));
}

#[test]
fn every_reason_against_moving_has_what_shows_that_it_is_gone() {
    expect_none(&findings::unshown(&Tree::open()));
}

#[test]
fn every_key_family_has_a_case_and_no_case_is_dead() {
    expect_none(&cases::complaints(&Tree::open()));
}
