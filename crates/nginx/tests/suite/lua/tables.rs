//! The tables of tests/balance: the Lua gives what crates/balance gives.

use crate::lua::bed::{Nginx, ask};
use std::collections::BTreeSet;
use std::net::TcpStream;

/// The rows of a table, without comments.
fn rows(table: &'static str) -> Vec<Vec<&'static str>> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Vec<_>> = lines.map(|line| line.split('\t').collect()).collect();
    assert!(rows.len() > 5, "the table has rows");
    rows
}

/// What the Lua makes of the first `inputs` cells of each row.
async fn results(kind: &str, rows: &[Vec<&str>], inputs: usize) -> Vec<String> {
    let nginx = Nginx::start().await;
    let body: String = rows.iter().map(|row| row[..inputs].join("\t") + "\n").collect();
    let mut stream = TcpStream::connect(("127.0.0.1", nginx.http)).expect("nginx listens");
    let answer = ask(&mut stream, "POST", &format!("/tables?kind={kind}"), "", &body);
    assert_eq!(answer.status, 200, "{}", nginx.log());
    let results: Vec<String> = answer.body.lines().map(str::to_owned).collect();
    assert_eq!(results.len(), rows.len(), "{}", nginx.log());
    results
}

#[tokio::test]
async fn keys_belong_to_the_endpoints_that_the_table_says() {
    let rows = rows(include_str!("../../../../../tests/balance/hash.tsv"));
    for (row, found) in rows.iter().zip(results("hash", &rows, 2).await) {
        assert_eq!(found, row[2], "{row:?}");
    }
}

#[tokio::test]
async fn balanced_sessions_are_hashed_as_keys_are() {
    let rows = rows(include_str!("../../../../../tests/balance/hash.tsv"));
    for (row, found) in rows.iter().zip(results("balanced", &rows, 2).await) {
        assert_eq!(found, row[2], "{row:?}");
    }
}

#[tokio::test]
async fn keys_belong_to_the_sets_that_the_table_says() {
    let rows = rows(include_str!("../../../../../tests/balance/subset.tsv"));
    for (row, found) in rows.iter().zip(results("subset", &rows, 3).await) {
        let set = |text: &str| text.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(set(&found), set(row[3]), "{row:?}");
    }
}

#[tokio::test]
async fn session_cookies_have_the_parts_that_the_table_says() {
    let rows = rows(include_str!("../../../../../tests/balance/sessions.tsv"));
    for (row, found) in rows.iter().zip(results("sessions", &rows, 2).await) {
        assert_eq!(found, row[2..].join("\t"), "{row:?}");
    }
}

#[tokio::test]
async fn requests_go_to_the_side_that_the_table_says() {
    let rows = rows(include_str!("../../../../../tests/balance/canary.tsv"));
    for (row, found) in rows.iter().zip(results("canary", &rows, 9).await) {
        assert_eq!(found, row[9], "{row:?}");
    }
}
