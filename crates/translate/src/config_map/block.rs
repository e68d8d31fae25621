//! `block-cidrs`, and `block-user-agents` and `block-referers`, whose items are written as the keys of nginx's `map`.

use super::Area;
use crate::settings::{Items, Key, OnBad, Settings, parse};
use model::{BlockList, Global, Networks, Pattern};

pub(super) const AREA: Area =
    Area { name: "block", keys: &[&ADDRESSES, &USER_AGENTS, &REFERERS], apply };

static ADDRESSES: Key<Networks> = Key::config_map("block-cidrs", parse::addresses)
    .says(
        "networks, comma separated",
        "none",
        "Client addresses that get 403 from every location without an address list of its own.",
    )
    .on_bad(OnBad::Deny);

static USER_AGENTS: Key<BlockList> = Key::config_map("block-user-agents", values)
    .items(Items::Values)
    .says(
        "values, comma separated; ~ and ~* begin regular expressions",
        "none",
        "Requests with one of these User-Agent headers get 403.",
    )
    .on_bad(OnBad::Deny);

static REFERERS: Key<BlockList> = Key::config_map("block-referers", values)
    .items(Items::Values)
    .says(
        "values, comma separated; ~ and ~* begin regular expressions",
        "none",
        "Requests with one of these Referer headers get 403.",
    )
    .on_bad(OnBad::Deny);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    global.block.addresses = settings.get_or(&ADDRESSES, Networks::default());
    global.block.user_agents = settings.get_or(&USER_AGENTS, BlockList::default());
    global.block.referers = settings.get_or(&REFERERS, BlockList::default());
}

fn values(text: &str) -> Result<BlockList, String> {
    let mut list = BlockList::default();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let value = unquoted(item)?;
        let Some(source) = value.strip_prefix('~') else {
            // A backslash keeps nginx from reading more into a value.
            list.values.insert(value.strip_prefix('\\').unwrap_or(&value).to_ascii_lowercase());
            continue;
        };
        let (source, ignore_case) = match source.strip_prefix('*') {
            Some(source) => (source, true),
            None => (source, false),
        };
        let pattern = Pattern::new(source, ignore_case).map_err(|error| {
            format!("has the item {item:?}, which is no regular expression ({})", error.reason)
        })?;
        list.patterns.push(pattern);
    }
    Ok(list)
}

/// A word of nginx's configuration language: quotes around it go, and escapes are resolved (ngx_conf_read_token).
fn unquoted(item: &str) -> Result<String, String> {
    let inner = match item.chars().next().filter(|quote| matches!(quote, '"' | '\'')) {
        Some(quote) => {
            let inner = item[1..].strip_suffix(quote);
            inner.ok_or_else(|| {
                format!("has the item {item}, which begins with {quote} and does not end so")
            })?
        }
        None => item,
    };
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some(c @ ('"' | '\'' | '\\')) => text.push(c),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('n') => text.push('\n'),
            other => {
                text.push('\\');
                text.extend(other);
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::values;
    use model::{BlockList, Steps};

    fn has(list: &BlockList, value: &str) -> bool {
        list.has(value.as_bytes(), &Steps::default())
    }

    #[test]
    fn values_compare_whole_and_without_case() {
        let list = values("BadBot , curl/8.0").expect("values");
        assert!(has(&list, "badbot") && has(&list, "BADBOT") && has(&list, "curl/8.0"));
        assert!(!has(&list, "BadBot/1") && !has(&list, ""));
    }

    #[test]
    fn a_tilde_begins_a_regular_expression_that_is_found_anywhere() {
        let list = values(r"~*badbot,~Evil\.com").expect("patterns");
        assert!(has(&list, "a BadBot/1") && has(&list, "http://Evil.com/"));
        assert!(!has(&list, "http://evil.com/") && !has(&list, "EvilXcom"));
    }

    #[test]
    fn an_empty_value_is_none_for_expressions() {
        let list = values("~^(?!Mozilla),~^$,~.*").expect("patterns");
        assert!(has(&list, "curl/8") && !has(&list, ""));
    }

    #[test]
    fn quotes_and_escapes_are_those_of_nginx() {
        let list = values(r#""",'two words',"say \"hi\"",\~tilde"#).expect("values");
        for value in ["", "two words", "say \"hi\"", "~tilde"] {
            assert!(has(&list, value), "{value}");
        }
    }

    #[test]
    fn empty_items_are_nothing_and_broken_ones_are_refused() {
        assert!(values("a,,b, ").is_ok_and(|list| list.values.len() == 2 && !has(&list, "")));
        for wrong in ["~(", "\"open", "good,~*["] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_too_hard_to_tell_is_blocked() {
        let list = values("~^(a|a)*(?=b)c$").expect("a pattern");
        assert!(has(&list, &"a".repeat(64)));
    }
}
