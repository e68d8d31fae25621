//! `enable-cors` and `cors-*`: which origins may read answers, and what they are told.

use super::Family;
use crate::settings::{Key, Lines, Risk, Settings, parse};
use model::policy::{AllowedOrigin, Cors, Origins, Policy};
use model::{Pattern, Severity};
use std::sync::LazyLock;

pub(super) const FAMILY: Family = Family {
    name: "cors",
    keys: &[&ENABLED, &ORIGINS, &METHODS, &HEADERS, &CREDENTIALS, &EXPOSE, &MAX_AGE],
    apply,
};

static ENABLED: Key<bool> = Key::annotation("enable-cors", parse::boolean).switch(
    false,
    "Answers to allowed origins carry Access-Control-* headers; their OPTIONS requests are answered with 204 before \
     redirects, limits and access checks.",
);
static ORIGINS: Key<Origins> = Key::annotation("cors-allow-origin", origins)
    .says(
        "origins, comma separated, or *",
        "*",
        "The origins that are allowed, 1,000 at most; *. stands for one label. The whole origin must match, without regard to case.",
    )
    .risk(Risk::Medium);
static METHODS: Key<String> = Key::annotation("cors-allow-methods", methods)
    .says(
        "methods, comma separated",
        "GET, PUT, POST, DELETE, PATCH, OPTIONS",
        "Access-Control-Allow-Methods, 3k at most.",
    )
    .risk(Risk::Medium);
static HEADERS: Key<String> = Key::annotation("cors-allow-headers", headers)
    .says(
        "header names, comma separated",
        ALLOWED_HEADERS,
        "Access-Control-Allow-Headers, 3k at most.",
    )
    .risk(Risk::Medium);
static CREDENTIALS: Key<bool> = Key::annotation("cors-allow-credentials", parse::boolean)
    .switch(true, "Answers carry Access-Control-Allow-Credentials: true.");
static EXPOSE: Key<String> = Key::annotation("cors-expose-headers", exposed)
    .says(
        "header names, comma separated, or *",
        "none",
        "Access-Control-Expose-Headers, 3k at most.",
    )
    .risk(Risk::Medium);
static MAX_AGE: Key<i64> =
    Key::annotation("cors-max-age", whole).number("seconds", "1728000", "Access-Control-Max-Age.");

const ALLOWED_METHODS: &str = "GET, PUT, POST, DELETE, PATCH, OPTIONS";
const ALLOWED_HEADERS: &str = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,\
                               Range,Authorization";
/// 20 days.
const AGE: i64 = 1_728_000;
/// Origins of one list: each of them is compared.
const MOST_ORIGINS: usize = 1_000;
/// Bytes of one list that answers carry; nginx reads no more than 4,000 as one parameter.
const LONGEST: usize = 3 << 10;

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let enabled = settings.get_or(&ENABLED, false);
    let mut origins = settings.get_or(&ORIGINS, Origins::Any);
    if let Origins::Listed(all) = &mut origins
        && all.len() > MOST_ORIGINS
    {
        let message = format!(
            "has {} origins, and the first {MOST_ORIGINS} are allowed: list fewer, or write *. for those below one name",
            all.len()
        );
        settings.note(ORIGINS.about.name, Severity::Error, message);
        all.truncate(MOST_ORIGINS);
    }
    note_unreadable(settings, &origins);
    let cors = Cors {
        origins,
        credentials: settings.get_or(&CREDENTIALS, true),
        methods: settings.get(&METHODS).unwrap_or_else(|| ALLOWED_METHODS.to_owned()),
        headers: settings.get(&HEADERS).unwrap_or_else(|| ALLOWED_HEADERS.to_owned()),
        expose: settings.get(&EXPOSE),
        max_age: settings.get_or(&MAX_AGE, AGE),
    };
    policy.cors = enabled.then(|| cors.into());
}

/// An item of a list that is no origin allows nobody, as in ingress-nginx, which says nothing of it.
fn note_unreadable(settings: &mut Settings<'_>, origins: &Origins) {
    let text = settings.raw(ORIGINS.about.name).filter(|_| *origins != Origins::Any);
    let text = text.unwrap_or_default().into_owned();
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    for item in items.filter(|item| !ITEM.is_match(item)).take(1) {
        let message = format!(
            "{item:?} is no origin, it allows nobody: write one with its scheme, such as https://a.example"
        );
        settings.note(ORIGINS.about.name, Severity::Warning, message);
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(cors: Option<&Cors>, lines: &mut Lines) {
    let Some(Cors { origins, credentials, methods, headers, expose, max_age }) = cors else {
        return;
    };
    let origins: Vec<String> = match origins {
        Origins::Any => vec!["*".to_owned()],
        Origins::Listed(all) => all.iter().map(AllowedOrigin::text).collect(),
    };
    let filter = "filters: CORS";
    lines.add("cors", true).by(&[&ENABLED]).of_route(filter);
    lines.add("cors.origins", origins).by(&[&ORIGINS]).of_route(filter);
    lines.add("cors.methods", methods).by(&[&METHODS]).of_route(filter);
    lines.add("cors.headers", headers).by(&[&HEADERS]).of_route(filter);
    lines.add("cors.credentials", credentials).by(&[&CREDENTIALS]).of_route(filter);
    lines.add("cors.expose", expose).by(&[&EXPOSE]).of_route(filter);
    lines.add("cors.max_age", format!("{max_age}s")).by(&[&MAX_AGE]).of_route(filter);
}

/// A whole list that ingress-nginx can read; any other one means everyone there, and here.
static LIST: LazyLock<Pattern> = LazyLock::new(|| {
    let list = r"^(((([a-z]+://)?(\*\.)?[A-Za-z0-9\-.]*(:[0-9]+)?,?)|null)+|\*)$";
    Pattern::new(list, false).expect("the pattern is valid")
});

/// One item of a list that can be read; any other one allows nobody.
static ITEM: LazyLock<Pattern> = LazyLock::new(|| {
    let item = r"^([a-z]+://(\*\.)?[A-Za-z0-9\-.]*(:[0-9]+)?|null)$";
    Pattern::new(item, false).expect("the pattern is valid")
});

fn origins(text: &str) -> Result<Origins, String> {
    let bare: String = text.chars().filter(|c| *c != ' ').collect();
    if !LIST.is_match(&bare) {
        return Err(
            "is no list of origins, so that every origin is allowed: write origins such as https://a.example, comma separated"
                .to_owned(),
        );
    }
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.contains(&"*") {
        return Ok(Origins::Any);
    }
    let readable = items.into_iter().filter(|item| ITEM.is_match(item));
    Ok(Origins::Listed(readable.map(AllowedOrigin::new).collect()))
}

/// Words with at most one comma and one space after each of them (ingress-nginx: `,?\s?`).
fn words(text: &str, is_word: impl Fn(char) -> bool) -> bool {
    let text = text.strip_suffix(' ').unwrap_or(text);
    let mut members = text.strip_suffix(',').unwrap_or(text).split(',').enumerate();
    members.all(|(number, member)| {
        let member = if number > 0 { member.strip_prefix(' ').unwrap_or(member) } else { member };
        !member.is_empty()
            && member.split(' ').all(|word| !word.is_empty() && word.chars().all(&is_word))
    })
}

fn short(text: &str) -> Result<String, String> {
    if text.len() > LONGEST {
        return Err(format!("has {} bytes, {LONGEST} is the most: list fewer", text.len()));
    }
    Ok(text.to_owned())
}

fn methods(text: &str) -> Result<String, String> {
    if words(text, |c| c.is_ascii_alphabetic()) {
        short(text)
    } else {
        Err("is no list of methods: write letters, comma separated, such as GET, POST".to_owned())
    }
}

fn headers(text: &str) -> Result<String, String> {
    if text.chars().all(|c| is_name(c) || c == ',' || c == ' ') {
        short(text)
    } else {
        Err(NO_HEADERS.to_owned())
    }
}

fn exposed(text: &str) -> Result<String, String> {
    if words(text, |c| is_name(c) || c == '*') { short(text) } else { Err(NO_HEADERS.to_owned()) }
}

const NO_HEADERS: &str =
    "is no list of headers: write letters, digits, - and _, comma separated, such as X-One, X-Two";

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn whole(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "is not a whole number: write digits only, such as 600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Origins, exposed, headers, methods, origins};

    fn listed(text: &str) -> usize {
        match origins(text) {
            Ok(Origins::Listed(list)) => list.len(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_item_without_a_scheme_allows_nobody_and_a_star_everyone() {
        assert_eq!(listed("origin.cors.com:8080, https://origin2.cors.com, null"), 2);
        assert_eq!((listed(","), listed("foo.bar.com"), listed("a b c")), (0, 0, 0));
        assert_eq!(listed("https://a.example,"), 1);
        assert_eq!(origins("*"), Ok(Origins::Any));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_said_so() {
        for wrong in ["https://a.example/", "HTTPS://a.example", "https://a;https://b", "a\nb"] {
            assert!(origins(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_are_kept_as_written_and_no_line_break_gets_in() {
        assert_eq!(methods("get, Post,").as_deref(), Ok("get, Post,"));
        assert_eq!(headers("X_Under, x-dash").as_deref(), Ok("X_Under, x-dash"));
        assert_eq!(exposed("*, X-Own").as_deref(), Ok("*, X-Own"));
        for wrong in ["*", "GET\nPOST", "GET;", "GET,,POST", ""] {
            assert!(methods(wrong).is_err(), "{wrong:?}");
        }
        let long = |bytes: usize| [headers(&"a".repeat(bytes)), exposed(&"a".repeat(bytes))];
        assert!(long(3072).iter().all(Result::is_ok) && long(3073).iter().all(Result::is_err));
        assert!(headers("X-A\nX-B").is_err() && exposed("X.Dotted").is_err());
    }
}
