//! `fairway compare`: the same requests to an old and a new controller.

use crate::flags::{Compare as Flags, CompareReport};
use crate::say;
use crate::say::{aside, note};
use anyhow::{Context, Result, anyhow, ensure};
use objects::manifests::text_of;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use verdict::compare::{
    Client, Options, Report, Requests, State, compare, html, json, junit, markdown,
};
use verdict::log::{DEFAULT, Escape, Format, Reading, Seen, is_too_much};

/// Bytes of a HAR file, which is read as a whole, and of a line of a list of requests.
const LONGEST_HAR: u64 = 512 << 20;
const LONGEST_LINE: u64 = 4 << 20;

/// What Windows writes in front of UTF-8.
const MARK: char = '\u{feff}';

/// Sends, compares, prints.
pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    let (requests, gap) = requests(&flags)?;
    let Flags {
        old,
        new,
        rate,
        concurrency,
        stop_after,
        resume,
        insecure,
        http2,
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
        rate: u32::try_from(rate).unwrap_or(u32::MAX),
        concurrency: usize::try_from(concurrency).unwrap_or(1),
        stop_after,
        strict_body,
    };
    let client = Client::new(insecure, http2)?;
    let (all, shows) = (requests.list.len(), io::stderr().is_terminal());
    let told = |done: usize| {
        if shows {
            aside!("\r{done} of {all} requests ");
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let compared = runtime.block_on(compare(&requests, &options, &client, state, told))?;
    if shows {
        note!();
    }
    print(&compared, report)?;
    if let Some(stopped) = &compared.stopped {
        note!("stopped: {}", stopped.words());
    }
    Ok(match () {
        () if compared.different > 0 || compared.is_harm() => ExitCode::from(2),
        () if !compared.is_whole() => {
            let Report { alike, different, not_compared, .. } = &compared;
            let all = alike + different + not_compared;
            note!("{not_compared} of {all} requests were not compared; the report says why");
            ExitCode::FAILURE
        }
        () => match gap {
            None => ExitCode::SUCCESS,
            Some(gap) => {
                note!("not everything was compared: {gap}");
                ExitCode::FAILURE
            }
        },
    })
}

fn print(compared: &Report, report: CompareReport) -> Result<()> {
    match report {
        CompareReport::Markdown => say::text(markdown(compared))?,
        CompareReport::Html => say::text(html(compared))?,
        CompareReport::Json => say::json(&json(compared)?)?,
        CompareReport::Junit => say::text(junit(compared))?,
    }
    Ok(())
}

/// The requests of all files that are named, and what could not be read of the logs, if it is too much.
fn requests(flags: &Flags) -> Result<(Requests, Option<String>)> {
    let requests = Requests::new(flags.unsafe_methods, flags.with_credentials);
    let mut requests = requests.between(&flags.old, &flags.new);
    let format = Format::new(flags.log_format.as_deref().unwrap_or(DEFAULT), Escape::Default)?;
    let (mut read, mut gap) = (0, None);
    for path in &flags.log {
        let (more, broken_off) = of_log(path, &format, &mut requests)?;
        read += more;
        gap = gap.or(broken_off);
    }
    let unread = requests.left_out.unread_lines;
    if is_too_much(unread, read) {
        gap = Some(format!("{unread} lines could not be read"));
    }
    for path in &flags.har {
        let cannot = || format!("cannot read {}", path.display());
        let mut bytes = Vec::new();
        let mut file = File::open(path).with_context(cannot)?.take(LONGEST_HAR + 1);
        file.read_to_end(&mut bytes).with_context(cannot)?;
        ensure!(
            bytes.len() as u64 <= LONGEST_HAR,
            "{}: more than {} MiB: record the visit in several files",
            path.display(),
            LONGEST_HAR >> 20
        );
        let text = text_of(bytes).map_err(|error| anyhow!(error)).with_context(cannot)?;
        requests
            .har(text.trim_start_matches(MARK))
            .map_err(|error| anyhow!(error))
            .with_context(cannot)?;
    }
    for path in &flags.requests {
        of_list(path, &mut requests)?;
    }
    let left_out = requests.left_out.words();
    ensure!(
        !requests.list.is_empty() || !left_out.is_empty(),
        "there is no request in what was read"
    );
    ensure!(!requests.list.is_empty(), "there is no request to send: {}", left_out.join("; "));
    Ok((requests, gap))
}

/// Adds the requests of a log, and says how many lines could be read, and where it breaks off.
fn of_log(path: &Path, format: &Format, requests: &mut Requests) -> Result<(u64, Option<String>)> {
    let mut log = Reading::open(path, format)?;
    let (mut read, mut unread) = (0, 0_u64);
    while let Some(seen) = log.line()? {
        match seen {
            Seen::Request(record) => {
                read += 1;
                requests.record(*record);
            }
            Seen::Other => {}
            Seen::Unread(why) => {
                if unread == 0 {
                    note!("{why}");
                }
                unread += 1;
            }
        }
    }
    requests.left_out.unread_lines += unread;
    Ok((read, log.broken_off()))
}

fn of_list(path: &Path, requests: &mut Requests) -> Result<()> {
    let cannot = || format!("cannot read {}", path.display());
    let mut from: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).with_context(cannot)?))
    };
    for number in 1_u64.. {
        let place = || format!("{}:{number}", path.display());
        let mut line = Vec::new();
        let read = from.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line);
        if read.with_context(cannot)? == 0 {
            break;
        }
        ensure!(
            line.len() as u64 <= LONGEST_LINE,
            "{}: more than {} MiB: a line has one request",
            place(),
            LONGEST_LINE >> 20
        );
        let line = text_of(line).map_err(|error| match error.strip_prefix("line 1 ") {
            // The place says which one.
            Some(error) => anyhow!("{error}"),
            None => anyhow!(error),
        });
        let line = line.with_context(place)?;
        let line = line.trim_end_matches(['\n', '\r']);
        let line = if number == 1 { line.trim_start_matches(MARK) } else { line };
        requests.line(line).map_err(|error| anyhow!(error)).with_context(place)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_come_from_windows_are_read_or_told_how_to_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("list.txt");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("a file");
            let mut requests = Requests::new(false, false);
            of_list(&path, &mut requests)
                .map(|()| requests.list)
                .map_err(|error| format!("{error:#}"))
        };
        for list in ["http://a.test/", "GET http://a.test/\r\n# a comment\r\n"] {
            let found = read(format!("{MARK}{list}").as_bytes()).expect("requests");
            let found: Vec<_> =
                found.iter().map(|it| (&*it.method, &*it.host, &*it.target)).collect();
            assert_eq!(found, [("GET", "a.test", "/")]);
        }
        let utf16: Vec<u8> =
            "\u{feff}GET http://a.test/\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let told = read(&utf16).expect_err("no UTF-8");
        assert!(
            told.contains("list.txt:1: it is UTF-16") && told.contains("iconv -f UTF-16"),
            "{told}"
        );
        let told = read(b"http://a.test/\nhttp://b.test/\xfc\n").expect_err("no UTF-8");
        assert!(told.contains("list.txt:2: is no UTF-8: make UTF-8 of it"), "{told}");
    }
}
