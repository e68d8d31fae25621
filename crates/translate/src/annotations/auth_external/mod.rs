//! `auth-url` and its companions, and `global-auth-*` of the ConfigMap: an authenticator is asked before a request is
//! let in. What is asked for and cannot be understood denies.

mod keys;
mod values;

pub(crate) use keys::GLOBAL_AUTH;
pub use values::durations as cache_durations;

use super::{Family, raw};
use crate::settings::{self, AnyKey, ENTRIES, Lines, Settings, fields, parse, words};
use crate::snippets;
use model::policy::{AuthCache, AuthExternal, CacheDuration, Policy};
use model::snippet::OtherRow;
use model::{BadTemplate, Message, Secret, Severity, Template, Why};
use std::sync::Arc;

pub(super) const FAMILY: Family = Family { name: "auth_external", keys: keys::ALL, apply };

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let text = settings.raw("auth-url");
    let is_asked = text.as_ref().is_some_and(|text| !text.is_empty());
    if text.is_some() && !is_asked {
        let message = "is empty, so that this Ingress has no authenticator of its own: write its address, or remove it";
        settings.note("auth-url", Severity::Warning, message.to_owned());
    }
    policy.auth_external = match settings.get(&keys::URL) {
        Some(url) => own(settings, &url),
        None if is_asked => {
            if settings.verdict.rejected().is_none() {
                // Without validation an Ingress is taken in spite of such a value; its paths must not be open.
                settings.deny("auth-url", "the value cannot be read");
            }
            None
        }
        // What no Ingress owns is not guarded: an unknown host is answered 404 without a question.
        None if settings.is_of_config_map() => None,
        None if !settings.get_or(&keys::GLOBAL_ENABLED, true) => None,
        None => global(settings).ok().flatten(),
    }
    .map(Arc::new);
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(auth: Option<&AuthExternal>, lines: &mut Lines) {
    let Some(auth) = auth else { return };
    let AuthExternal {
        url,
        method,
        sign_in,
        response_headers,
        request_headers,
        request_redirect,
        always_set_cookie,
        cache,
        snippet,
    } = auth;
    let mut add =
        |field, value: String, own: &[&'static dyn AnyKey], of_all: &[&'static dyn AnyKey]| {
            lines.add(field, value).beside(&keys::URL, own).beside(&keys::GLOBAL_URL, of_all);
        };
    let method = method.as_deref().unwrap_or("GET").to_owned();
    add("auth_external.url", settings::url(url), &[&keys::URL], &[&keys::GLOBAL_URL]);
    add("auth_external.method", method, &[&keys::METHOD], &[&keys::GLOBAL_METHOD]);
    let own: [&dyn AnyKey; 2] = [&keys::SIGN_IN, &keys::SIGN_IN_PARAMETER];
    let of_all: [&dyn AnyKey; 2] = [&keys::GLOBAL_SIGN_IN, &keys::GLOBAL_SIGN_IN_PARAMETER];
    add("auth_external.sign_in", words(sign_in), &own, &of_all);
    let (own, of_all) = (&keys::RESPONSE_HEADERS, &keys::GLOBAL_RESPONSE_HEADERS);
    add("auth_external.response_headers", words(response_headers), &[own], &[of_all]);
    let headers = fields(request_headers.iter().map(|(name, value)| (name.as_str(), value)));
    add("auth_external.request_headers", words(&headers), &[&keys::REQUEST_HEADERS], &[]);
    let (own, of_all) = (&keys::REQUEST_REDIRECT, &keys::GLOBAL_REQUEST_REDIRECT);
    add("auth_external.request_redirect", words(request_redirect), &[own], &[of_all]);
    let (own, of_all) = (&keys::ALWAYS_COOKIE, &keys::GLOBAL_ALWAYS_COOKIE);
    add("auth_external.always_set_cookie", words(always_set_cookie), &[own], &[of_all]);
    if let Some(AuthCache { key, durations }) = cache {
        add("auth_external.cache.key", words(key), &[&keys::CACHE_KEY], &[&keys::GLOBAL_CACHE_KEY]);
        let durations: Vec<String> = durations.iter().map(lasts).collect();
        let (own, of_all) = (&keys::CACHE_DURATION, &keys::GLOBAL_CACHE_DURATION);
        add("auth_external.cache.durations", words(&durations), &[own], &[of_all]);
    }
    if snippet.is_some() {
        add("auth_external.snippet", raw::COUNTS.to_owned(), &[&raw::AUTH], &[&raw::AUTH_OF_ALL]);
    }
}

/// How long answers with some statuses are remembered, as a user writes it.
fn lasts(duration: &CacheDuration) -> String {
    let CacheDuration { statuses, time } = duration;
    let statuses: Vec<String> = statuses.iter().map(ToString::to_string).collect();
    let statuses = if statuses.is_empty() { "any".to_owned() } else { statuses.join(" ") };
    format!("{statuses} {}", words(time))
}

/// The authenticator of an Ingress.
fn own(settings: &mut Settings<'_>, url: &str) -> Option<AuthExternal> {
    let url = match settings.url(url) {
        Ok(url) => url,
        Err(reason) => {
            settings.deny("auth-url", reason);
            return None;
        }
    };
    let parameter = settings.get(&keys::SIGN_IN_PARAMETER);
    let sign_in = settings.get(&keys::SIGN_IN);
    let sign_in = sign_in.and_then(|url| {
        match sign_in_template(&url, parameter.as_deref(), |text| {
            snippets::template(settings, text)
        }) {
            Ok(template) => Some(template),
            Err(reason) => {
                settings.deny("auth-signin", &reason);
                None
            }
        }
    });
    let durations = settings.get(&keys::CACHE_DURATION).unwrap_or_else(values::usual_durations);
    let key = settings.get(&keys::CACHE_KEY);
    let key = key.and_then(|key| {
        match values::template(&key, |text| snippets::template(settings, text)) {
            Ok(template) => Some(template),
            Err(reason) => {
                settings.deny("auth-cache-key", &reason);
                None
            }
        }
    });
    let request_headers = request_headers(settings).unwrap_or_else(|reason| {
        settings.deny("auth-proxy-set-headers", reason);
        Vec::new()
    });
    Some(AuthExternal {
        url,
        method: settings.get(&keys::METHOD),
        sign_in: sign_in.map(Into::into),
        response_headers: settings.get_or(&keys::RESPONSE_HEADERS, Vec::new()),
        request_headers,
        request_redirect: settings.get(&keys::REQUEST_REDIRECT).map(Into::into),
        always_set_cookie: settings.get_or(&keys::ALWAYS_COOKIE, false),
        cache: key.map(|key| AuthCache { key, durations }),
        snippet: None,
    })
}

/// What the ConfigMap that `auth-proxy-set-headers` names tells the authenticator.
fn request_headers(
    settings: &mut Settings<'_>,
) -> Result<Vec<(String, Secret<Template>)>, Message> {
    let Some(reference) = settings.get(&keys::REQUEST_HEADERS) else { return Ok(Vec::new()) };
    if !reference.contains('/') {
        return Err(format!("{reference:?} does not name a ConfigMap: write namespace/name").into());
    }
    let config_map = settings.config_map(&reference)?;
    if config_map.data.len() > ENTRIES {
        let number = config_map.data.len();
        let message = format!("ConfigMap {reference} has {number} entries, more than {ENTRIES}");
        return Err(message.into());
    }
    let header = |(name, value): (&String, &String)| {
        parse::header_name(name)
            .map_err(|wrong| format!("ConfigMap {reference}: the key {name:?} {wrong}"))?;
        if value.contains(['\r', '\n', '\0']) {
            let message = format!("ConfigMap {reference}: the value of {name} has several lines");
            return Err(message.into());
        }
        let value = OtherRow::template(value).map_err(|unknown| {
            format!("ConfigMap {reference}: the value of {name} has the {unknown}")
        })?;
        Ok((name.clone(), value.into()))
    };
    config_map.data.iter().map(header).collect()
}

/// The authenticator of the ConfigMap; the error says why nobody can be asked.
pub(crate) fn global(settings: &mut Settings<'_>) -> Result<Option<AuthExternal>, Message> {
    let Some(url) = settings.get(&keys::GLOBAL_URL) else { return Ok(None) };
    let url = settings.url(&url)?;
    let parameter = settings.get(&keys::GLOBAL_SIGN_IN_PARAMETER);
    let sign_in = settings.get(&keys::GLOBAL_SIGN_IN);
    let known = |text: &str| snippets::template(settings, text);
    let sign_in =
        sign_in.map(|url| sign_in_template(&url, parameter.as_deref(), known)).transpose()?;
    let key = settings.get(&keys::GLOBAL_CACHE_KEY);
    // Without them the application would believe what the client sent.
    let of_all = &keys::GLOBAL_RESPONSE_HEADERS;
    let names = values::few(settings.get_or(of_all, Vec::new()))
        .map_err(|wrong| Why::TookIt.says(format!("{} {wrong}", of_all.about.name)))?;
    let (response_headers, wrong): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| parse::header_name(name).is_ok());
    if settings.is_of_config_map() && !wrong.is_empty() {
        let message = format!(
            "{wrong:?} are no names of headers and left out: write letters, digits, - and _, comma separated, such as \
             X-One,X-Two"
        );
        settings.note("global-auth-response-headers", Severity::Warning, message);
    }
    Ok(Some(AuthExternal {
        url,
        method: settings.get(&keys::GLOBAL_METHOD),
        sign_in: sign_in.map(Into::into),
        response_headers,
        request_headers: Vec::new(),
        request_redirect: settings.get(&keys::GLOBAL_REQUEST_REDIRECT).map(Into::into),
        always_set_cookie: settings.get_or(&keys::GLOBAL_ALWAYS_COOKIE, false),
        cache: key.map(|key| AuthCache { key, durations: global_durations(settings) }),
        snippet: settings.scope().snippets.and_then(|snippets| snippets.auth.clone()),
    }))
}

fn global_durations(settings: &mut Settings<'_>) -> Vec<CacheDuration> {
    let name = keys::GLOBAL_CACHE_DURATION.about.name;
    let data = settings.scope().config_map.map(|(_, data)| data);
    let is_written = data.is_some_and(|data| data.contains_key(name));
    let usual = if is_written { values::usual_durations() } else { Vec::new() };
    settings.get(&keys::GLOBAL_CACHE_DURATION).unwrap_or(usual)
}

/// Reads `global-auth-*` for what is wrong with it: why every location is denied that asks for it.
pub(crate) fn global_fault(settings: &mut Settings<'_>) -> Option<String> {
    let read = global(settings);
    if matches!(read, Ok(None)) {
        // Nobody is asked; what cannot be read is told all the same.
        settings.get(&keys::GLOBAL_ALWAYS_COOKIE);
    }
    let reason = read.err()?;
    let message = format!(
        "{reason}; the paths of every Ingress without an authenticator of its own answer 503 until it is mended"
    );
    settings.note(keys::GLOBAL_URL.about.name, Severity::Error, reason.within(message));
    Some(format!("{} of the ConfigMap: {reason}", keys::GLOBAL_URL.about.name))
}

/// Whether an Ingress does not ask the authenticator of the ConfigMap: it says so, or it has its own.
pub(crate) fn exempt_from_global_auth(settings: &Settings<'_>) -> bool {
    // With space around it, it is no boolean to ingress-nginx, which keeps the guard on then.
    let off = |text: &str| parse::boolean(text) == Ok(false);
    settings.written(keys::GLOBAL_ENABLED.about.name).is_some_and(off)
        || settings.raw("auth-url").is_some_and(|text| !text.is_empty())
}

/// The URL of a sign-in page with the parameter that says what was wanted, unless it has one already.
fn sign_in_template(
    url: &str,
    parameter: Option<&str>,
    parse: impl Fn(&str) -> Result<Template, BadTemplate>,
) -> Result<Template, String> {
    let parameter = parameter.unwrap_or("rd");
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let has_it = query.split('&').any(|pair| {
        pair.split_once('=').is_some_and(|(name, value)| name == parameter && !value.is_empty())
    });
    let separator = if query.is_empty() { "?" } else { "&" };
    let wanted = "$pass_access_scheme://$http_host$escaped_request_uri";
    let text =
        if has_it { url.to_owned() } else { format!("{url}{separator}{parameter}={wanted}") };
    parse(&text).map_err(|unknown| format!("{url:?} has the {unknown}: name one that exists"))
}

#[cfg(test)]
mod tests {
    use super::sign_in_template;
    use model::Template;

    #[test]
    fn what_was_wanted_is_added_unless_it_is_there() {
        let added = "=${pass_access_scheme}://${http_host}${escaped_request_uri}";
        for (url, parameter, expected) in [
            ("https://a", None, format!("https://a?rd{added}")),
            ("/a?b", None, format!("/a?b&rd{added}")),
            ("https://a?rd=", None, format!("https://a?rd=&rd{added}")),
            ("https://a?rd=x", Some("back"), format!("https://a?rd=x&back{added}")),
            ("https://a?rd=$host", None, "https://a?rd=${host}".to_owned()),
        ] {
            let template =
                sign_in_template(url, parameter, Template::parse).expect("all variables exist");
            assert_eq!(template.to_string(), expected);
        }
        assert!(sign_in_template("https://a/$nope", None, Template::parse).is_err());
    }
}
