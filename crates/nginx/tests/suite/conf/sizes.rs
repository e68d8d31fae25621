//! How large tables are that nginx makes of what objects say: it tries all sizes up to the largest.

use model::{Configuration, Server, ServerName};
use nginx::{Environment, conf};
use std::sync::Arc;

/// The number that a directive has.
fn number(text: &str, directive: &str) -> usize {
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix(directive));
    let value = lines.next().and_then(|rest| rest.trim().strip_suffix(';'));
    value.and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn the_table_of_names_grows_with_their_number_and_not_with_their_length() {
    let written = |count: usize, length: usize| {
        let names = (0..count).map(|index| ServerName::new(format!("{index:0>length$}.test")));
        let servers = names.map(|name| (name.clone(), Arc::new(Server::new(name)))).collect();
        let all = Configuration { servers, ..Configuration::default() };
        let environment = Environment { directory: "/run/n".into(), ..Environment::default() };
        conf::write(&all, &environment).expect("names").text.text
    };
    let size = |text: &str| number(text, "server_names_hash_max_size");
    let (few, many) = (written(2, 9), written(2120, 240));
    assert_eq!((size(&few), size(&many)), (1024, 8192));
    // Entries of several names find room in one bucket.
    assert!(number(&many, "server_names_hash_bucket_size") >= 4 * 240);
}
