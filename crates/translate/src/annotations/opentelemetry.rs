//! `enable-opentelemetry` and what belongs to it, with the names that OpenTracing had for them.

use super::Family;
use crate::config_map::{NO_SPANS, OPERATION_NAME, opentracing};
use crate::settings::{Key, Lines, OnBad, Risk, Settings, parse};
use model::policy::{OpenTelemetry, Policy};
use model::{Severity, Template};

pub(super) const FAMILY: Family =
    Family { name: "opentelemetry", keys: &[&ENABLE, &TRUST, &NAME], apply };

static ENABLE: Key<bool> =
    Key::both("enable-opentelemetry", parse::boolean).aliases(&["enable-opentracing"]).switch(
        false,
        "Requests are traced (tracing.md): each has a span, and each of its tries at an upstream. The annotation also \
         turns off what the ConfigMap turns on.",
    );
static TRUST: Key<bool> = Key::both("opentelemetry-trust-incoming-span", parse::boolean)
    .aliases(&["opentracing-trust-incoming-span"])
    .switch(
        true,
        "A trace that the client began goes on; false: every request begins a trace, whatever its header says.",
    );
static NAME: Key<Template> = name_key(OnBad::Reject);
/// ingress-nginx does not look at the name unless the same Ingress turns tracing on.
static NAME_BESIDES: Key<Template> = name_key(OnBad::Default);

const fn name_key(on_bad: OnBad) -> Key<Template> {
    Key::annotation("opentelemetry-operation-name", name)
        .says(
            "letters, digits, - and _",
            "that of the ConfigMap, else the path as the Ingress has it",
            "Name of the requests' spans.",
        )
        .risk(Risk::Medium)
        .on_bad(on_bad)
}

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    note_old_names(settings);
    let removed = opentracing::read(settings);
    let on = settings.get(&ENABLE).unwrap_or(removed.is_some());
    if !on {
        return;
    }
    let own = settings.raw(ENABLE.about.name).is_some_and(|text| parse::boolean(&text).is_ok());
    let name = settings.get(if own { &NAME } else { &NAME_BESIDES });
    if settings.scope().raw {
        if own {
            settings.note(ENABLE.about.name, Severity::Warning, NO_SPANS.to_owned());
        }
        return;
    }
    let removed = removed.unwrap_or_default();
    policy.opentelemetry = Some(OpenTelemetry {
        trusts_client: settings.get(&TRUST).or(removed.trusts_client).unwrap_or(true),
        operation_name: name.or_else(|| settings.get(&OPERATION_NAME)).or(removed.operation_name),
    });
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(traced: Option<&OpenTelemetry>, lines: &mut Lines) {
    lines.add("opentelemetry", traced.is_some()).by(&[&ENABLE]).by(&[&opentracing::ON]);
    let Some(OpenTelemetry { trusts_client, operation_name }) = traced else { return };
    lines
        .add("opentelemetry.trusts_client", trusts_client)
        .by(&[&TRUST])
        .beside(&opentracing::ON, &[&opentracing::TRUST]);
    lines
        .add("opentelemetry.operation_name", operation_name)
        .by(&[&NAME])
        .by(&[&OPERATION_NAME])
        .by(&[&opentracing::NAME])
        .by(&[&opentracing::LOCATION_NAME])
        .by(&[&opentracing::DATADOG_NAME]);
}

fn note_old_names(settings: &mut Settings<'_>) {
    for about in [&ENABLE.about, &TRUST.about] {
        for old in about.aliases {
            let is_there = |name| settings.raw(name).is_some_and(|text| !text.is_empty());
            // Where the new name is there, too, it counts, and who says otherwise is told so.
            if settings.raw(old).is_none() || is_there(about.name) {
                continue;
            }
            let message = format!(
                "ingress-nginx has removed it; it counts as {}: write that instead",
                settings.full_name(about.name)
            );
            settings.note(old, Severity::Notice, message);
        }
    }
}

/// As ingress-nginx has it, spaces let through: there are no variables here.
fn name(text: &str) -> Result<Template, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_ ".contains(&byte);
    match Template::parse(text) {
        Ok(template) if text.bytes().all(allowed) => Ok(template),
        _ => Err("has other characters than letters, digits, - and _: variables are for the ConfigMap's \
                  opentelemetry-operation-name"
            .to_owned()),
    }
}
