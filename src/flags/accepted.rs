//! Flags of ingress-nginx that are taken but have no effect, yet or for good: each is named in the log at start, with
//! the reason. A flag that gets an effect leaves `accepted.tsv` and becomes a field of a group.

use super::pflag;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use std::path::Path;
use std::sync::LazyLock;

/// What ingress-nginx does with these flags, and why they have no effect here; without a reason: not yet.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        Row { name: cell(), kind: cell(), default: cell(), doc: cell(), reason: cell() }
    };
    include_str!("accepted.tsv").lines().skip(1).map(row).collect()
});

/// Those that are ports.
const PORTS: &[&str] =
    &["default-server-port", "status-port", "stream-port", "ssl-passthrough-proxy-port"];

/// A flag that is taken and has no effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) default: &'static str,
    pub(super) doc: &'static str,
    /// Why it has no effect; empty: not yet.
    pub(super) reason: &'static str,
}

impl Row {
    /// Why the flag has no effect.
    pub(crate) fn why(&self) -> &'static str {
        if self.reason.is_empty() { "it is not built yet" } else { self.reason }
    }

    fn is_switch(&self) -> bool {
        self.kind == "bool"
    }
}

/// All of them.
#[cfg(test)]
pub(super) fn rows() -> &'static [Row] {
    &ROWS
}

/// The flags without effect that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accepted {
    pub(crate) given: Vec<&'static Row>,
    /// Ports that ingress-nginx listened on for itself: no TCP or UDP service has them (compat/behaviour.md section
    /// 18).
    pub(crate) ports: Vec<u16>,
}

impl Accepted {
    /// Says what was given and has no effect: flags, and words between them.
    pub(crate) fn tell(&self, words: &[String]) {
        for flag in &self.given {
            tracing::info!("--{} has no effect: {}", flag.name, flag.why());
        }
        for word in words {
            tracing::warn!("{word:?} is no flag and has no effect; {}", instead(word));
        }
    }
}

/// What was meant by a word between flags.
fn instead(word: &str) -> String {
    if Path::new(word).exists() {
        return format!("the objects of a folder are served by --manifests={word}");
    }
    "the value of a switch stands after =, as in --enable-metrics=false".to_owned()
}

impl FromArgMatches for Accepted {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut accepted = Self::default();
        accepted.update_from_arg_matches(matches)?;
        Ok(accepted)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.given = ROWS.iter().filter(|row| matches.contains_id(row.name)).collect();
        let port = |row: &Row| {
            let text = matches.try_get_one::<String>(row.name).ok().flatten();
            let text = text.map_or(row.default, String::as_str);
            pflag::integer(text).ok()
        };
        let ports = ROWS.iter().filter(|row| PORTS.contains(&row.name));
        self.ports = ports.filter_map(port).collect();
        Ok(())
    }
}

impl Args for Accepted {
    fn augment_args(command: Command) -> Command {
        ROWS.iter().fold(command, |command, row| {
            let flag = Arg::new(row.name).long(row.name).hide(true);
            let flag = if row.is_switch() { pflag::switch(flag) } else { flag.num_args(1) };
            command.arg(flag.value_parser(move |text: &str| row.parsed(text)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl Row {
    /// The text, if it is a value of this flag: what ingress-nginx would not start with is a mistake here, too.
    fn parsed(&self, text: &str) -> Result<String, String> {
        match self.kind {
            "bool" => pflag::boolean(text).map(drop),
            "int" if PORTS.contains(&self.name) => pflag::integer::<u16>(text).map(drop),
            "int" | "int seconds" => pflag::integer::<i64>(text).map(drop),
            "uint32" => pflag::integer::<u32>(text).map(drop),
            "uint64 MB" => pflag::integer::<u64>(text).map(drop),
            "float32" | "float64" => float(text),
            "float64 list" => text.split(',').try_for_each(float),
            "duration" => pflag::duration(text).map(drop),
            _ => Ok(()),
        }
        .map(|()| text.to_owned())
    }
}

#[test]
fn a_word_that_is_a_folder_is_told_its_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("a path");
    assert!(instead(folder).ends_with(&format!("--manifests={folder}")));
    assert!(instead("false").contains("stands after ="));
}

fn float(text: &str) -> Result<(), String> {
    text.parse::<f64>().map(drop).map_err(|_| "expected a number, such as 0.5".to_owned())
}
