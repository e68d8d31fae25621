//! Error pages, logs, bodies.

use super::{Reader, flag, invalid, is_digits, is_token, once};
use crate::Mistake;
use crate::syntax::{Directive, Word};
use crate::typed::{ErrorCode, ErrorPage, ErrorTarget, Regex, Settings, SubFilter, Template};

pub(crate) fn error_page(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<ErrorPage, Mistake> {
    let (target, words) = directive.arguments().split_last().expect("two arguments at least");
    let (code, words) = match words.split_last() {
        Some((word, words)) if word.text.starts_with('=') => (error_code(word)?, words),
        _ => (ErrorCode::Same, words),
    };
    if words.is_empty() {
        return Err(Mistake::refused(directive.at(), "error_page without a status"));
    }
    let read = |word: &Word| {
        let status =
            word.text.parse().ok().filter(|status| (300..=599).contains(status) && *status != 499);
        status.ok_or_else(|| invalid(word, "status from 300 to 599"))
    };
    let statuses = words.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let of_nginx = |status: &u16| (494..=497).contains(status);
    if statuses.iter().any(of_nginx) {
        let text = "494 to 497 are statuses of return here: who sends too large a head, or not the certificate that is \
                    asked for, is refused before, with 400";
        reader.note(directive, text);
    }
    let target = match target.text.strip_prefix('@') {
        Some(_) => ErrorTarget::Named(target.text.clone()),
        None if target.text.starts_with('/') => ErrorTarget::Path(reader.template(target)?),
        None => ErrorTarget::Url(reader.template(target)?),
    };
    Ok(ErrorPage { statuses, code, target, owner: None })
}

fn error_code(word: &Word) -> Result<ErrorCode, Mistake> {
    match &word.text[1..] {
        "" => Ok(ErrorCode::OfTarget),
        text => {
            let code: Option<u16> =
                text.parse().ok().filter(|code| is_digits(text) && (100..=999).contains(code));
            if code.is_some_and(|code| code < 200) {
                return Err(Mistake::refused(word.at, "a status below 200 ends no request"));
            }
            code.map(ErrorCode::Code).ok_or_else(|| invalid(word, "status"))
        }
    }
}

/// `on`, `off` or `build`.
pub(crate) fn status(_: &mut Reader<'_>, directive: &Directive) -> Result<bool, Mistake> {
    let word = &directive.arguments()[0];
    match word.text.as_str() {
        "build" => Ok(true),
        _ => flag(word),
    }
}

pub(crate) fn access_log(
    reader: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    let words = directive.arguments();
    if words[0].text == "off" && words.len() == 1 {
        settings.answers.access_log = Some(false);
        return Ok(());
    }
    for word in words {
        reader.template(word)?;
    }
    settings.answers.access_log = Some(true);
    reader.note(directive, "where lines go and what they say are keys of the ConfigMap");
    Ok(())
}

/// `off`, a name, or text with variables.
pub(crate) fn charset(reader: &mut Reader<'_>, directive: &Directive) -> Result<Template, Mistake> {
    let word = &directive.arguments()[0];
    let name = reader.template(word)?;
    match name.literal() {
        Some(text) if !is_token(text) => Err(invalid(word, "name of a charset")),
        Some(_) | None => Ok(name),
    }
}

pub(crate) fn sub_filter(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<SubFilter, Mistake> {
    let words = directive.arguments();
    if words[0].text.is_empty() {
        return Err(Mistake::refused(words[0].at, "sub_filter looks for nothing"));
    }
    Ok(SubFilter { from: reader.template(&words[0])?, to: reader.template(&words[1])? })
}

pub(crate) fn gzip_disable(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<Regex>, Mistake> {
    let read = |word: &Word| match word.text.as_str() {
        "msie6" => reader.regex("MSIE [4-6]\\.", true, word.at),
        text => reader.regex(text, true, word.at),
    };
    directive.arguments().iter().map(read).collect()
}

pub(crate) fn gzip_proxied(
    _: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<String>, Mistake> {
    const KNOWN: [&str; 9] = [
        "off",
        "expired",
        "no-cache",
        "no-store",
        "private",
        "no_last_modified",
        "no_etag",
        "auth",
        "any",
    ];
    let read = |word: &Word| match KNOWN.contains(&word.text.as_str()) {
        true => Ok(word.text.clone()),
        false => Err(invalid(word, "kind of answer; off, any, auth, private and the like are")),
    };
    directive.arguments().iter().map(read).collect()
}

pub(crate) fn stub_status(
    _: &mut Reader<'_>,
    _: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    settings.stub_status = true;
    Ok(())
}

pub(crate) fn empty_gif(
    _: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    let mut said = settings.empty_gif.then_some(());
    settings.empty_gif = true;
    once(&mut said, directive, ())
}
