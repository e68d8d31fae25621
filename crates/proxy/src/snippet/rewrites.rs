//! `proxy_redirect`, `proxy_cookie_domain`, `proxy_cookie_path` and `proxy_cookie_flags`: Location, Refresh and
//! Set-Cookie of an upstream's answer (ngx_http_proxy_module). Of several rules the first that fits counts.

use model::policy::{AnswerRewrites, RedirectRewrite, Replaced as OfPolicy, Replacement as Rule};
use model::snippet::{
    Answers, CookieFlags, Piece, ProxyRedirect, Regex, Replaced, Replacement, Template,
};
use model::{bytes_of_text, text_of_bytes};
use snippet::run::{Exceeded, Machine, Request};
use wire::Field;

/// What is rewritten: what snippets say, and annotations where they say nothing.
#[derive(Debug)]
pub(crate) struct Rewrites {
    redirects: Vec<ProxyRedirect>,
    domain: Vec<Replaced>,
    path: Vec<Replaced>,
    flags: Vec<CookieFlags>,
}

impl Rewrites {
    /// What a level rewrites; none if snippets say nothing about it.
    pub(crate) fn new(answers: &Answers, annotations: &AnswerRewrites) -> Option<Self> {
        let Answers { cookie_domain, cookie_path, cookie_flags, .. } = answers;
        let usual =
            answers.default_redirect.clone().map(|usual| vec![ProxyRedirect::Replace(usual)]);
        let redirects = answers.redirects.clone().or(usual);
        let silent = redirects.is_none() && cookie_domain.is_none() && cookie_path.is_none();
        if silent && cookie_flags.is_none() {
            return None;
        }
        let of_cookie = |rule: &Option<Rule>| rule.iter().map(of_policy).collect();
        let redirect = || match &annotations.redirect {
            RedirectRewrite::Off => Vec::new(),
            RedirectRewrite::UpstreamAddress => vec![ProxyRedirect::Default],
            RedirectRewrite::Replace(rule) => vec![ProxyRedirect::Replace(of_policy(rule))],
        };
        Some(Self {
            redirects: redirects.unwrap_or_else(redirect),
            domain: cookie_domain.clone().unwrap_or_else(|| of_cookie(&annotations.cookie_domain)),
            path: cookie_path.clone().unwrap_or_else(|| of_cookie(&annotations.cookie_path)),
            flags: cookie_flags.clone().unwrap_or_default(),
        })
    }

    /// What a field says instead; none if it stays.
    pub(crate) fn value<R: Request>(
        &self,
        machine: &mut Machine<'_, R>,
        field: &Field<'_>,
    ) -> Result<Option<Vec<u8>>, Exceeded> {
        let text = self.text(machine, field, &text_of_bytes(field.value))?;
        Ok(text.map(|text| bytes_of_text(&text).into_owned()))
    }

    fn text<R: Request>(
        &self,
        machine: &mut Machine<'_, R>,
        field: &Field<'_>,
        value: &str,
    ) -> Result<Option<String>, Exceeded> {
        if field.is("location") {
            return self.redirect(machine, value);
        }
        if field.is("refresh") {
            let at =
                value.as_bytes().windows(4).position(|four| four.eq_ignore_ascii_case(b"url="));
            let Some((start, address)) = at.and_then(|at| value.split_at_checked(at + 4)) else {
                return Ok(None);
            };
            let address = self.redirect(machine, address)?;
            return Ok(address.map(|address| format!("{start}{address}")));
        }
        if field.is("set-cookie") {
            return self.cookie(machine, value);
        }
        Ok(None)
    }

    fn redirect<R: Request>(
        &self,
        machine: &mut Machine<'_, R>,
        value: &str,
    ) -> Result<Option<String>, Exceeded> {
        for rule in &self.redirects {
            let found = match rule {
                ProxyRedirect::Default => {
                    let rest = value.strip_prefix("http").map(|s| s.strip_prefix('s').unwrap_or(s));
                    let rest = rest.and_then(|rest| rest.strip_prefix("://upstream_balancer/"));
                    rest.map(|rest| format!("/{rest}"))
                }
                ProxyRedirect::Replace(rule) => replaced(machine, rule, value)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A cookie with its Domain and Path replaced and its flags set; one without `=` is left alone.
    fn cookie<R: Request>(
        &self,
        machine: &mut Machine<'_, R>,
        value: &str,
    ) -> Result<Option<String>, Exceeded> {
        let mut parts = value.split(';').map(str::trim_ascii);
        let Some((name, own)) = parts.next().and_then(halves) else { return Ok(None) };
        let mut changed = false;
        let mut attributes = Vec::new();
        for part in parts {
            let (key, value) = match halves(part) {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (part, None),
            };
            let mut attribute = Attribute { key: key.to_owned(), value };
            if let Some(value) = &mut attribute.value {
                let new = match key {
                    key if key.eq_ignore_ascii_case("domain") => {
                        first(machine, &self.domain, value, domain)?
                    }
                    key if key.eq_ignore_ascii_case("path") => {
                        first(machine, &self.path, value, replaced)?
                    }
                    _ => None,
                };
                changed |= new.is_some();
                *value = new.unwrap_or_else(|| std::mem::take(value));
            }
            attributes.push(attribute);
        }
        for rule in &self.flags {
            if !names(machine, &rule.name, name)? {
                continue;
            }
            let flags = rule.flags.iter().map(|flag| machine.expand_header(flag));
            let mut flags = flags.collect::<Result<Vec<_>, _>>()?;
            flags.sort_by_key(|flag| place_of(flag));
            for flag in &flags {
                changed |= set_flag(&mut attributes, flag);
            }
            break;
        }
        Ok(changed.then(|| whole((name, own), &attributes)))
    }
}

/// What stands before and behind `=`, without blanks around it (ngx_http_proxy_parse_cookie).
fn halves(part: &str) -> Option<(&str, &str)> {
    let (key, value) = part.split_once('=')?;
    Some((key.trim_ascii(), value.trim_ascii()))
}

/// An attribute of a cookie.
#[derive(Debug)]
struct Attribute {
    key: String,
    value: Option<String>,
}

/// A cookie with its attributes.
fn whole((name, value): (&str, &str), attributes: &[Attribute]) -> String {
    let mut text = format!("{name}={value}");
    for attribute in attributes {
        text.push_str("; ");
        text.push_str(&attribute.key);
        if let Some(value) = &attribute.value {
            text.push('=');
            text.push_str(value);
        }
    }
    text
}

/// The order in which flags are obeyed, however they are written.
fn place_of(flag: &str) -> usize {
    let flag = flag.to_ascii_lowercase();
    let name = flag.strip_prefix("no").unwrap_or(&flag);
    ["secure", "httponly", "samesite"].iter().position(|known| name.starts_with(known)).unwrap_or(3)
}

/// Sets or takes away what a flag names; whether anything is other than before.
fn set_flag(attributes: &mut Vec<Attribute>, flag: &str) -> bool {
    let flag = flag.to_ascii_lowercase();
    let (name, value) = match flag.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (flag.as_str(), None),
    };
    let is = |attribute: &Attribute, name: &str| attribute.key.eq_ignore_ascii_case(name);
    if let Some(name @ ("secure" | "httponly" | "samesite")) = name.strip_prefix("no") {
        let before = attributes.len();
        attributes.retain(|attribute| !is(attribute, name));
        return attributes.len() < before;
    }
    let (key, value) = match (name, value) {
        ("secure", None) => ("Secure", None),
        ("httponly", None) => ("HttpOnly", None),
        ("samesite", Some("strict")) => ("SameSite", Some("Strict")),
        ("samesite", Some("lax")) => ("SameSite", Some("Lax")),
        ("samesite", Some("none")) => ("SameSite", Some("None")),
        _ => return false,
    };
    let value = value.map(str::to_owned);
    match attributes.iter_mut().find(|attribute| is(attribute, key)) {
        Some(there) if value.is_none() || there.value == value => false,
        Some(there) => {
            there.value = value;
            true
        }
        None => {
            attributes.push(Attribute { key: key.to_owned(), value });
            true
        }
    }
}

/// Whether a rule is about a cookie of this name.
fn names<R: Request>(
    machine: &mut Machine<'_, R>,
    rule: &Replacement,
    cookie: &str,
) -> Result<bool, Exceeded> {
    match rule {
        Replacement::Text(text) => Ok(machine.expand(text)?.eq_ignore_ascii_case(cookie)),
        Replacement::Regex(regex) => machine.state.matches(regex, cookie),
    }
}

/// What the first rule that fits makes of a value.
fn first<'m, R: Request>(
    machine: &mut Machine<'m, R>,
    rules: &[Replaced],
    value: &str,
    by: impl Fn(&mut Machine<'m, R>, &Replaced, &str) -> Result<Option<String>, Exceeded>,
) -> Result<Option<String>, Exceeded> {
    for rule in rules {
        if let Some(new) = by(machine, rule, value)? {
            return Ok(Some(new));
        }
    }
    Ok(None)
}

/// The value with the text at its beginning replaced, or replaced as a whole where an expression matches.
fn replaced<R: Request>(
    machine: &mut Machine<'_, R>,
    rule: &Replaced,
    value: &str,
) -> Result<Option<String>, Exceeded> {
    match &rule.from {
        Replacement::Text(from) => {
            let from = machine.expand(from)?;
            let Some(rest) = value.strip_prefix(from.as_str()) else { return Ok(None) };
            Ok(Some(format!("{}{rest}", machine.expand_header(&rule.to)?)))
        }
        Replacement::Regex(regex) => {
            if machine.state.matches(regex, value)? {
                Ok(Some(machine.expand_header(&rule.to)?))
            } else {
                Ok(None)
            }
        }
    }
}

/// A domain is replaced as a whole; a dot before it stays.
fn domain<R: Request>(
    machine: &mut Machine<'_, R>,
    rule: &Replaced,
    value: &str,
) -> Result<Option<String>, Exceeded> {
    let Replacement::Text(from) = &rule.from else { return replaced(machine, rule, value) };
    let bare = value.strip_prefix('.').unwrap_or(value);
    let dot = &value[..value.len() - bare.len()];
    if machine.expand(from)?.eq_ignore_ascii_case(bare) {
        Ok(Some(format!("{dot}{}", machine.expand_header(&rule.to)?)))
    } else {
        Ok(None)
    }
}

/// A rule of an annotation in the form that those of snippets have.
fn of_policy(rule: &Rule) -> Replaced {
    let from = match &rule.from {
        OfPolicy::Text(text) => Replacement::Text(template(text)),
        OfPolicy::Pattern(pattern) => {
            Replacement::Regex(Regex { pattern: pattern.clone(), names: Vec::new() })
        }
    };
    Replaced { from, to: template(&rule.to) }
}

fn template(template: &model::Template) -> Template {
    let pieces = template.parts().iter().map(|part| match part {
        model::Part::Text(text) => Piece::Text(text.clone()),
        model::Part::Variable(variable) => Piece::Known(variable.clone()),
        model::Part::Capture(group) => Piece::Capture(*group),
    });
    Template { pieces: pieces.collect() }
}

#[cfg(test)]
mod tests {
    use super::Rewrites;
    use crate::snippet::fixture::{Fixed, location, with_machine};
    use model::policy::{AnswerRewrites, Replaced, Replacement};
    use wire::Headers;

    /// What becomes of a field.
    fn said(text: &str, name: &'static str, value: &'static str) -> Option<String> {
        said_beside(text, &AnswerRewrites::default(), name, value)
    }

    fn said_beside(
        text: &str,
        annotations: &AnswerRewrites,
        name: &'static str,
        value: &'static str,
    ) -> Option<String> {
        let rewrites = Rewrites::new(&location(text).settings.answers, annotations)?;
        let mut headers = Headers::default();
        headers.add(name, value);
        let field = headers.iter().next().expect("it was just added");
        let request = Fixed::of(&[("host", "a.test"), ("scheme", "https")]);
        let request = Fixed { path: "/x\r\ny".to_owned(), ..request };
        let value = with_machine(&request, |machine| rewrites.value(machine, &field));
        let value = value.expect("within bounds");
        value.map(|value| String::from_utf8(value).expect("it is text"))
    }

    fn is(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    #[test]
    fn the_first_redirect_that_fits_counts() {
        let text = "proxy_redirect http://app.test/ $scheme://$host/;
            proxy_redirect ~*^http://([^.]+)\\.test/(.*)$ /$1/$2; proxy_redirect http://x.test/ /no/;";
        assert_eq!(said(text, "Location", "http://app.test/a"), is("https://a.test/a"));
        assert_eq!(said(text, "location", "HTTP://X.test/a"), is("/X/a"));
        assert_eq!(said(text, "Location", "https://app.test/a"), None);
        assert_eq!(
            said(text, "Refresh", "5; URL=http://app.test/a"),
            is("5; URL=https://a.test/a")
        );
        assert_eq!(said("proxy_redirect off;", "Location", "http://upstream_balancer/a"), None);
        let default = said("proxy_redirect default;", "Location", "http://upstream_balancer/a");
        assert_eq!(default, is("/a"));
        assert_eq!(said("", "Location", "http://upstream_balancer/a"), None);
    }

    #[test]
    fn a_path_brings_attributes_and_a_domain_matches_as_a_whole() {
        let text =
            "proxy_cookie_path / '/; HttpOnly; SameSite=None'; proxy_cookie_domain b.test $host;";
        let given = "a=b; Path=/app; Domain=.B.test; Max-Age=1";
        let made = "a=b; Path=/; HttpOnly; SameSite=Noneapp; Domain=.a.test; Max-Age=1";
        assert_eq!(said(text, "Set-Cookie", given), is(made));
        assert_eq!(said(text, "Set-Cookie", "a=b; domain=x.b.test"), None);
        assert_eq!(said(text, "Set-Cookie", "nothing"), None);
    }

    #[test]
    fn a_domain_is_written_with_a_dot_or_without_and_case_does_not_matter() {
        let text = "proxy_cookie_domain .internal.test .example.com;
            proxy_cookie_domain ~^(a)\\.old\\.test$ $1.new.test;";
        for (given, made) in [
            ("a=b; Domain=internal.test", "a=b; Domain=example.com"),
            ("a=b; Domain=.Internal.Test", "a=b; Domain=.example.com"),
            ("a=b; Domain=A.OLD.test", "a=b; Domain=A.new.test"),
        ] {
            assert_eq!(said(text, "Set-Cookie", given), is(made), "{given}");
        }
        let flags = "proxy_cookie_flags ~^sid_ secure;";
        assert_eq!(said(flags, "Set-Cookie", "SID_1=1"), is("SID_1=1; Secure"));
        let to = "proxy_cookie_domain b.test .example.com;";
        assert_eq!(said(to, "Set-Cookie", "a=b; Domain=.b.test"), is("a=b; Domain=.example.com"));
    }

    #[test]
    fn flags_are_set_and_taken_away_by_name() {
        let text =
            "proxy_cookie_flags sid secure httponly samesite=lax; proxy_cookie_flags ~^x_ nosecure;
            proxy_cookie_flags ~ nosamesite NOHTTPONLY;";
        assert_eq!(
            said(text, "Set-Cookie", "SID=1; SameSite=None; secure"),
            is("SID=1; SameSite=Lax; secure; HttpOnly")
        );
        assert_eq!(said(text, "Set-Cookie", "x_a=1; Secure; Path=/"), is("x_a=1; Path=/"));
        assert_eq!(said(text, "Set-Cookie", "y=1; HttpOnly; SameSite=Lax"), is("y=1"));
        assert_eq!(said(text, "Set-Cookie", "y=1"), None);
        let order = "proxy_cookie_flags a samesite=none httponly secure;";
        assert_eq!(said(order, "Set-Cookie", "a=1"), is("a=1; Secure; HttpOnly; SameSite=None"));
    }

    /// One after the other, each once: a cookie of a megabyte stops nobody.
    #[test]
    fn a_cookie_of_many_attributes_is_written_once() {
        let given = format!("a=b{}", ";".repeat(300_000));
        let made = said("proxy_cookie_flags ~ httponly;", "Set-Cookie", given.leak());
        let made = made.expect("it is changed");
        assert!(made.ends_with("; HttpOnly") && made.len() > 600_000, "{}", made.len());
    }

    #[test]
    fn blanks_around_the_signs_of_a_cookie_are_nothing() {
        let text = "proxy_cookie_flags sid secure; proxy_cookie_path /old /new; proxy_cookie_domain up.test a.test;";
        assert_eq!(said(text, "Set-Cookie", "sid = 2; Max-Age=1"), is("sid=2; Max-Age=1; Secure"));
        let given = "b=4; Path = /old; Domain = up.test";
        assert_eq!(said(text, "Set-Cookie", given), is("b=4; Path=/new; Domain=a.test"));
    }

    #[test]
    fn fields_that_are_no_text_are_rewritten_and_keep_their_bytes() {
        let text = "proxy_cookie_flags ~\\xf6 secure; proxy_redirect http://up.test/ /;";
        let rewrites = Rewrites::new(&location(text).settings.answers, &AnswerRewrites::default());
        let rewrites = rewrites.expect("it says something");
        let request = Fixed::of(&[("host", "a.test")]);
        let all: [(&str, &[u8], &[u8]); 2] = [
            ("Set-Cookie", b"J\xf6rg=1; Path=/", b"J\xf6rg=1; Path=/; Secure"),
            ("Location", b"http://up.test/caf\xe9", b"/caf\xe9"),
        ];
        for (name, given, made) in all {
            let mut headers = Headers::default();
            headers.add(name, given);
            let field = headers.iter().next().expect("it was just added");
            let value = with_machine(&request, |machine| rewrites.value(machine, &field));
            assert_eq!(value.expect("within bounds").as_deref(), Some(made), "{name}");
        }
    }

    #[test]
    fn annotations_count_where_snippets_say_nothing() {
        let template = |text| model::Template::parse(text).expect("no variable");
        let cookie_path =
            Some(Replacement { from: Replaced::Text(template("/a")), to: template("/b").into() });
        let annotations = AnswerRewrites { cookie_path, ..AnswerRewrites::default() };
        let flags = "proxy_cookie_flags ~ secure;";
        let both = said_beside(flags, &annotations, "Set-Cookie", "a=b; Path=/a/c");
        assert_eq!(both, is("a=b; Path=/b/c; Secure"));
        let off = said_beside("proxy_cookie_path off;", &annotations, "Set-Cookie", "a=b; Path=/a");
        assert_eq!(off, None);
    }

    #[test]
    fn nothing_that_is_filled_in_ends_the_line() {
        assert_eq!(said("proxy_redirect / $uri;", "Location", "/z"), is("/x%0D%0Ayz"));
    }
}
