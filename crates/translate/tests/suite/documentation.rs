//! The pages that are generated from the keys are current. `UPDATE=1` writes them anew.

use std::fs;
use std::path::Path;
use translate::{
    Fate, annotation_rows, annotations_markdown, config_map_markdown, config_map_rows,
};

#[test]
fn the_pages_are_current() {
    for (name, page) in
        [("annotations.md", annotations_markdown()), ("configmap.md", config_map_markdown())]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(path.parent().expect("it has a folder"))
                .expect("a folder can be made");
            fs::write(&path, &page).expect("pages can be written");
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page,
            "docs/{name} is stale: UPDATE=1 cargo test -p translate documentation"
        );
    }
}

#[test]
fn every_name_of_ingress_nginx_is_there_once() {
    for (rows, least) in [(annotation_rows(), 136), (config_map_rows(), 170)] {
        let mut names: Vec<&str> = rows
            .iter()
            .flat_map(|row| std::iter::once(row.name).chain(row.aliases.clone()))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name is both read and not read");
        assert!(count >= least, "{count} names");
    }
}

#[test]
fn what_works_says_what_it_takes() {
    for row in
        annotation_rows().into_iter().chain(config_map_rows()).filter(|row| row.fate == Fate::Works)
    {
        assert!(
            !row.doc.is_empty() && !row.kind.is_empty() && !row.default.is_empty(),
            "{}",
            row.name
        );
        assert!(row.doc.ends_with('.'), "{}: {}", row.name, row.doc);
    }
}
