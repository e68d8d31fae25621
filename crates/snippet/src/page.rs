//! The page of the directives, for operators.

use crate::compile::arguments;
use crate::table::{Row, TABLE};
use crate::{Knowledge, OTHERS};
use std::fmt::Write;

/// `docs/snippets.md`.
pub fn markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    let sections = [
        ("native", "## Native", "What it does"),
        ("no effect", "## Taken without effect", "Why"),
        ("needs nginx", "## Needs nginx", "What to do instead"),
        ("refused", "## Refused", "Why"),
    ];
    for (fate, title, column) in sections {
        let mut rows: Vec<&Row> =
            TABLE.iter().flat_map(|rows| rows.iter()).filter(|row| row.fate() == fate).collect();
        rows.sort_by_key(|row| row.name);
        let head = format!(
            "\n{title}\n\n| Directive | Where | Takes | {column} | Module |\n|---|---|---|---|---|\n"
        );
        page.push_str(&head);
        for row in rows {
            let (name, levels, takes) = (row.name, levels(row), arguments(row));
            let line =
                format!("| `{name}` | {levels} | {takes} | {} | {} |\n", row.doc, row.module);
            page.push_str(&line);
        }
    }
    variables(&mut page);
    page
}

fn levels(row: &Row) -> String {
    match row.levels.0 {
        u8::MAX => "anywhere".to_owned(),
        _ => row.levels.to_string(),
    }
}

fn variables(page: &mut String) {
    page.push_str(VARIABLES);
    for row in OTHERS {
        let star = if row.prefix { "*" } else { "" };
        let fate = match row.fate {
            Knowledge::Native => "native",
            Knowledge::Empty => "empty",
            Knowledge::NeedsNginx => "needs nginx",
        };
        let line = format!("| `${}{star}` | {fate} | {} |", row.name, row.doc.replace('|', "\\|"));
        writeln!(page, "{line}").expect("a String takes everything");
    }
}

const INTRODUCTION: &str = "# Directives of snippets

Generated from the table in `crates/snippet`; do not edit.

A snippet is read as nginx reads its configuration, and what it says is kept as values; no text of it becomes configuration of
anything. A directive that is not below is unknown and refuses the snippet, as in nginx, with line and column. \"Where\" says at
which level a directive may stand: an annotation `configuration-snippet` and the ConfigMap's `location-snippet` are a location,
`server-snippet` is a server, `auth-snippet` the location that asks the authenticator, `http-snippet` is http.

The native engine does not obey snippets yet: an Ingress that has one answers 503 ([migration.md](migration.md)). \"Native\" says
what the table understands without nginx.
";

const VARIABLES: &str = "
## Variables

Every variable of annotations is known, `set`, `map`, `geo`, `split_clients`, `auth_request_set` and named groups of expressions
declare more, and so are these. An unknown one refuses the snippet.

| Variable | Here | What it says |
|---|---|---|
";
