//! A cookie jar that keeps names and values, in the order in which the names came.

use parking_lot::Mutex;

use crate::{
    exchange::{Answer, Request},
    wire::{Pair, values},
};

/// The cookies of a client.
#[derive(Default)]
pub(super) struct Jar(Mutex<Vec<Pair>>);

impl Jar {
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// The `Cookie` header of a request that keeps cookies.
    pub(super) fn header(&self, request: &Request) -> Option<String> {
        let cookies = self.0.lock();
        let pairs: Vec<String> =
            cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (keeps(request) && !pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Keeps the cookies of an answer, where the request says so.
    pub(super) fn keep(&self, request: &Request, answer: &Answer) {
        if !keeps(request) {
            return;
        }
        let mut cookies = self.0.lock();
        for line in values(answer.headers.as_deref().unwrap_or_default(), "set-cookie") {
            let (name, rest) = line.split_once('=').unwrap_or((line, ""));
            let (name, value) =
                (name.trim(), rest.split(';').next().unwrap_or_default().to_owned());
            match cookies.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => *old = value,
                None => cookies.push((name.to_owned(), value)),
            }
        }
    }
}

fn keeps(request: &Request) -> bool {
    request.cookies.as_deref() == Some("keep")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_kept_and_replaced_only_where_the_step_says_so() {
        let jar = Jar::default();
        let keep = Request { cookies: Some("keep".to_owned()), ..Request::default() };
        let answer = |line: &str| Answer {
            headers: Some(vec![("Set-Cookie".to_owned(), line.to_owned())]),
            ..Answer::default()
        };
        jar.keep(&Request::default(), &answer("z=1"));
        jar.keep(&keep, &answer("a=1; Path=/"));
        jar.keep(&keep, &answer("b=2|x"));
        jar.keep(&keep, &answer("a=3"));
        assert_eq!(jar.header(&keep).as_deref(), Some("a=3; b=2|x"));
        assert_eq!(jar.header(&Request::default()), None);
    }
}
