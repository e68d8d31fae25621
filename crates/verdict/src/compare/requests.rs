//! Requests that are to be sent, from logs, from HAR files, or from a list; each once.

use super::send::Target;
use crate::log::{FRAMING, Record};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// How many different requests are kept.
const MOST: usize = 200_000;
/// How many bytes they may take.
const BYTES: usize = 128 << 20;
/// Further fields that are about one connection, or that would make bodies hard to compare; they are not sent on.
const DROPPED: [&str; 5] = ["accept-encoding", "keep-alive", "upgrade", "te", "expect"];
/// Fields that make another method of a safe one.
const METHODS: [&str; 3] = ["x-http-method-override", "x-method-override", "x-http-method"];
/// Fields that open doors.
const SECRETS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// A request that is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Send {
    /// The method.
    pub method: String,
    /// The host that is asked for.
    pub host: String,
    /// Path and query.
    pub target: String,
    /// More header fields.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// Whether a method changes nothing (RFC 9110 section 9.2.1).
pub fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

impl Send {
    /// The memory that it takes.
    fn bytes(&self) -> usize {
        let fields = self.headers.iter().map(|(name, value)| name.capacity() + value.capacity());
        let fields =
            fields.sum::<usize>() + self.headers.capacity() * size_of::<(String, String)>();
        let Self { method, host, target, headers: _, body } = self;
        let texts = [method, host, target, body].into_iter().map(String::capacity);
        size_of::<Self>() + fields + texts.sum::<usize>()
    }

    /// Gives back what was set aside while it was read.
    fn shrink(&mut self) {
        for (name, value) in &mut self.headers {
            name.shrink_to_fit();
            value.shrink_to_fit();
        }
        self.headers.shrink_to_fit();
        let Self { method, host, target, headers: _, body } = self;
        [method, host, target, body].into_iter().for_each(String::shrink_to_fit);
    }
}

/// What is not sent, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeftOut {
    /// Their method may change something.
    pub unsafe_methods: u64,
    /// The log does not have their host.
    pub hostless: u64,
    /// What the client sent was no request.
    pub no_requests: u64,
    /// Their target is no path: `OPTIONS *`, `CONNECT`, a whole URL.
    pub pathless: u64,
    /// There were [`MOST`] already, or [`BYTES`] of them.
    pub beyond: u64,
    /// They were asked for over `https://`, and both sides are `http://`.
    pub over_tls: u64,
    /// They were asked for over `http://`, and both sides are `https://`.
    pub in_clear: u64,
    /// Lines of logs that could not be read.
    pub unread_lines: u64,
}

impl LeftOut {
    /// What there is of it, in words.
    pub fn words(&self) -> Vec<String> {
        let Self { unsafe_methods, hostless, no_requests, pathless, beyond, .. } = self;
        let Self { over_tls, in_clear, unread_lines, .. } = self;
        let beyond_words = format!(
            "not sent: there were {MOST} different ones already, or {} MiB of them",
            BYTES >> 20
        );
        [
            (
                unsafe_methods,
                "not sent: their method may change something (--unsafe-methods sends them)",
            ),
            (hostless, "not sent: the log does not have their host (give --log-format with $host)"),
            (no_requests, "not sent: what the client sent was no request"),
            (pathless, "not sent: their target is no path (such as OPTIONS *)"),
            (beyond, beyond_words.as_str()),
            (
                over_tls,
                "not sent: they were asked for over https://, and both sides are http://, which may only redirect them \
                 (compare them with https:// sides)",
            ),
            (
                in_clear,
                "not sent: they were asked for over http://, and both sides are https:// (compare them with http:// sides)",
            ),
            (unread_lines, "lines of the logs could not be read"),
        ]
        .into_iter()
        .filter(|(count, _)| **count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect()
    }
}

/// Different requests in the order in which they came, and what was left out.
#[derive(Debug, Default)]
pub struct Requests {
    /// Each once.
    pub list: Vec<Send>,
    /// What is not in it.
    pub left_out: LeftOut,
    /// Those of them that came again.
    pub again: u64,
    /// A hash of each: its key is made anew each time, so that nobody makes two requests of one hash.
    known: HashSet<u64>,
    keys: RandomState,
    /// What the list takes.
    bytes: usize,
    /// Whether methods that may change something are sent.
    with_unsafe: bool,
    /// Whether Authorization and Cookie are sent.
    with_credentials: bool,
    /// Whether both sides speak TLS; none if one does.
    secure: Option<bool>,
}

impl Requests {
    /// An empty list.
    pub fn new(with_unsafe: bool, with_credentials: bool) -> Self {
        Self { with_unsafe, with_credentials, ..Self::default() }
    }

    /// Leaves out what is asked for in the other scheme than that of both sides: it would be answered by a redirect,
    /// and nothing behind it compared.
    pub fn between(self, old: &Target, new: &Target) -> Self {
        Self { secure: (old.secure == new.secure).then_some(old.secure), ..self }
    }

    /// Adds a request, over TLS or not, if that is known.
    fn add(&mut self, mut send: Send, secure: Option<bool>) {
        if !(self.with_unsafe || is_safe(&send.method)) {
            self.left_out.unsafe_methods += 1;
            return;
        }
        if send.host.is_empty() {
            self.left_out.hostless += 1;
            return;
        }
        match (self.secure, secure) {
            (Some(false), Some(true)) => return self.left_out.over_tls += 1,
            (Some(true), Some(false)) => return self.left_out.in_clear += 1,
            _ => {}
        }
        send.headers.retain(|(name, value)| self.is_sent(name, value));
        let hash = self.keys.hash_one(&send);
        if self.known.contains(&hash) {
            self.again += 1;
            return;
        }
        send.shrink();
        let bytes = self.bytes + send.bytes();
        if self.list.len() >= MOST || bytes > BYTES {
            self.left_out.beyond += 1;
            return;
        }
        self.bytes = bytes;
        self.known.insert(hash);
        self.list.push(send);
    }

    fn is_sent(&self, name: &str, value: &str) -> bool {
        let is_secret = SECRETS.contains(&name) && !self.with_credentials;
        // Applications of the CGI kind take _ for -.
        let is_method = METHODS.contains(&name.replace('_', "-").as_str()) && !self.with_unsafe;
        let is_dropped = DROPPED.contains(&name) || FRAMING.contains(&name);
        !(is_secret
            || is_method
            || is_dropped
            || name.starts_with(':')
            || value.contains(['\r', '\n']))
    }

    /// Adds a request of a log.
    pub fn record(&mut self, record: Record) {
        if record.method.is_empty() {
            self.left_out.no_requests += 1;
            return;
        }
        if !record.target.starts_with('/') {
            self.left_out.pathless += 1;
            return;
        }
        let Record { method, target, host, headers, secure, .. } = record;
        let host = host.unwrap_or_default();
        self.add(Send { method, host, target, headers, body: String::new() }, secure);
    }

    /// Adds the requests of a HAR file.
    ///
    /// # Errors
    /// What is wrong with it, by line and column.
    pub fn har(&mut self, text: &str) -> Result<(), String> {
        let har: Har = serde_json::from_str(text).map_err(|error| {
            format!("{error}: it is no HAR file; a browser's developer tools save one (\"Save all as HAR\")")
        })?;
        for (index, HarEntry { request }) in har.log.entries.into_iter().enumerate() {
            let (secure, host, target) =
                of_url(&request.url).map_err(|why| format!("entry {}: {why}", index + 1))?;
            let headers = request.headers.into_iter();
            let headers =
                headers.map(|pair| (pair.name.to_ascii_lowercase(), pair.value)).collect();
            let body = request.post_data.and_then(|data| data.text).unwrap_or_default();
            self.add(Send { method: request.method, host, target, headers, body }, Some(secure));
        }
        Ok(())
    }

    /// Adds a line of a list: `URL`, `METHOD URL`, or an object of JSON; empty lines and those with `#` are none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let written: Written = if line.starts_with('{') {
            serde_json::from_str(line).map_err(|error| {
                format!("{error}: write {{\"method\": \"GET\", \"url\": \"https://shop.example/\", \"headers\": {{}}}}")
            })?
        } else {
            let (method, url) = line.split_once(' ').unwrap_or(("GET", line));
            Written {
                method: Some(method.to_owned()),
                url: url.trim().to_owned(),
                ..Written::default()
            }
        };
        let (secure, host, target) = of_url(&written.url)?;
        let method = written.method.unwrap_or_else(|| "GET".to_owned());
        let headers = written.headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let body = written.body.unwrap_or_default();
        self.add(Send { method, host, target, headers, body }, Some(secure));
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    body: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Har {
    log: HarLog,
}

#[derive(Debug, Deserialize)]
struct HarLog {
    entries: Vec<HarEntry>,
}

#[derive(Debug, Deserialize)]
struct HarEntry {
    request: HarRequest,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<HarPair>,
    post_data: Option<HarBody>,
}

#[derive(Debug, Deserialize)]
struct HarPair {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct HarBody {
    text: Option<String>,
}

/// Whether a URL is one of TLS, its host (with its port) and its target, byte for byte.
fn of_url(url: &str) -> Result<(bool, String, String), String> {
    let over_tls = url.strip_prefix("https://").map(|rest| (true, rest));
    let found = over_tls.or_else(|| url.strip_prefix("http://").map(|rest| (false, rest)));
    let (secure, rest) = found
        .ok_or_else(|| format!("{url:?} is no URL: write one such as https://shop.example/cart"))?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if host.is_empty() || url.contains(char::is_whitespace) {
        return Err(format!(
            "{url:?} has no host, or a space in it: write one such as https://shop.example/cart"
        ));
    }
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    Ok((secure, host.to_owned(), target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sent_once_and_what_may_change_something_is_left_out() {
        let mut requests = Requests::new(false, false);
        for line in [
            "# a list",
            "",
            "https://a.test/x?y=1",
            "GET http://a.test/x?y=1",
            "DELETE https://a.test/x",
        ] {
            requests.line(line).unwrap();
        }
        let json =
            r#"{"url": "https://b.test", "headers": {"Cookie": "a=b", "X-A": "1", "Host": "c"}}"#;
        requests.line(json).unwrap();
        let found: Vec<String> = requests
            .list
            .iter()
            .map(|it| format!("{} {}{}", it.method, it.host, it.target))
            .collect();
        assert_eq!(found, ["GET a.test/x?y=1", "GET b.test/"]);
        assert_eq!(requests.list[1].headers, [("x-a".to_owned(), "1".to_owned())]);
        assert_eq!((requests.again, requests.left_out.unsafe_methods), (1, 1));
        for wrong in ["a.test/x", "GET /x", "{\"url\": 1}", "https:///x", "https://a.test/x y"] {
            assert!(requests.line(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_left_out_is_counted_by_its_true_reason() {
        let mut requests = Requests::new(false, false);
        let record = |method: &str, target: &str, host: Option<&str>| Record {
            method: method.to_owned(),
            target: target.to_owned(),
            host: host.map(ToOwned::to_owned),
            ..Record::default()
        };
        requests.record(record("OPTIONS", "*", Some("a.test")));
        requests.record(record("", "\u{16}\u{3}", Some("a.test")));
        requests.record(record("GET", "/", None));
        let LeftOut { hostless, no_requests, pathless, .. } = requests.left_out;
        assert_eq!((hostless, no_requests, pathless), (1, 1, 1));
        let words = requests.left_out.words().join("\n");
        assert!(words.contains("1 not sent: their target is no path"), "{words}");
    }

    #[test]
    fn what_was_asked_for_in_the_other_scheme_is_left_out_and_counted() {
        let sides = |old: &str, new: &str| {
            let [old, new] = [old, new].map(|url| url.parse::<Target>().unwrap());
            let mut requests = Requests::new(false, false).between(&old, &new);
            for url in ["https://a.test/x", "http://a.test/y", "https://a.test/z"] {
                requests.line(url).unwrap();
            }
            for secure in [Some(true), Some(false), None] {
                let (method, target) = ("GET".to_owned(), format!("/{secure:?}"));
                let host = Some("a.test".to_owned());
                requests.record(Record { method, target, host, secure, ..Record::default() });
            }
            let LeftOut { over_tls, in_clear, .. } = requests.left_out;
            (requests.list.len(), over_tls, in_clear, requests.left_out.words().join("\n"))
        };
        let (sent, over_tls, in_clear, words) = sides("http://old", "http://new:8080");
        assert_eq!((sent, over_tls, in_clear), (3, 3, 0));
        assert!(
            words.starts_with("3 not sent: ") && words.contains("with https:// sides"),
            "{words}"
        );
        let (sent, over_tls, in_clear, words) = sides("https://old", "https://new");
        assert_eq!((sent, over_tls, in_clear), (4, 0, 2));
        assert!(words.contains("with http:// sides"), "{words}");
        assert_eq!(sides("http://old", "https://new").0, 6);
    }

    #[test]
    fn a_safe_method_is_not_made_another_one_by_a_field() {
        let line = r#"{"url": "https://a.test/", "headers": {"X-HTTP-Method-Override": "DELETE",
            "X_Method_Override": "PUT", "x-http-method": "PUT", "x-a": "1"}}"#;
        let sent = |with_unsafe| {
            let mut requests = Requests::new(with_unsafe, false);
            requests.line(line).unwrap();
            requests.list[0].headers.len()
        };
        assert_eq!((sent(false), sent(true)), (1, 4));
    }

    #[test]
    fn long_requests_are_kept_once_and_bounded_in_sum() {
        let mut requests = Requests::new(false, false);
        let long = "x".repeat(1 << 20);
        for number in 0..130 {
            let mut send = Send { method: "GET".into(), host: "a.test".into(), ..Send::default() };
            send.target = format!("/{number}{long}");
            send.target.reserve(1 << 20);
            requests.add(send, None);
        }
        assert_eq!((requests.list.len(), requests.left_out.beyond), (127, 3));
        let kept = requests.list.iter().map(Send::bytes).sum::<usize>();
        assert!(kept <= BYTES && requests.known.len() == 127, "{kept}");
    }

    #[test]
    fn har_files_are_read() {
        let har = r#"{"log": {"entries": [{"request": {"method": "POST", "url": "https://a.test/x#y", "headers": [{"name": "Cookie", "value": "a"}], "postData": {"text": "b"}}}]}}"#;
        let mut requests = Requests::new(true, true);
        requests.har(har).unwrap();
        let headers = vec![("cookie".to_owned(), "a".to_owned())];
        let (method, host, target, body) =
            ("POST".to_owned(), "a.test".to_owned(), "/x".to_owned(), "b".to_owned());
        assert_eq!(requests.list, [Send { method, host, target, headers, body }]);
        assert!(requests.har("{\"log\": {}}").unwrap_err().contains("line 1"));
    }
}
