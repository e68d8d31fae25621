//! What varies from run to run becomes a placeholder.

use std::{collections::BTreeSet, net::IpAddr};

use fancy_regex::Regex;

use super::{Answer, Body, Request, Seen};
use crate::wire::Pair;

/// Replaces volatile values, knowing where the client and the listeners are.
pub struct Normaliser {
    dates: Regex,
    nonces: Regex,
    cookies: Regex,
    pods: Regex,
    request_ids: Regex,
    announced: Regex,
    client: Regex,
    client_text: String,
    http: String,
    https: String,
}

/// A part of a regular expression that must never be wrong.
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is written in this file")
}

impl Normaliser {
    /// For a client with this address and a controller that listens on these ports.
    #[must_use]
    pub fn new(client: IpAddr, http: u16, https: u16) -> Self {
        let client_text = client.to_string();
        Self {
            dates: regex(
                r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d\d[ -]\w{3}[ -]\d{2,4} \d\d:\d\d:\d\d GMT",
            ),
            nonces: regex(r#"nonce="[0-9a-f]+""#),
            cookies: regex(r"(?:[0-9a-f]{32}|\d{9,}\.\d+\.\d+\.\d+)\|[0-9a-f]{32}"),
            pods: regex(r"(?<![\d.])(?:10\.77\.0\.\d+|127\.0\.0\.1):\d+"),
            request_ids: regex(r#""X-Request-ID": "[0-9a-f]{32}""#),
            announced: regex(r"(PROXY TCP\d) (\S+) (\S+) \d+ \d+"),
            client: regex(&format!(r"(?<![\d.]){}(?!\d)", fancy_regex::escape(&client_text))),
            client_text,
            http: http.to_string(),
            https: https.to_string(),
        }
    }

    /// An answer to `request`, made comparable.
    #[must_use]
    pub fn answer(&self, answer: Answer, request: &Request) -> Answer {
        let body = match answer.body {
            Some(Body::Text(text)) => self.body(text),
            other => other,
        };
        Answer {
            headers: answer.headers.map(|headers| self.headers(headers, request)),
            body,
            ..answer
        }
    }

    /// What a fixture saw of `request`, made comparable.
    #[must_use]
    pub fn seen(&self, seen: Seen, request: &Request) -> Seen {
        let body = match seen.body {
            Some(Body::Text(text)) if text.is_empty() => None,
            Some(Body::Text(text)) => Some(Body::Text(self.announcement(text))),
            other => other,
        };
        Seen { headers: seen.headers.map(|headers| self.headers(headers, request)), body, ..seen }
    }

    fn body(&self, text: String) -> Option<Body> {
        if text.is_empty() || text.starts_with(r#"{"service":"#) {
            return None;
        }
        if text.contains("<center>nginx") {
            return Some(Body::Text("<error-page>".to_owned()));
        }
        let text = self.announcement(text);
        let replacement = r#""X-Request-ID": "<request-id>""#;
        Some(Body::Text(self.request_ids.replace_all(&text, replacement).into_owned()))
    }

    /// Lines of the PROXY protocol in a body: their ports vary, and the client's address does.
    fn announcement(&self, text: String) -> String {
        if !text.contains("PROXY TCP") {
            return text;
        }
        let text = self.announced.replace_all(&text, "$1 $2 <address> <port> <port>");
        text.replace(&self.client_text, "<client-address>")
    }

    fn headers(&self, headers: Vec<Pair>, request: &Request) -> Vec<Pair> {
        let sent: BTreeSet<&str> =
            request.headers.iter().map(|(_, value)| value.as_str()).collect();
        let normal = |(name, value): Pair| {
            let value = self.header(&name, value, &sent);
            (name, value)
        };
        headers.into_iter().map(normal).collect()
    }

    fn header(&self, name: &str, value: String, sent: &BTreeSet<&str>) -> String {
        let name = name.to_lowercase();
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        match name.as_str() {
            "date" => return "<date>".to_owned(),
            _ if value.starts_with("-----BEGIN%20CERTIFICATE") => {
                return "<certificate>".to_owned();
            }
            "x-request-id" | "x-req-id" if !sent.contains(value.as_str()) => {
                return "<request-id>".to_owned();
            }
            "remote_port" | "server_port" if digits => return "<port>".to_owned(),
            _ => {}
        }
        let value = self.dates.replace_all(&value, "<date>");
        let value = self.nonces.replace_all(&value, r#"nonce="<nonce>""#);
        let value = self.cookies.replace_all(&value, "<cookie-value>");
        let value = self.client.replace_all(&value, "<client-address>");
        let value = self.pods.replace_all(&value, "<pod-address>").into_owned();
        match name.as_str() {
            "x-forwarded-port" | "x-forwarded-server-port" | "x-server-port"
                if value == self.http =>
            {
                "<http-port>".to_owned()
            }
            "x-forwarded-port" | "x-forwarded-server-port" | "x-server-port"
                if value == self.https =>
            {
                "<https-port>".to_owned()
            }
            _ => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> String {
        let normaliser = Normaliser::new("10.77.0.50".parse().unwrap(), 80, 443);
        normaliser.header(name, value.to_owned(), &BTreeSet::from(["mine"]))
    }

    #[test]
    fn volatile_header_values_become_placeholders() {
        for (name, value, want) in [
            ("Date", "whatever", "<date>"),
            ("Expires", "Thu, 01-Jan-26 00:00:01 GMT", "<date>"),
            ("X-Request-ID", "0123456789abcdef0123456789abcdef", "<request-id>"),
            ("X-Request-ID", "mine", "mine"),
            ("ssl-client-cert", "-----BEGIN%20CERTIFICATE-----x", "<certificate>"),
            ("X-Forwarded-For", "1.2.3.4, 10.77.0.50", "1.2.3.4, <client-address>"),
            ("X-Real-IP", "10.77.0.501", "10.77.0.501"),
            ("X-Real-IP", "110.77.0.50", "110.77.0.50"),
            ("Location", "http://10.77.0.12:8000/", "http://<pod-address>/"),
            ("X-Forwarded-Port", "443", "<https-port>"),
            ("X-Forwarded-Port", "8443", "8443"),
            ("REMOTE_PORT", "5123", "<port>"),
            (
                "WWW-Authenticate",
                "Digest nonce=\"0a1b\", qop=\"auth\"",
                "Digest nonce=\"<nonce>\", qop=\"auth\"",
            ),
            (
                "Set-Cookie",
                "a=1700000000.123.45.678|0123456789abcdef0123456789abcdef; Path=/",
                "a=<cookie-value>; Path=/",
            ),
        ] {
            assert_eq!(header(name, value), want, "{name}: {value}");
        }
    }

    #[test]
    fn bodies_of_echoes_and_error_pages_are_not_kept() {
        let normaliser = Normaliser::new("10.77.0.50".parse().unwrap(), 80, 443);
        let body = |text: &str| {
            let answer = Answer { body: Some(Body::Text(text.to_owned())), ..Answer::default() };
            normaliser
                .answer(answer, &Request::default())
                .body
                .map(|body| body.as_text().unwrap().to_owned())
        };
        assert_eq!(body(r#"{"service": "echo"}"#), None);
        assert_eq!(body("<hr><center>nginx</center>").as_deref(), Some("<error-page>"));
        assert_eq!(
            body("tcp-0:PROXY TCP4 10.77.0.50 10.77.0.1 5000 9000\r\n").as_deref(),
            Some("tcp-0:PROXY TCP4 <client-address> <address> <port> <port>\r\n")
        );
    }
}
