//! Sends requests to both sides, no faster than allowed, and ends where the new one does harm.

use super::kept::{Counts, Kept};
use super::normal::{ANSWER, differences, kept};
use super::requests::{LeftOut, Requests, Send, is_safe};
use super::send::{Answer, Client, Target, can_be_sent};
use super::state::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// How much of host and path is shown, and of a reason.
const SHOWN: usize = 300;

/// How a comparison is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The old controller.
    pub old: Target,
    /// The new one.
    pub new: Target,
    /// Requests a second, to each of them.
    pub rate: u32,
    /// Requests at the same time.
    pub concurrency: usize,
    /// So many errors of the new one that the old one has not end it.
    pub stop_after: u64,
    /// Bodies of errors count.
    pub strict_body: bool,
}

/// What came of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The request without its query.
    pub request: String,
    /// What the old one answered.
    pub old: u16,
    /// What the new one answered.
    pub new: u16,
    /// What differs, and how; not all of it where there is much.
    pub differences: BTreeMap<String, String>,
    /// How many differences there are besides.
    #[serde(default)]
    pub further: usize,
    /// Why nothing was compared: it cannot be sent, or one side cannot be reached, or neither answers.
    #[serde(default, rename = "not-compared", skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// What the old one itself answers otherwise the next time: that does not count. Not all of it where there is much.
    #[serde(default)]
    pub unstable: Vec<String>,
    /// Whether the new one fails where the old one does not.
    #[serde(default)]
    pub harm: bool,
    /// Whether no connection to the old one came about.
    #[serde(default, rename = "old-unreachable", skip_serializing_if = "std::ops::Not::not")]
    pub old_unreachable: bool,
}

/// Why a comparison ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// So many errors of the new one that the old one has not.
    pub harms: u64,
    /// So often the old one could not be reached.
    #[serde(rename = "old-unreachable")]
    pub old_unreachable: u64,
    /// So many requests were not sent.
    pub left: usize,
}

impl Stopped {
    /// Whether the new one did harm; otherwise the old one was away.
    fn is_harm(&self) -> bool {
        self.harms >= self.old_unreachable
    }

    /// In a sentence.
    pub fn words(&self) -> String {
        let left = self.left;
        if self.is_harm() {
            let harms = self.harms;
            return format!(
                "the new side failed {harms} times where the old one did not; {left} requests were not sent"
            );
        }
        format!(
            "the old side could not be reached {} times, so that there is nothing to compare with; {left} requests were \
             not sent",
            self.old_unreachable
        )
    }
}

/// All outcomes.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The old controller.
    pub old: String,
    /// The new one.
    pub new: String,
    /// Different requests.
    pub requests: usize,
    /// What was not sent.
    #[serde(flatten)]
    pub left_out: LeftOut,
    /// Those that are answered alike.
    pub alike: usize,
    /// Those that are not.
    pub different: usize,
    /// Those of which nothing was compared.
    pub not_compared: usize,
    /// Those of which a part was not compared, since the old side answers otherwise each time.
    pub unstable: usize,
    /// Those that are counted and not among the outcomes, for want of memory.
    pub not_kept: usize,
    /// Why it ended early.
    pub stopped: Option<Stopped>,
    /// In the order of requests.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// Whether it ended early since the new one fails where the old one does not.
    pub fn is_harm(&self) -> bool {
        self.stopped.as_ref().is_some_and(Stopped::is_harm)
    }

    /// Whether each request was compared, and there was one.
    pub fn is_whole(&self) -> bool {
        self.not_compared == 0 && self.alike + self.different > 0
    }
}

/// Sends all requests to both. `told` hears how many are done.
///
/// # Errors
/// When the state cannot be written.
pub async fn compare(
    requests: &Requests,
    options: &Options,
    client: &Client,
    mut state: Option<State>,
    told: impl Fn(usize),
) -> io::Result<Report> {
    let mut known =
        state.as_mut().map(|state| std::mem::take(&mut state.known)).unwrap_or_default();
    let mut old_unreachable = 0;
    let todo: Vec<usize> = (0..requests.list.len()).filter(|number| !known.has(*number)).collect();
    let mut left = todo.into_iter();
    let mut running: JoinSet<(usize, Outcome)> = JoinSet::new();
    let mut ticks = interval(Duration::from_secs(1) / options.rate.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let both = Arc::new((client.clone(), options.clone()));
    loop {
        let stops = known.counts.harms.max(old_unreachable) >= options.stop_after;
        if !stops && running.len() < options.concurrency.max(1) && left.len() > 0 {
            ticks.tick().await;
            if let Some(number) = left.next() {
                let (both, send) = (both.clone(), requests.list[number].clone());
                running.spawn(async move { (number, one(&both.0, &both.1, &send).await) });
                continue;
            }
        }
        let Some(done) = running.join_next().await else { break };
        let (number, outcome) = done.map_err(io::Error::other)?;
        old_unreachable += u64::from(outcome.old_unreachable);
        if let Some(state) = &mut state {
            state.note(number, &outcome)?;
        }
        known.add(number, outcome);
        told(known.len());
    }
    let left = left.len();
    let harms = known.counts.harms;
    let stopped = (left > 0).then_some(Stopped { harms, old_unreachable, left });
    Ok(report(requests, options, known, stopped))
}

fn report(
    requests: &Requests,
    options: &Options,
    outcomes: Kept,
    stopped: Option<Stopped>,
) -> Report {
    let Counts { different, not_compared, unstable, not_kept, .. } = outcomes.counts;
    Report {
        old: options.old.to_string(),
        new: options.new.to_string(),
        requests: requests.list.len(),
        left_out: requests.left_out.clone(),
        alike: outcomes.len() - different - not_compared,
        different,
        not_compared,
        unstable,
        not_kept,
        stopped,
        outcomes: outcomes.into_outcomes(),
    }
}

async fn one(client: &Client, options: &Options, send: &Send) -> Outcome {
    let Options { old, new, strict_body, .. } = options;
    let nothing = |why: &str| Outcome {
        request: shown(send),
        not_compared: Some(cut(why)),
        ..Outcome::default()
    };
    if let Err(why) = can_be_sent(send, [old, new]) {
        return nothing(&format!("it cannot be sent: {why}"));
    }
    let (first, other) = tokio::join!(client.send(old, send), client.send(new, send));
    let without_old = |why: &str| Outcome { old_unreachable: first.unreachable, ..nothing(why) };
    match (&first.error, &other.error) {
        (Some(one), Some(two)) if one == two => {
            return without_old(&format!("neither answers: {one}"));
        }
        (Some(one), Some(two)) => {
            return without_old(&format!("neither answers: old {one}, new {two}"));
        }
        // Whoever cannot be reached says nothing about the request.
        (Some(one), None) if first.unreachable => {
            return without_old(&format!("the old side cannot be reached: {one}"));
        }
        _ => {}
    }
    let mut found = differences((&first, old), (&other, new), *strict_body);
    let mut unstable = Vec::new();
    // What the old side itself answers otherwise the next time is no difference between the two.
    if !found.is_empty() && is_safe(&send.method) {
        let again = client.send(old, send).await;
        let moves = differences((&first, old), (&again, old), *strict_body);
        if found.contains_key(ANSWER) && moves.contains_key(ANSWER) {
            return nothing("the old side answers one time, and fails another");
        }
        found.retain(|what, _| {
            let moved = moves.contains_key(what);
            if moved {
                unstable.push(what.clone());
            }
            !moved
        });
    }
    let harm = is_failure(&other) && !is_failure(&first);
    let (differences, further) = kept(found);
    let unstable = kept(unstable.into_iter().map(|what| (what, String::new())).collect()).0;
    let unstable = unstable.into_keys().collect();
    let (request, old, new) = (shown(send), first.status, other.status);
    Outcome { request, old, new, differences, further, unstable, harm, ..Outcome::default() }
}

/// Method, host and path; the query may hold a token. It may be a stranger's: nothing in it moves a cursor.
fn shown(send: &Send) -> String {
    let path = send.target.split('?').next().unwrap_or_default();
    let query = if send.target.contains('?') { "?…" } else { "" };
    let place = cut(&format!("{}{path}", send.host));
    format!("{} {place}{query}", cut(&send.method))
}

fn cut(text: &str) -> String {
    crate::shown::cut(text, SHOWN)
}

fn is_failure(answer: &Answer) -> bool {
    answer.error.is_some() || answer.status >= 500
}

#[cfg(test)]
mod tests {
    use super::super::report::{html, json, junit, markdown};
    use super::*;
    use std::net::TcpListener;

    /// Two sides on which nobody listens.
    fn nobody() -> Options {
        let [old, new] = std::array::from_fn(|_| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            Target { secure: false, host: "127.0.0.1".to_owned(), port }
        });
        Options { old, new, rate: 1000, concurrency: 2, stop_after: 10, strict_body: false }
    }

    fn compared(requests: &Requests, options: &Options, state: Option<State>) -> Report {
        let client = Client::new(true, false).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compare(requests, options, &client, state, |_| {})).unwrap()
    }

    #[test]
    fn where_nothing_was_compared_nothing_is_alike() {
        let mut requests = Requests::new(false, false);
        for target in ["/x", "/a b", "/\u{1b}", "/a\r\nb", "/a#b", "/\u{202e}\u{9b} "] {
            requests.list.push(Send {
                method: "GET".to_owned(),
                host: "a.test".to_owned(),
                target: target.to_owned(),
                ..Send::default()
            });
        }
        let report = compared(&requests, &nobody(), None);
        let counts = (report.alike, report.different, report.not_compared);
        assert_eq!((counts, report.is_whole()), ((0, 0, 6), false), "{report:?}");
        let whys: Vec<&str> =
            report.outcomes.iter().filter_map(|outcome| outcome.not_compared.as_deref()).collect();
        assert!(whys[0].starts_with("neither answers: cannot connect"), "{whys:?}");
        assert!(whys[1..].iter().all(|why| why.starts_with("it cannot be sent")), "{whys:?}");
        for (page, words) in [
            (markdown(&report), "- 6 NOT COMPARED"),
            (markdown(&report), "## not compared (6)"),
            (html(&report), "<td>neither answers: cannot connect"),
            (json(&report).unwrap(), "\"not-compared\": \"neither answers"),
            (junit(&report), "errors=\"6\""),
            (junit(&report), "<error message=\"not compared: neither answers"),
        ] {
            assert!(page.contains(words), "{words}: {page}");
            assert!(!page.contains(['\u{202e}', '\u{9b}', '\u{1b}']), "{page:?}");
        }
    }

    /// A side that answers each request with nothing, as HTTP has it.
    fn somebody() -> Target {
        use std::io::{Read, Write};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            }
        });
        Target { secure: false, host: "127.0.0.1".to_owned(), port }
    }

    #[test]
    fn where_the_old_side_is_gone_nothing_is_different_and_it_ends_soon() {
        let mut requests = Requests::new(false, false);
        for number in 0..20 {
            requests.line(&format!("http://a.test/{number}")).unwrap();
        }
        let gone = Options { new: somebody(), stop_after: 3, concurrency: 1, ..nobody() };
        let report = compared(&requests, &gone, None);
        assert_eq!((report.different, report.not_compared), (0, 3), "{report:?}");
        let stopped = report.stopped.as_ref().expect("it ended");
        assert_eq!((stopped.harms, stopped.old_unreachable, stopped.left), (0, 3, 17));
        let page = markdown(&report);
        assert!(page.contains("STOPPED: the old side could not be reached 3 times"), "{page}");
        assert!(page.contains("the old side cannot be reached: cannot connect"), "{page}");
        // The new one alone: that is harm.
        let gone = Options { old: somebody(), stop_after: 3, concurrency: 1, ..nobody() };
        let report = compared(&requests, &gone, None);
        let stopped = report.stopped.as_ref().expect("it ended");
        assert_eq!((report.different, stopped.harms, stopped.old_unreachable), (3, 3, 0));
        assert!(markdown(&report).contains("STOPPED: the new side failed 3 times"));
    }

    #[test]
    fn what_was_not_compared_is_tried_again() {
        let (mut requests, options) = (Requests::new(false, false), nobody());
        requests.line("http://a.test/x").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let (old, new) = (options.old.to_string(), options.new.to_string());
        let open = || State::open(&path, &old, &new, &requests).unwrap();
        assert_eq!(compared(&requests, &options, Some(open())).not_compared, 1);
        assert!(std::fs::read_to_string(&path).unwrap().contains("neither answers"));
        assert_eq!(open().known.len(), 0);
    }
}
