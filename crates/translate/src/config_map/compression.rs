//! Compression of answers: gzip and brotli.

use super::Area;
use crate::settings::{Key, Settings, parse};
use model::{Brotli, Global, Gzip, Pattern, Unwanted};
use std::collections::BTreeSet;

pub(super) const AREA: Area = Area {
    name: "compression",
    keys: &[
        &GZIP,
        &GZIP_LEVEL,
        &GZIP_LENGTH,
        &GZIP_TYPES,
        &GZIP_DISABLE,
        &BROTLI,
        &BROTLI_LEVEL,
        &BROTLI_LENGTH,
        &BROTLI_TYPES,
    ],
    apply,
};

/// Content types in lower case; none stands for all.
type Types = Option<BTreeSet<String>>;

static GZIP: Key<bool> = Key::config_map("use-gzip", parse::boolean).switch(
    false,
    "Answers 200, 403 and 404 of the types in gzip-types are compressed with gzip for clients that ask for it.",
);
static GZIP_LEVEL: Key<u8> =
    Key::config_map("gzip-level", gzip_level).number("1 to 9", "1", "How hard gzip tries.");
static GZIP_LENGTH: Key<u32> = Key::config_map("gzip-min-length", parse::count).number(
    "bytes",
    "256",
    "Answers with a smaller Content-Length are not compressed with gzip.",
);
static GZIP_TYPES: Key<Types> = Key::config_map("gzip-types", types).says(
    "content types, separated by spaces; * is all",
    "application/atom+xml application/javascript application/x-javascript application/json application/rss+xml \
     application/vnd.ms-fontobject application/x-font-ttf application/x-web-app-manifest+json application/xhtml+xml \
     application/xml font/opentype image/svg+xml image/x-icon text/css text/javascript text/plain text/x-component",
    "What is compressed with gzip, besides text/html.",
);
static GZIP_DISABLE: Key<Unwanted> = Key::config_map("gzip-disable", unwanted).says(
    "regular expression, or msie6",
    "none",
    "User agents that get nothing compressed with gzip, whatever the case of letters.",
);
static BROTLI: Key<bool> = Key::config_map("enable-brotli", parse::boolean).switch(
    false,
    "Answers 200, 403 and 404 of the types in brotli-types are compressed with brotli for clients that ask for it; \
     brotli goes before gzip.",
);
static BROTLI_LEVEL: Key<u8> =
    Key::config_map("brotli-level", brotli_level).number("0 to 11", "4", "How hard brotli tries.");
static BROTLI_LENGTH: Key<u32> = Key::config_map("brotli-min-length", parse::count).number(
    "bytes",
    "20",
    "Answers with a smaller Content-Length are not compressed with brotli.",
);
static BROTLI_TYPES: Key<Types> = Key::config_map("brotli-types", types).says(
    "content types, separated by spaces; * is all",
    "those of gzip-types and application/xml+rss",
    "What is compressed with brotli, besides text/html.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    // Every key is read, in use or not: a bad value is a problem before somebody turns compression on.
    let mut gzip = Gzip::default();
    gzip.level = settings.get_or(&GZIP_LEVEL, gzip.level);
    gzip.eligible.min_length =
        settings.get(&GZIP_LENGTH).map_or(gzip.eligible.min_length, u64::from);
    gzip.eligible.types = settings.get_or(&GZIP_TYPES, gzip.eligible.types);
    gzip.not_for = settings.get(&GZIP_DISABLE);
    global.compression.gzip = settings.get_or(&GZIP, false).then_some(gzip);
    let mut brotli = Brotli::default();
    brotli.level = settings.get_or(&BROTLI_LEVEL, brotli.level);
    brotli.eligible.min_length =
        settings.get(&BROTLI_LENGTH).map_or(brotli.eligible.min_length, u64::from);
    brotli.eligible.types = settings.get_or(&BROTLI_TYPES, brotli.eligible.types);
    global.compression.brotli = settings.get_or(&BROTLI, false).then_some(brotli);
}

fn gzip_level(text: &str) -> Result<u8, String> {
    match parse::count(text) {
        Ok(level @ 1..=9) => Ok(level as u8),
        _ => Err("is not a level of gzip: write a number from 1 to 9".to_owned()),
    }
}

fn brotli_level(text: &str) -> Result<u8, String> {
    match parse::count(text) {
        Ok(level @ 0..=11) => Ok(level as u8),
        _ => Err("is not a level of brotli: write a number from 0 to 11".to_owned()),
    }
}

/// Types as `gzip_types` has them (ngx_http_types_slot): `text/html` always counts, `*` is all.
fn types(text: &str) -> Result<Types, String> {
    let mut types = BTreeSet::from(["text/html".to_owned()]);
    for item in text.split_ascii_whitespace() {
        if item == "*" {
            return Ok(None);
        }
        let token = |part: &str| !part.is_empty() && !part.contains(['/', ';', ',', '"', '\'']);
        match item.split_once('/') {
            Some((kind, name)) if token(kind) && token(name) => {
                types.insert(item.to_ascii_lowercase())
            }
            _ => {
                return Err(format!(
                    "has the item {item:?}, which is no content type: write types such as text/css, separated by spaces"
                ));
            }
        };
    }
    Ok(Some(types))
}

fn unwanted(text: &str) -> Result<Unwanted, String> {
    if text == "msie6" {
        return Ok(Unwanted::OldExplorer);
    }
    let pattern = Pattern::new(text, true);
    pattern.map(Unwanted::Matching).map_err(|error| {
        format!("is no regular expression ({}): write one such as \"Mozilla/4\"", error.reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_libraries() {
        assert_eq!((gzip_level("1"), gzip_level("9"), brotli_level("0")), (Ok(1), Ok(9), Ok(0)));
        assert!(gzip_level("0").is_err() && gzip_level("10").is_err());
        assert!(brotli_level("12").is_err() && brotli_level("-1").is_err());
    }

    #[test]
    fn html_is_always_among_the_types_and_a_star_is_all_of_them() {
        let own = types("text/X-Own  font/woff2").expect("two types").expect("not all");
        assert_eq!(own.into_iter().collect::<Vec<_>>(), ["font/woff2", "text/html", "text/x-own"]);
        assert_eq!(types("text/css *"), Ok(None));
        for wrong in ["plain", "text/", "a,b", "text/css;x"] {
            assert!(types(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn user_agents_are_a_pattern_without_case() {
        assert!(
            unwanted("mozilla/[34]")
                .expect("a pattern")
                .has("Mozilla/4.0", &model::Steps::default())
        );
        assert_eq!(unwanted("msie6"), Ok(Unwanted::OldExplorer));
        assert!(unwanted("(").is_err());
    }
}
