//! `fairway compare`: the same requests to an old and a new controller.

use crate::flags::{Compare as Flags, CompareReport};
use anyhow::{Context, Result, anyhow, ensure};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use verdict::compare::{
    Client, Options, Report, Requests, State, compare, html, json, junit, markdown,
};
use verdict::log::{DEFAULT, Escape, Format, Line, open};

/// So many lines that cannot be read, and none that can, are of another format.
const PATIENCE: u64 = 100;

/// Sends, compares, prints.
pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    let requests = requests(&flags)?;
    let Flags {
        old,
        new,
        rate,
        concurrency,
        stop_after,
        resume,
        insecure,
        strict_body,
        report,
        ..
    } = flags;
    let state = match &resume {
        Some(path) => Some(
            State::open(path, &old.to_string(), &new.to_string(), &requests)
                .with_context(|| format!("--resume {}", path.display()))?,
        ),
        None => None,
    };
    let options = Options {
        old,
        new,
        rate,
        concurrency: usize::try_from(concurrency).unwrap_or(1),
        stop_after,
        strict_body,
    };
    let client = Client::new(insecure)?;
    let (all, shows) = (requests.list.len(), io::stderr().is_terminal());
    let told = |done: usize| {
        if shows {
            eprint!("\r{done} of {all} requests ");
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let compared = runtime.block_on(compare(&requests, &options, &client, state, told))?;
    if shows {
        eprintln!();
    }
    print(&compared, report)?;
    let is_alike = compared.different == 0 && compared.stopped.is_none();
    Ok(if is_alike { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

fn print(compared: &Report, report: CompareReport) -> Result<()> {
    match report {
        CompareReport::Markdown => print!("{}", markdown(compared)),
        CompareReport::Html => print!("{}", html(compared)),
        CompareReport::Json => println!("{}", json(compared)?),
        CompareReport::Junit => print!("{}", junit(compared)),
    }
    Ok(())
}

/// The requests of all files that are named.
fn requests(flags: &Flags) -> Result<Requests> {
    let mut requests = Requests::new(flags.unsafe_methods, flags.with_credentials);
    let format = Format::new(flags.log_format.as_deref().unwrap_or(DEFAULT), Escape::Default)?;
    for path in &flags.log {
        of_log(path, &format, &mut requests)?;
    }
    for path in &flags.har {
        let cannot = || format!("cannot read {}", path.display());
        let text = std::fs::read_to_string(path).with_context(cannot)?;
        requests.har(&text).map_err(|error| anyhow!(error)).with_context(cannot)?;
    }
    for path in &flags.requests {
        of_list(path, &mut requests)?;
    }
    ensure!(
        !requests.list.is_empty(),
        "there is no request to send: {} have a method that may change something (--unsafe-methods sends them), of {} \
         the host is unknown (give --log-format with $host)",
        requests.unsafe_methods,
        requests.hostless
    );
    Ok(requests)
}

fn of_log(path: &Path, format: &Format, requests: &mut Requests) -> Result<()> {
    let cannot = || format!("cannot read {}", path.display());
    let mut lines = open(path).with_context(cannot)?;
    let (mut read, mut unread, mut first) = (0_u64, 0_u64, None);
    while let Some((number, line)) = lines.read().with_context(cannot)? {
        let record = match line {
            Line::Other => continue,
            Line::TooLong => None,
            Line::Text(text) => format.record(&text),
        };
        match record {
            Some(record) => {
                read += 1;
                requests.record(record);
            }
            None => {
                unread += 1;
                first = first.or(Some(number));
            }
        }
        ensure!(
            read > 0 || unread < PATIENCE,
            "{}: its first {PATIENCE} lines are not of the log format: give log-format-upstream of your ConfigMap as \
             --log-format",
            path.display()
        );
    }
    if let Some(first) = first {
        eprintln!(
            "{}:{first}: not of the log format, and so are {} further lines",
            path.display(),
            unread - 1
        );
    }
    Ok(())
}

fn of_list(path: &Path, requests: &mut Requests) -> Result<()> {
    let cannot = || format!("cannot read {}", path.display());
    let from: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).with_context(cannot)?))
    };
    for (index, line) in from.lines().enumerate() {
        let line = line.with_context(cannot)?;
        let read = requests.line(&line).map_err(|error| anyhow!(error));
        read.with_context(|| format!("{}:{}", path.display(), index + 1))?;
    }
    Ok(())
}
