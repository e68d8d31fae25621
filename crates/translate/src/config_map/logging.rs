//! The access log.

use super::Area;
use crate::settings::{Key, Settings, parse};
use model::{Global, Pattern, Severity, Template};

pub(super) const AREA: Area = Area {
    name: "logging",
    keys: &[&OFF, &HTTP_OFF, &DEFAULT_BACKEND, &SKIP, &FORMAT, &JSON, &RAW],
    apply,
};

static OFF: Key<bool> = Key::config_map("disable-access-log", parse::boolean).says(
    "true or false",
    "false",
    "No access log at all.",
);
static HTTP_OFF: Key<bool> = Key::config_map("disable-http-access-log", parse::boolean).says(
    "true or false",
    "false",
    "No access log of HTTP.",
);
static DEFAULT_BACKEND: Key<bool> = Key::config_map(
    "enable-access-log-for-default-backend",
    parse::boolean,
)
.says("true or false", "false", "Requests that no Ingress claims are logged, too.");
static SKIP: Key<Vec<String>> = Key::config_map("skip-access-log-urls", parse::list).says(
    "addresses, comma separated; those that start with ~ are regular expressions",
    "none",
    "Requests for these are not logged.",
);
static FORMAT: Key<Template> = Key::config_map("log-format-upstream", format).says(
    "text with variables",
    "the format called upstreaminfo",
    "The line written for each request.",
);
static JSON: Key<bool> = Key::config_map("log-format-escape-json", parse::boolean).says(
    "true or false",
    "false",
    "Variables of the line are escaped as in JSON.",
);
static RAW: Key<bool> = Key::config_map("log-format-escape-none", parse::boolean).says(
    "true or false",
    "false",
    "Variables of the line are not escaped.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    let off = settings.get_or(&OFF, false);
    let http_off = settings.get_or(&HTTP_OFF, false);
    global.access_log = !off && !http_off;
    global.default_backend_access_log =
        settings.get_or(&DEFAULT_BACKEND, global.default_backend_access_log);
    skip(settings, global);
    let line = &mut global.log_format;
    if let Some(template) = settings.get(&FORMAT) {
        line.template = template;
    }
    line.json = settings.get_or(&JSON, line.json);
    line.raw = settings.get_or(&RAW, line.raw);
}

fn skip(settings: &mut Settings<'_>, global: &mut Global) {
    for item in settings.get_or(&SKIP, Vec::new()) {
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
                    format!("{item:?} is no regular expression and left out: {}", error.0);
                settings.note(SKIP.about.name, Severity::Warning, message);
            }
        }
    }
}

fn format(text: &str) -> Result<Template, String> {
    Template::parse(text)
        .map_err(|unknown| format!("has the {unknown}: remove it, or write one that nginx has"))
}
