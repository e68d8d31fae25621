//! Objects that do not fit, lists that are taken again, and what an error leads to.

use super::*;
use crate::Following;
use k8s_openapi::api::core::v1::Service;
use kube::Resource;
use kube::core::Status;
use kube::core::{ObjectList, WatchEvent};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::{Arc, OnceLock};

const GOOD: &str = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}"#;
const BAD: &str =
    r#"{"metadata":{"name":"b","namespace":"n","resourceVersion":"8"},"spec":{"ports":7}}"#;

#[test]
fn an_object_that_does_not_fit_costs_only_itself_in_a_list() {
    let text = format!(
        r#"{{"kind":"ServiceList","apiVersion":"v1","metadata":{{}},"items":[{BAD},{GOOD}]}}"#
    );
    let list: ObjectList<Guarded<Service>> = serde_json::from_str(&text).expect("a list");
    assert_eq!(list.items[0].key(), ObjectKey::new("n", "b"));
    assert!(list.items[0].object.as_ref().is_err_and(|why| why.contains("invalid type")));
    assert_eq!(list.items[1].key(), ObjectKey::new("n", "a"));
    assert!(list.items[1].object.is_ok());
}

#[test]
fn an_object_that_does_not_fit_keeps_its_version_in_a_watch() {
    let text = format!(r#"{{"type":"MODIFIED","object":{BAD}}}"#);
    let event: WatchEvent<Guarded<Service>> = serde_json::from_str(&text).expect("an event");
    let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
    assert_eq!(object.meta().resource_version.as_deref(), Some("8"));
    assert!(object.object.is_err());
}

#[test]
fn a_port_that_is_no_port_is_told_like_a_wrong_type() {
    let text = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"},"spec":{"ports":[{"port":0}]}}"#;
    let object: Guarded<Service> = serde_json::from_str(text).expect("an object");
    assert_eq!(object.key(), ObjectKey::new("n", "a"));
    assert!(
        object.into_object().is_err_and(|why| why.contains("spec.ports[0].port is missing or 0"))
    );
}

/// How long the lists of these tests are trusted.
const RELIST: Duration = Duration::from_secs(60);

fn service(name: &str) -> Guarded<Service> {
    in_version(name, "7")
}

fn in_version(name: &str, version: &str) -> Guarded<Service> {
    let text = json!({"metadata": {"name": name, "namespace": "n", "resourceVersion": version}});
    serde_json::from_str(&text.to_string()).expect("an object")
}

fn refusal(code: u16) -> Box<Status> {
    let status = json!({"status": "Failure", "message": "no", "reason": "No", "code": code});
    Box::new(serde_json::from_value(status).expect("a status"))
}

type Events = Vec<watcher::Result<Event<Guarded<Service>>>>;

/// A watch that nobody runs yet, and what it tells.
fn watch() -> (Watch<Service>, mpsc::Receiver<(WatchId, News)>) {
    let config = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
    let client = kube::Client::try_from(config).expect("a client");
    let (sender, news) = mpsc::channel(64);
    let watch = Watch::<Service> {
        id: 3,
        api: Api::all(client),
        since: Since::default(),
        config: Config::default().streaming_lists(),
        relist: RELIST,
        once: None,
        keep: Box::new(|object| object),
        sender,
        report: Following::default().add(Kind::Service, false),
        right: Right::OfKind,
    };
    (watch, news)
}

/// Runs a watch over these events, and says what it told and how it is configured afterwards.
async fn told(events: Events) -> (Vec<String>, InitialListStrategy) {
    let (mut watch, news) = watch();
    let mut progress = Progress::new(&watch.report);
    watch.follow(&mut futures_util::stream::iter(events), &mut progress).await;
    let strategy = watch.config.initial_list_strategy.clone();
    drop(watch);
    (words(news).await, strategy)
}

/// All that a watch told, in words.
async fn words(mut news: mpsc::Receiver<(WatchId, News)>) -> Vec<String> {
    let mut told = Vec::new();
    while let Some((id, news)) = news.recv().await {
        assert_eq!(id, 3);
        told.push(match news {
            News::Listed(changes) => {
                format!("listed {}", changes.iter().map(name).collect::<Vec<_>>().join(" "))
            }
            News::Changed(change) => name(&change),
            News::Followed => "followed".to_owned(),
            News::Turns => "turns".to_owned(),
            News::Absent(changes) => {
                format!("absent {}", changes.iter().map(name).collect::<Vec<_>>().join(" "))
            }
            News::Trouble { code, .. } => format!("trouble {code:?}"),
        });
    }
    told
}

fn name(change: &Change) -> String {
    match change {
        Change::Put(object) => format!("+{}", object.key().name),
        Change::Malformed(_, key, _) => format!("?{}", key.name),
        Change::Removed(_, key) => format!("-{}", key.name),
    }
}

#[tokio::test]
async fn of_what_changes_while_a_list_comes_the_last_version_is_told() {
    let (told, _) = told(vec![
        Ok(Event::Init),
        Ok(Event::InitApply(service("a"))),
        Ok(Event::InitApply(service("b"))),
        Ok(Event::InitApply(service("a"))),
        Ok(Event::InitDone),
    ])
    .await;
    assert_eq!(told, ["listed +b +a"]);
}

#[tokio::test]
async fn a_list_that_is_taken_again_tells_what_went_away_in_between() {
    let bad = || serde_json::from_str::<Guarded<Service>>(BAD).expect("an object");
    let (told, _) = told(vec![
        Ok(Event::Init),
        Ok(Event::InitApply(service("a"))),
        Ok(Event::InitApply(bad())),
        Ok(Event::InitDone),
        Ok(Event::Apply(service("c"))),
        Ok(Event::Delete(service("a"))),
        Ok(Event::Init),
        Ok(Event::InitApply(service("d"))),
        Ok(Event::InitDone),
    ])
    .await;
    assert_eq!(told[..3], ["listed +a ?b", "+c", "-a"]);
    let mut last: Vec<_> = told[3].split(' ').collect();
    last.sort_unstable();
    assert_eq!(last, ["+d", "-b", "-c", "listed"]);
}

#[tokio::test]
async fn who_looks_once_lists_and_watches_nothing() {
    let (mut watch, news) = watch();
    watch.once = Some(Once::Needed);
    let events = [Ok(Event::Init), Ok(Event::InitApply(service("a"))), Ok(Event::InitDone)];
    let refused = watcher::Error::WatchStartFailed(kube::Error::Api(refusal(403)));
    let mut events = futures_util::stream::iter(events.into_iter().chain([Err(refused)]));
    let mut progress = Progress::new(&watch.report);
    watch.follow(&mut events, &mut progress).await;
    assert!(events.next().await.is_some(), "it went on to watch");
    drop(watch);
    assert_eq!(words(news).await, ["listed +a"]);
}

#[tokio::test]
async fn half_a_list_is_never_told() {
    let (mut watch, news) = watch();
    let begun = |name| [Ok(Event::Init), Ok(Event::InitApply(service(name)))];
    let mut events = futures_util::stream::iter(
        begun("a").into_iter().chain(begun("b")).chain([Ok(Event::InitDone)]).chain(begun("c")),
    );
    let mut progress = Progress::new(&watch.report);
    watch.follow(&mut events, &mut progress).await;
    assert_eq!(watch.config.initial_list_strategy, InitialListStrategy::ListWatch, "by pages then");
    drop(events);
    let pages = begun("d").into_iter().chain(begun("b")).chain([Ok(Event::InitDone)]);
    watch.follow(&mut futures_util::stream::iter(pages.chain(begun("c"))), &mut progress).await;
    drop(watch);
    assert_eq!(words(news).await, ["listed +b"]);
}

#[tokio::test]
async fn a_server_that_streams_no_lists_is_asked_for_a_plain_one() {
    let refused = watcher::Error::WatchStartFailed(kube::Error::Api(refusal(422)));
    let (told, strategy) = told(vec![Err(refused), Ok(Event::Apply(service("a")))]).await;
    assert_eq!((told, strategy), (Vec::new(), InitialListStrategy::ListWatch));
}

#[tokio::test]
async fn a_watch_that_is_too_old_to_be_resumed_begins_again_and_others_go_on() {
    let gone = watcher::Error::WatchStartFailed(kube::Error::Api(refusal(410)));
    let (after_gone, _) = told(vec![Err(gone), Ok(Event::Apply(service("a")))]).await;
    assert_eq!(after_gone, ["trouble Some(410)"]);
    let cut = watcher::Error::WatchError(refusal(500));
    let (after_cut, strategy) = told(vec![Err(cut), Ok(Event::Apply(service("a")))]).await;
    assert_eq!(after_cut, ["trouble Some(500)", "+a"]);
    assert_eq!(strategy, InitialListStrategy::StreamingList);
}

#[tokio::test]
async fn a_server_that_is_asked_too_often_is_asked_again_later_and_nothing_is_listed_anew() {
    let busy = watcher::Error::WatchStartFailed(kube::Error::Api(refusal(429)));
    let began = Instant::now();
    let (told, strategy) = told(vec![Err(busy), Ok(Event::Apply(service("a")))]).await;
    assert_eq!(told, ["trouble Some(429)", "+a"]);
    assert!(began.elapsed() >= Duration::from_millis(100), "without a pause it is a busy loop");
    assert_eq!(strategy, InitialListStrategy::StreamingList);
}

/// The events of a list.
fn list(objects: &[(&str, &str)]) -> Events {
    let object = |(name, version): &(&str, &str)| Ok(Event::InitApply(in_version(name, version)));
    let objects = objects.iter().map(object);
    std::iter::once(Ok(Event::Init)).chain(objects).chain([Ok(Event::InitDone)]).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_watch_left_out_is_found_by_the_next_list_and_what_is_known_is_not_told_again() {
    let (mut watch, news) = watch();
    let mut progress = Progress::new(&watch.report);
    for events in
        [list(&[("a", "1"), ("b", "2"), ("c", "3")]), list(&[("a", "1"), ("b", "4"), ("d", "5")])]
    {
        // Nothing more comes: only the end of trust ends this.
        let events = futures_util::stream::iter(events);
        let began = Instant::now();
        watch.follow(&mut events.chain(futures_util::stream::pending()), &mut progress).await;
        assert!((RELIST / 2..RELIST * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
    drop(watch);
    assert_eq!(words(news).await, ["listed +a +b +c", "listed +b +d -c"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_takes_as_long_as_it_takes() {
    let (mut watch, news) = watch();
    let slow = futures_util::stream::iter(list(&[("a", "1")])).then(|event| async {
        #[expect(clippy::disallowed_methods, reason = "the clock of this test is paused")]
        sleep(RELIST * 3).await;
        event
    });
    let mut progress = Progress::new(&watch.report);
    watch.follow(&mut pin!(slow), &mut progress).await;
    drop(watch);
    assert_eq!(words(news).await, ["listed +a"]);
}

/// Everything that is logged on this thread while the result lives.
fn log() -> (Arc<Mutex<Vec<u8>>>, tracing::subscriber::DefaultGuard) {
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    // With one subscriber alone, a line that another thread comes across first would be off for this one, too.
    static BESIDE: OnceLock<tracing::Dispatch> = OnceLock::new();
    let silent = || tracing_subscriber::fmt().with_writer(std::io::sink).finish().into();
    BESIDE.get_or_init(silent);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let own = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || Lines(own.clone()));
    (lines, tracing::subscriber::set_default(subscriber.finish()))
}

#[tokio::test(start_paused = true)]
async fn what_is_forbidden_for_a_moment_is_asked_for_again_soon_and_what_stays_so_seldom() {
    let refused = || watcher::Error::WatchStartFailed(kube::Error::Api(refusal(403)));
    let paused = async |count: usize| {
        let began = Instant::now();
        let events = (0..count).map(|_| Err(refused())).collect();
        let (told, _) = told(events).await;
        assert_eq!(told.len(), count);
        began.elapsed()
    };
    let (few, many) = (paused(3).await, paused(50).await);
    assert!(few < Duration::from_secs(2), "{few:?}");
    assert!(many > Duration::from_secs(40 * 15) && many < Duration::from_secs(50 * 30), "{many:?}");
    assert_ne!(paused(50).await, many, "replicas do not come back in step");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_was_taken_away_comes_back_to_all_kinds_at_once() {
    for was_listed in [true, false] {
        let (mut watch, _news) = watch();
        let following = Following::default();
        watch.report = following.add(Kind::Service, false);
        let other = following.add(Kind::Ingress, false);
        let mut progress = Progress::new(&watch.report);
        if was_listed {
            watch.event(Event::Init, &mut progress).await;
            watch.event(Event::InitDone, &mut progress).await;
        }
        let refused = || watcher::Error::WatchStartFailed(kube::Error::Api(refusal(403)));
        for _ in 0..10 {
            watch.trouble(&refused(), &mut progress).await;
        }
        let began = Instant::now();
        let later = async {
            #[expect(clippy::disallowed_methods, reason = "the clock of this test is paused")]
            sleep(SETTLED).await;
            other.followed();
        };
        let error = refused();
        tokio::join!(watch.trouble(&error, &mut progress), later);
        assert_eq!(began.elapsed() == SETTLED, was_listed, "{:?}", began.elapsed());
        // The right to another kind has come after this one was asked for, and before the answer.
        other.followed();
        let began = Instant::now();
        watch.trouble(&refused(), &mut progress).await;
        assert_eq!(began.elapsed().is_zero(), was_listed, "{:?}", began.elapsed());
        // What it is told itself is no reason to hurry.
        watch.report.followed();
        progress.others.mark_unchanged();
        let began = Instant::now();
        watch.trouble(&refused(), &mut progress).await;
        assert!(began.elapsed() > Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

/// How long a watch may have begun before the next one, in these tests.
const AWAY: Duration = Duration::from_secs(50);

/// How often each of these was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    lists: usize,
    watches: usize,
    /// Lists of one, to see whether there is an answer.
    tries: usize,
}

/// An API server that has one Service and answers each watch so. It answers nobody who asks 1,000 times.
fn server(
    watched: impl Fn(usize) -> (u16, String) + Send + 'static,
) -> (kube::Client, Arc<Mutex<Asked>>) {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let counted = Arc::clone(&asked);
    let answer = move |request: http::Request<kube::client::Body>| {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.contains("watch=true");
        let is_try = query.split('&').any(|pair| pair == "limit=1");
        let mut asked = counted.lock();
        let Asked { lists, watches, tries } = &mut *asked;
        let count = if is_watch {
            watches
        } else if is_try {
            tries
        } else {
            lists
        };
        *count += 1;
        let (is_asked_too_often, number) = (*count > 1000, *count);
        let list = format!(
            r#"{{"kind":"ServiceList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{GOOD}]}}"#
        );
        let (code, text) = if is_watch { watched(number) } else { (200, list) };
        async move {
            if is_asked_too_often || code == 0 {
                std::future::pending::<()>().await;
            }
            let body = kube::client::Body::from(text.into_bytes());
            http::Response::builder().status(code).body(body)
        }
    };
    (kube::Client::new(tower::service_fn(answer), "default"), asked)
}

/// What was asked for within ten minutes, and the lines of the log.
async fn asked_of((client, asked): (kube::Client, Arc<Mutex<Asked>>)) -> (Asked, String) {
    let (lines, _guard) = log();
    let (mut watch, news) = watch();
    let (client, since) = watching(&client, AWAY);
    (watch.api, watch.since) = (Api::all(client), since);
    watch.config = Config::default();
    watch.relist = Duration::from_secs(3600);
    let read = tokio::spawn(words(news));
    drop(timeout(Duration::from_secs(600), watch.run()).await);
    drop(read.await);
    let text = String::from_utf8(lines.lock().clone()).expect("text");
    (*asked.lock(), text)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_ended_at_once_is_asked_for_seldom_and_told_once() {
    let (asked, text) = asked_of(server(|_| (200, String::new()))).await;
    assert!((100..500).contains(&asked.watches) && asked.lists == 1, "{asked:?}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("watches end at once, and nothing is told in them"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn where_each_watch_is_too_old_less_and_less_is_listed_and_that_is_told_once() {
    let status = json!({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410});
    let event = json!({"type": "ERROR", "object": status});
    for (code, watched) in [(410, status.to_string()), (200, event.to_string())] {
        let (asked, text) = asked_of(server(move |_| (code, watched.clone()))).await;
        assert!((20..60).contains(&asked.lists), "{asked:?}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("each watch is too old to be resumed, however new"), "{text}");
    }
}

/// What tells that all is known up to this version.
fn bookmark(version: &str) -> String {
    let meta = json!({"resourceVersion": version});
    let object = json!({"kind": "Service", "apiVersion": "v1", "metadata": meta});
    json!({"type": "BOOKMARK", "object": object}).to_string()
}

#[tokio::test(start_paused = true)]
async fn after_a_long_outage_all_is_listed_anew_and_after_a_short_one_it_is_not() {
    // As often as not the last watch before an outage is cut, or there was none after the list.
    for first in [Some(bookmark("9")), Some(String::new()), None] {
        for (seconds, lists) in [(20, 1), (70, 2)] {
            let (first, began) = (first.clone(), Instant::now());
            let (asked, text) = asked_of(server(move |number| match (number, &first) {
                (1, Some(first)) => (200, first.clone()),
                _ if began.elapsed() < Duration::from_secs(seconds) => (503, String::new()),
                // Then each says something, as the last one that is answered does.
                _ => (200, bookmark("9")),
            }))
            .await;
            assert_eq!(asked.lists, lists, "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_resumed_at_a_version_that_is_still_to_come_is_given_up_for_a_list() {
    for (version, lists) in [("9", 1), ("10", 2)] {
        let object = GOOD.replace("\"a\"", "\"b\"").replace("\"7\"", &format!("\"{version}\""));
        // An object has the version, or nothing that is left does.
        for event in [format!(r#"{{"type":"ADDED","object":{object}}}"#), bookmark(version)] {
            // The second one is refused, and all later ones say nothing for ever.
            let (client, asked) = server(move |number| match number {
                1 => (200, event.clone()),
                2 => (503, String::new()),
                _ => (0, String::new()),
            });
            let (asked, text) = asked_of((client, asked)).await;
            assert_eq!(asked.lists, lists, "{version}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_known_before_a_watch_was_too_old_is_told_again() {
    let (mut watch, news) = watch();
    let mut progress = Progress::new(&watch.report);
    let gone = || Err(watcher::Error::WatchError(refusal(410)));
    let events = list(&[("a", "1"), ("b", "2")]).into_iter().chain([gone()]);
    let events = events.chain(list(&[("a", "1")]));
    watch.follow(&mut futures_util::stream::iter(events), &mut progress).await;
    drop(watch);
    let told = words(news).await;
    assert_eq!(told, ["listed +a +b", "trouble Some(410)", "listed +a -b"]);
}

#[tokio::test(start_paused = true)]
async fn another_reason_is_told_once_and_what_waits_for_it_knows() {
    let (lines, _guard) = log();
    let (mut watch, _news) = watch();
    let following = Following::default();
    watch.report = following.add(Kind::Service, false);
    let mut progress = Progress::new(&watch.report);
    let refused = |code| watcher::Error::WatchStartFailed(kube::Error::Api(refusal(code)));
    for code in [500, 403, 403, 500, 403] {
        watch.trouble(&refused(code), &mut progress).await;
    }
    let text = String::from_utf8(lines.lock().clone()).expect("text");
    let told = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!((told("500 No: no"), told("403 No: no")), (1, 1), "{text}");
    assert_eq!(following.missing().as_deref(), Some("Service: 403 No"));
    assert!(following.kinds()["Service"].is_some());
    watch.event(Event::Init, &mut progress).await;
    watch.event(Event::InitDone, &mut progress).await;
    assert_eq!((following.missing(), following.kinds()["Service"]), (None, None));
    let text = String::from_utf8(lines.lock().clone()).expect("text");
    assert!(text.contains("the API server is followed again"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_not_ready_is_no_line_of_the_log_and_is_known_to_be_over() {
    let (lines, _guard) = log();
    let (services, _news) = watch();
    let following = Following::default();
    let Watch { config, relist, sender, right, .. } = services;
    let mut watch = Watch::<objects::gateway::RawHttpRoute> {
        id: 3,
        api: Api::all(services.api.into_client()),
        since: services.since,
        config,
        relist,
        once: None,
        keep: Box::new(|object| object),
        sender,
        report: following.add(Kind::HttpRoute, false),
        right,
    };
    let mut progress = Progress::new(&watch.report);
    let text = || String::from_utf8(lines.lock().clone()).expect("text");
    let storage =
        json!({"code": 429, "message": "storage is (re)initializing", "reason": "TooManyRequests"});
    let storage: Box<Status> = Box::new(serde_json::from_value(storage).expect("a status"));
    for status in [refusal(404), storage] {
        let error = watcher::Error::WatchStartFailed(kube::Error::Api(status));
        watch.trouble(&error, &mut progress).await;
        assert!(progress.in_trouble(), "it is asked whether it is over");
        assert!(following.kinds()["HTTPRoute"].is_some());
        watch.succeed(&mut progress);
        assert!(following.kinds()["HTTPRoute"].is_none() && !progress.in_trouble());
        assert_eq!(text(), "");
    }
    // That the API server has too much to do is one.
    let busy = watcher::Error::WatchStartFailed(kube::Error::Api(refusal(429)));
    watch.trouble(&busy, &mut progress).await;
    watch.succeed(&mut progress);
    assert_eq!(text().lines().count(), 2, "{}", text());
}
