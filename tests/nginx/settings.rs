//! Keys of the ConfigMap, and the directive that each of them becomes (settings.tsv; the first word is the block).

use crate::nginx::bed::{config_map, ingress};
use crate::nginx::written::{directives, translated, written};
use anyhow::{Context, Result};
use model::Kind;
use nginx::Environment;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use testkit::builders::ingress_class;

fn environment(databases: &Path) -> Environment {
    Environment {
        workers: 7,
        resolvers: vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53))],
        geoip: Some(databases.to_owned()),
        ..Environment::default()
    }
}

/// What is wrong with a row of the table.
fn wrong(row: &str, databases: &Path) -> Result<Option<String>> {
    let mut cells = row.split('\t');
    let mut cell = || cells.next().context("three cells");
    let (block, settings, directive) = (cell()?, cell()?, cell()?);
    let settings: Vec<(&str, &str)> =
        settings.split(" & ").filter_map(|setting| setting.split_once('=')).collect();
    let host = ingress("own", "a-host-of-25-letters.test").build();
    let class = ingress_class("nginx", "k8s.io/ingress-nginx");
    let translation = translated(&[class, config_map(&settings), host]);
    let of_config_map: Vec<_> = translation
        .problems
        .iter()
        .filter(|it| it.origin.kind == Kind::ConfigMap)
        .map(ToString::to_string)
        .collect();
    let database = databases.join("GeoLite2-City.mmdb").display().to_string();
    let directive = directive.replace("DATABASE", &database);
    let all = directives(&written(&translation, &environment(databases))?);
    let is_there = all.contains(&(block.to_owned(), directive.clone()));
    let name = directive.split(' ').next().unwrap_or_default();
    let such: Vec<_> = all.iter().filter(|(_, text)| text.starts_with(name)).collect();
    let fine = is_there && of_config_map.is_empty();
    Ok((!fine).then(|| format!("{row}\n  written: {such:?}\n  told: {of_config_map:?}")))
}

#[test]
fn every_key_becomes_the_directive_of_the_table() -> Result<()> {
    let databases = tempfile::tempdir()?;
    std::fs::write(databases.path().join("GeoLite2-City.mmdb"), "")?;
    let rows = include_str!("settings.tsv").lines().skip(1);
    let wrong: Result<Vec<_>> = rows.map(|row| wrong(row, databases.path())).collect();
    let wrong: Vec<_> = wrong?.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of the table:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
