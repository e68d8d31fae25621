//! The access log.

use super::Area;
use crate::settings::{Items, Key, Settings, parse};
use crate::snippets::{Declared, Known, makes};
use model::{Global, Part, Pattern, Severity, Template, Variable};
use std::collections::BTreeSet;

pub(super) const AREA: Area = Area {
    name: "logging",
    keys: &[&OFF, &HTTP_OFF, &DEFAULT_BACKEND, &SKIP, &FORMAT, &JSON, &UNESCAPED],
    apply,
};

static OFF: Key<bool> =
    Key::config_map("disable-access-log", parse::boolean).switch(false, "No access log at all.");
static HTTP_OFF: Key<bool> = Key::config_map("disable-http-access-log", parse::boolean)
    .switch(false, "No access log of HTTP.");
static DEFAULT_BACKEND: Key<bool> =
    Key::config_map("enable-access-log-for-default-backend", parse::boolean)
        .switch(false, "Requests that no Ingress claims are logged, too.");
static SKIP: Key<Vec<String>> =
    Key::config_map("skip-access-log-urls", parse::list).items(Items::Paths).says(
        "addresses, comma separated; those that start with ~ are regular expressions",
        "none",
        "Requests for these are not logged; without effect where http-snippet makes `$loggable`.",
    );
static FORMAT: Key<Template> = Key::config_map("log-format-upstream", format).says(
    "text with variables",
    "the format called upstreaminfo",
    "The line written for each request. Variables of snippets have their values; one without a value is `-`, or nothing if they are escaped as in JSON or not at all.",
);
static JSON: Key<bool> = Key::config_map("log-format-escape-json", parse::boolean)
    .switch(false, "Variables of the line are escaped as in JSON.");
static UNESCAPED: Key<bool> = Key::config_map("log-format-escape-none", parse::boolean)
    .switch(false, "Variables of the line are not escaped.");

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    let off = settings.get_or(&OFF, false);
    let http_off = settings.get_or(&HTTP_OFF, false);
    global.access_log = !off && !http_off;
    global.default_backend_access_log =
        settings.get_or(&DEFAULT_BACKEND, global.default_backend_access_log);
    skip(settings, global);
    let line = &mut global.log_format;
    line.json = settings.get_or(&JSON, line.json);
    line.unescaped = settings.get_or(&UNESCAPED, line.unescaped);
    if let Some(template) = settings.get(&FORMAT) {
        line.template = with_known(settings, template, line.json || line.unescaped);
    }
}

fn skip(settings: &mut Settings<'_>, global: &mut Global) {
    let items = settings.get_or(&SKIP, Vec::new());
    if !items.is_empty() && makes(settings, "loggable") {
        let message = "has no effect: http-snippet makes $loggable by a table of its own, as in \
                       ingress-nginx; write these paths there, each with 0";
        settings.note(SKIP.about.name, Severity::Warning, message);
    }
    for item in items {
        let Some(pattern) = item.strip_prefix('~') else {
            // Literal keys of nginx's map have no case.
            global.skip_access_log.insert(item.to_ascii_lowercase());
            continue;
        };
        let (pattern, ignore_case) =
            pattern.strip_prefix('*').map_or((pattern, false), |rest| (rest, true));
        match Pattern::new(pattern, ignore_case) {
            Ok(pattern) => global.skip_access_log_patterns.push(pattern),
            Err(error) => {
                let message =
                    format!("{item:?} is no regular expression and left out: {}", error.reason);
                settings.note(SKIP.about.name, Severity::Warning, message);
            }
        }
    }
}

/// Text with variables, of which some may be those of snippets.
fn format(text: &str) -> Result<Template, String> {
    let other = |name: &str| {
        let name = name.to_ascii_lowercase();
        let of_snippets = || Variable::OfSnippets(name.as_str().into());
        Some(Part::Variable(Variable::named(&name).unwrap_or_else(of_snippets)))
    };
    Template::parse_for(text, other)
        .map_err(|unknown| format!("has the {unknown}: remove it, or write one that nginx has"))
}

/// The format as the engine can write it. No variable takes a line away: one without a value is told, and is nothing or
/// `-` as nginx writes it with this escaping.
fn with_known(settings: &mut Settings<'_>, template: Template, is_nothing: bool) -> Template {
    let is_of_snippets = |part: &Part| matches!(part, Part::Variable(Variable::OfSnippets(_)));
    if !template.parts().iter().any(is_of_snippets) {
        return template;
    }
    let (none, text) = if is_nothing { ("nothing", "") } else { ("\"-\"", "-") };
    let (declared, raw) = (Declared::of(settings), settings.scope().raw);
    let mut told = BTreeSet::new();
    let mut known = |part: &Part| {
        let Part::Variable(Variable::OfSnippets(name)) = part else { return part.clone() };
        let (stays, message) = match declared.knows(name) {
            Known::Declared | Known::Native => return part.clone(),
            Known::Nginx if raw => return part.clone(),
            Known::Empty | Known::Nginx => {
                (true, "has no value here: take it out, or run with --engine=nginx, which has it")
            }
            Known::Module if raw => (false, "takes a module that nginx may not have: take it out"),
            Known::Module => (true, "has no value here: take it out"),
            Known::Nowhere => (
                true,
                "is unknown to nginx and to the snippets of the ConfigMap, so only requests whose Ingress declares it have \
                 it: correct the name, or declare it in http-snippet (map, geo, split_clients)",
            ),
        };
        if told.insert(name.clone()) {
            let message = format!("${name}, which is written as {none}, {message}");
            settings.note(FORMAT.about.name, Severity::Warning, message);
        }
        if stays { part.clone() } else { Part::Text(text.to_owned()) }
    };
    Template::from_parts(template.parts().iter().map(&mut known).collect())
}
