//! Why a request goes where it goes: what `fairway explain` prints, of what is in force now.

use super::json;
use crate::explained::{Asked, Explained, Line};
use crate::now::Now;
use crate::query::{Query, Refusal, shown, told};
use std::net::{IpAddr, Ipv4Addr};

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    let client = query.get("client");
    let wrong = |_| {
        let text = client.unwrap_or_default();
        Refusal::Wrong(format!("client: {text:?} is no address: write one such as 203.0.113.7"))
    };
    let parsed = client.map(str::parse::<IpAddr>).transpose().map_err(wrong)?;
    let asked = Asked {
        url: query.needed("url", "https://shop.example/cart")?.to_owned(),
        method: query.get("method").unwrap_or("GET").to_owned(),
        headers: query
            .all("header")
            .filter(|header| !header.is_empty())
            .map(str::to_owned)
            .collect(),
        client: parsed.unwrap_or(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
    };
    let explain = now.explain.as_ref().ok_or(Refusal::Early)?;
    let Explained { notes, decisions } =
        explain.explain(&asked, &now.known).map_err(|error| Refusal::Wrong(told(error)))?;
    json(&Explained {
        notes: notes.into_iter().map(told).collect(),
        decisions: decisions.into_iter().map(shown_line).collect(),
    })
}

/// A line as it is told to whoever looks.
pub(super) fn shown_line(Line { step, outcome, by }: Line) -> Line {
    Line { step, outcome: without_queries(&shown(outcome)), by: by.map(shown) }
}

/// Without values of queries, even where it is the one that is asked about: a page may be looked at by many. What has
/// no letter and no digit behind a `?` has no value, such as characters that a message lists.
fn without_queries(outcome: &str) -> String {
    let has_query = |word: &str| {
        word.split_once('?').is_some_and(|(_, query)| query.contains(char::is_alphanumeric))
    };
    let word = |word: &str| {
        if !has_query(word) {
            return word.to_owned();
        }
        let url = word.trim_end_matches(['"', '\'', '`', ',', ';', ')', '>', ':']);
        format!("{}{}", model::hide_in_url(url), &word[url.len()..])
    };
    outcome.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::without_queries;

    #[test]
    fn of_a_query_no_value_is_shown_and_of_a_sentence_every_word() {
        for (outcome, shown) in [
            ("now at \"/b?x=1\", with more", "now at \"/b?x=…\", with more"),
            ("GET /?token HTTP/1.1", "GET /?… HTTP/1.1"),
            ("\"https://a.test/?t=1#part\": has a part", "\"https://a.test/?t=…#…\": has a part"),
            (
                "write letters, digits and -._~/:,?&=$ only",
                "write letters, digits and -._~/:,?&=$ only",
            ),
        ] {
            assert_eq!(without_queries(outcome), shown);
        }
    }
}
