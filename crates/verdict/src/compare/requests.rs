//! Requests that are to be sent, from logs, from HAR files, or from a list; each once.

use crate::log::Record;
use serde::Deserialize;
use std::collections::BTreeSet;

/// How many different requests are kept.
pub const MOST: usize = 200_000;
/// Fields that frame a message, or that would make bodies hard to compare; they are not sent on.
const DROPPED: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "keep-alive",
    "upgrade",
    "te",
    "expect",
];
/// Fields that open doors.
const SECRETS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// A request that is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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

/// Different requests in the order in which they came, and what was left out.
#[derive(Debug, Default)]
pub struct Requests {
    /// Each once.
    pub list: Vec<Send>,
    /// Left out since their method may change something.
    pub unsafe_methods: u64,
    /// Left out since the log does not have their host.
    pub hostless: u64,
    /// Left out since there were [`MOST`] already.
    pub beyond: u64,
    /// Those of them that came again.
    pub again: u64,
    known: BTreeSet<Send>,
    /// Whether methods that may change something are sent.
    with_unsafe: bool,
    /// Whether Authorization and Cookie are sent.
    with_credentials: bool,
}

impl Requests {
    /// An empty list.
    pub fn new(with_unsafe: bool, with_credentials: bool) -> Self {
        Self { with_unsafe, with_credentials, ..Self::default() }
    }

    fn add(&mut self, mut send: Send) {
        if !(self.with_unsafe || is_safe(&send.method)) {
            self.unsafe_methods += 1;
            return;
        }
        if send.host.is_empty() {
            self.hostless += 1;
            return;
        }
        send.headers.retain(|(name, value)| {
            let is_secret = SECRETS.contains(&name.as_str()) && !self.with_credentials;
            !(is_secret
                || name.starts_with(':')
                || DROPPED.contains(&name.as_str())
                || value.contains(['\r', '\n']))
        });
        if self.known.contains(&send) {
            self.again += 1;
        } else if self.list.len() >= MOST {
            self.beyond += 1;
        } else {
            self.known.insert(send.clone());
            self.list.push(send);
        }
    }

    /// Adds a request of a log.
    pub fn record(&mut self, record: Record) {
        if record.method.is_empty() || !record.target.starts_with('/') {
            self.hostless += 1;
            return;
        }
        let Record { method, target, host, headers, .. } = record;
        self.add(Send {
            method,
            host: host.unwrap_or_default(),
            target,
            headers,
            body: String::new(),
        });
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
            let (host, target) =
                of_url(&request.url).map_err(|why| format!("entry {}: {why}", index + 1))?;
            let headers = request.headers.into_iter();
            let headers =
                headers.map(|pair| (pair.name.to_ascii_lowercase(), pair.value)).collect();
            let body = request.post_data.and_then(|data| data.text).unwrap_or_default();
            self.add(Send { method: request.method, host, target, headers, body });
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
        let (host, target) = of_url(&written.url)?;
        let method = written.method.unwrap_or_else(|| "GET".to_owned());
        let headers = written.headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        self.add(Send { method, host, target, headers, body: written.body.unwrap_or_default() });
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

/// Host (with its port) and target of a URL, byte for byte.
fn of_url(url: &str) -> Result<(String, String), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest
        .ok_or_else(|| format!("{url:?} is no URL: write one such as https://shop.example/cart"))?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if host.is_empty() || url.contains(char::is_whitespace) {
        return Err(format!(
            "{url:?} has no host, or a space in it: write one such as https://shop.example/cart"
        ));
    }
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    Ok((host.to_owned(), target))
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
        assert_eq!((requests.again, requests.unsafe_methods), (1, 1));
        for wrong in ["a.test/x", "GET /x", "{\"url\": 1}", "https:///x", "https://a.test/x y"] {
            assert!(requests.line(wrong).is_err(), "{wrong}");
        }
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
