//! The values of external authentication.

use crate::settings::parse;
use model::policy::CacheDuration;
use model::{BadTemplate, Template};

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"];

/// Headers of an answer that reach the application, as many as `ExternalAuth` of a route may name.
const MOST_NAMES: usize = 64;

/// What is wrong with values for which ingress-nginx had no authenticator at all (decisions.md row 1).
pub(super) const NO_CONFIG_MAP: &str = "is not the name of a ConfigMap: write namespace/name";
pub(super) const OTHER_SIGNS: &str = "holds other signs than letters, digits and -._~/:,?&=";

fn made_of(text: &str, signs: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

pub(super) fn url(text: &str) -> Result<String, String> {
    if made_of(text, "-._~/:,?&=$") {
        return Ok(text.to_owned());
    }
    Err("is not a URL: write letters, digits and -._~/:,?&=$ only".to_owned())
}

/// A URL with scheme and host, in which anything may be written.
pub(super) fn whole_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with(['/', '?']) => Ok(text.to_owned()),
        _ => Err("is not a URL: write one such as https://login.example/start".to_owned()),
    }
}

pub(super) fn method(text: &str) -> Result<String, String> {
    if METHODS.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("is not a method: write one of {}", METHODS.join(", ")))
}

pub(super) fn parameter(text: &str) -> Result<String, String> {
    if !text.is_empty() && made_of(text, "-._~/:,?&=") {
        return Ok(text.to_owned());
    }
    Err("is not the name of a parameter: write one such as rd".to_owned())
}

/// Names of headers as they are written: the case is that of what is sent.
pub(super) fn headers(text: &str) -> Result<Vec<String>, String> {
    let names = few(parse::list(text)?)?;
    match names.iter().find(|name| parse::header_name(name).is_err()) {
        Some(wrong) => Err(parse::not_a_header(wrong)),
        None => Ok(names),
    }
}

/// Every request looks for each of them, and nginx reads the more slowly the more there are.
pub(super) fn few(names: Vec<String>) -> Result<Vec<String>, String> {
    if names.len() > MOST_NAMES {
        return Err(format!("has {} names, {MOST_NAMES} is the most: list fewer", names.len()));
    }
    Ok(names)
}

pub(super) fn reference(text: &str) -> Result<String, String> {
    if made_of(text, "-._~/:") {
        return Ok(text.to_owned());
    }
    Err(NO_CONFIG_MAP.to_owned())
}

pub(super) fn redirect(text: &str) -> Result<Template, String> {
    if made_of(text, "-._~/:,?&=") {
        return known(text);
    }
    Err(OTHER_SIGNS.to_owned())
}

pub(super) fn cache_key(text: &str) -> Result<String, String> {
    if made_of(text, "-_${}") {
        return Ok(text.to_owned());
    }
    Err("holds other signs than letters, digits and -_${}".to_owned())
}

pub(super) fn known(text: &str) -> Result<Template, String> {
    template(text, Template::parse)
}

pub(super) fn template(
    text: &str,
    parse: impl Fn(&str) -> Result<Template, BadTemplate>,
) -> Result<Template, String> {
    parse(text).map_err(|unknown| format!("has the {unknown}"))
}

/// What counts when nothing is written.
pub(super) fn usual_durations() -> Vec<CacheDuration> {
    let time = std::time::Duration::from_secs(300);
    vec![CacheDuration { statuses: vec![200, 202, 401], time }]
}

/// `200 202 5m, 401 1m, any 10s`: statuses, then how long they are remembered. Without statuses those of nginx count.
pub fn durations(text: &str) -> Result<Vec<CacheDuration>, String> {
    let items = parse::list(text)?;
    if items.is_empty() {
        return Ok(usual_durations());
    }
    items.iter().map(|item| duration(item)).collect()
}

fn duration(item: &str) -> Result<CacheDuration, String> {
    let wrong =
        || format!("has the item \"{item}\": write statuses and a time, such as 200 202 5m");
    let mut words: Vec<&str> = item.split_ascii_whitespace().collect();
    let time = words.pop().ok_or_else(wrong)?;
    if !time.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(wrong());
    }
    let time = parse::duration(time).map_err(|_| wrong())?;
    if words.contains(&"any") {
        return Ok(CacheDuration { statuses: Vec::new(), time });
    }
    let status = |word: &&str| {
        let valid = word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
        word.parse().ok().filter(|status: &u16| valid && *status >= 100)
    };
    let statuses: Option<Vec<u16>> = words.iter().map(status).collect();
    let mut statuses = statuses.ok_or_else(wrong)?;
    if statuses.is_empty() {
        statuses = vec![200, 301, 302];
    }
    Ok(CacheDuration { statuses, time })
}

#[cfg(test)]
mod tests {
    use super::{durations, headers, url, whole_url};
    use model::policy::CacheDuration;
    use std::time::Duration;

    #[test]
    fn durations_have_statuses_and_one_time() {
        let item = |statuses: &[u16], seconds| CacheDuration {
            statuses: statuses.to_vec(),
            time: Duration::from_secs(seconds),
        };
        assert_eq!(durations("200 202 401 5m"), Ok(vec![item(&[200, 202, 401], 300)]));
        assert_eq!(
            durations("200 1s, 403 20s,10m"),
            Ok(vec![item(&[200], 1), item(&[403], 20), item(&[200, 301, 302], 600)])
        );
        let any = Ok(vec![item(&[401], 60), item(&[], 300)]);
        assert_eq!(durations("401 1m,any 5m"), any);
        for wrong in ["forever", "200", "200 5", "5m 200", "200 1m 2m", "20 5m", "any", "ü"] {
            assert!(durations(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_and_urls_have_no_other_signs() {
        assert_eq!(headers("X-User, X-Group"), Ok(vec!["X-User".to_owned(), "X-Group".to_owned()]));
        assert!(headers("X-User, X Bad").is_err() && headers("X-User: a").is_err());
        let most = |count| headers(&vec!["X-User"; count].join(",")).map(|names| names.len());
        assert_eq!((most(64), most(65).is_err()), (Ok(64), true));
        assert!(url("http://a/b#c").is_err() && url("http://a/%20").is_err());
        assert!(whole_url("login").is_err() && whole_url("https:///x").is_err());
    }
}
