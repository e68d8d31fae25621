//! The external authenticator: answers as the query of its URL says.

use super::{
    echo,
    http::{Received, Reply},
};
use crate::wire::{Failure, values};

/// `/auth?status=N&header=Name:value&delay=1s`, or `/bearer`, which wants the token `ok`.
pub(super) async fn answer(request: &Received) -> Result<Reply, Failure> {
    let (path, query) = request.uri.split_once('?').unwrap_or((&request.uri, ""));
    let query: Vec<(String, String)> = query.split('&').filter_map(parameter).collect();
    let all = |name: &'static str| {
        query.iter().filter(move |(key, _)| key == name).map(|(_, value)| value)
    };
    let mut reply = Reply { status: 200, ..Reply::default() };
    if let Some(status) = all("status").next() {
        reply.status = status.parse().map_err(|_| Failure::Malformed)?;
    }
    if path.starts_with("/bearer") {
        let allowed = values(&request.headers, "authorization").any(|value| value == "Bearer ok");
        reply.status = if allowed { 200 } else { 401 };
        if !allowed {
            reply.headers.push(("WWW-Authenticate".to_owned(), "Bearer".to_owned()));
        }
    }
    for header in all("header") {
        let (name, value) = header.split_once(':').unwrap_or((header, ""));
        reply.headers.push((name.to_owned(), value.to_owned()));
    }
    if let Some(delay) = all("delay").next() {
        echo::pause(delay).await?;
    }
    if !matches!(reply.status, 204 | 304) {
        reply.body = b"auth".to_vec();
    }
    Ok(reply)
}

/// One parameter of a query; those without a value count as absent.
fn parameter(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    (!value.is_empty()).then(|| (decoded(name), decoded(value)))
}

fn decoded(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(character) = rest.chars().next() {
        let escape =
            rest.strip_prefix('%').and_then(|rest| u8::from_str_radix(rest.get(..2)?, 16).ok());
        let length = if escape.is_some() { 3 } else { character.len_utf8() };
        match (escape, character) {
            (Some(byte), _) => out.push(byte),
            (None, '+') => out.push(b' '),
            (None, _) => out.extend(rest[..length].bytes()),
        }
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_query_says_what_is_answered() {
        let request = |uri: &str| Received {
            method: "GET".to_owned(),
            uri: uri.to_owned(),
            protocol: "HTTP/1.1".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            trailers: Vec::new(),
        };
        let reply = answer(&request("/auth?status=401&header=X-A:b%20c+d&header=X-B:&empty="))
            .await
            .unwrap();
        let want = [("X-A".to_owned(), "b c d".to_owned()), ("X-B".to_owned(), String::new())];
        assert_eq!((reply.status, reply.headers.as_slice()), (401, want.as_slice()));
        assert_eq!(answer(&request("/bearer")).await.unwrap().status, 401);
        assert!(answer(&request("/auth?status=x")).await.is_err());
    }

    #[test]
    fn broken_escapes_stay_as_they_are() {
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
