//! `limit-rps`, `limit-rpm`, `limit-connections` and what belongs to them.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Settings, parse, words};
use crate::snippets::{Declared, Known};
use model::policy::{LimitKey, Limits, Policy, RequestLimit};
use model::{Networks, Part, Severity, Template, Variable};

pub(super) const FAMILY: Family = Family {
    name: "limits",
    keys: &[
        &PER_SECOND,
        &PER_MINUTE,
        &CONNECTIONS,
        &BURST,
        &EXEMPT,
        &KEY,
        &REQUEST_STATUS,
        &CONNECTION_STATUS,
    ],
    apply,
};

static PER_SECOND: Key<i64> = Key::annotation("limit-rps", parse::integer)
    .number("number", "0", "Requests each second of one client to the Ingress; 0 is any number.")
    .on_bad(OnBad::RejectOrDeny);

static PER_MINUTE: Key<i64> = Key::annotation("limit-rpm", parse::integer)
    .number("number", "0", "Requests each minute of one client to the Ingress; 0 is any number.")
    .on_bad(OnBad::RejectOrDeny);

static CONNECTIONS: Key<i64> = Key::annotation("limit-connections", parse::integer)
    .number(
        "number",
        "0",
        "Requests of one client to the Ingress at the same time; 0 is any number.",
    )
    .on_bad(OnBad::RejectOrDeny);

static BURST: Key<i64> = Key::annotation("limit-burst-multiplier", parse::integer).says(
    "number above 0",
    "5",
    "How many times limit-rps or limit-rpm may come at once before requests are refused.",
);

static EXEMPT: Key<Networks> = Key::annotation("limit-allowlist", parse::addresses_without_gaps)
    .aliases(&["limit-whitelist"])
    .says("networks, comma separated", "none", "Client addresses without limits.")
    .on_bad(OnBad::RejectOrDeny);

static KEY: Key<LimitKey> = Key::config_map("limit-conn-zone-variable", key).says(
    "text with variables",
    "$binary_remote_addr",
    "What tells clients apart for limits, by variables of nginx and of snippets; where it is empty there is no limit.",
);

static REQUEST_STATUS: Key<u16> = Key::config_map("limit-req-status-code", status).says(
    "status from 400 to 599",
    "503",
    "The answer to a request beyond limit-rps or limit-rpm.",
);

static CONNECTION_STATUS: Key<u16> = Key::config_map("limit-conn-status-code", status).says(
    "status from 400 to 599",
    "503",
    "The answer to a request beyond limit-connections.",
);

/// Thousandths, in which nginx counts requests.
const ONE: u64 = 1000;

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let positive = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let above_zero = |number| positive(number).filter(|number| *number > 0);
    let [per_second, per_minute, connections] =
        [&PER_SECOND, &PER_MINUTE, &CONNECTIONS].map(|key| {
            let number = settings.get(key);
            if number.is_some_and(|number| number < 0) {
                let message = "is below 0 and limits nothing: write a number above 0, or remove it";
                settings.note(key.about.name, Severity::Warning, message.to_owned());
            }
            above_zero(number)
        });
    let multiplier = settings.get_or(&BURST, 5);
    let times = positive(Some(multiplier)).unwrap_or(0);
    if times == 0 && (per_second.is_some() || per_minute.is_some()) {
        let reason =
            format!("\"{multiplier}\" is no multiplier: write a number above 0, such as 5");
        settings.deny(BURST.about.name, &reason);
    }
    let bucket = |limit: u64, rate: u64| RequestLimit {
        rate,
        burst: limit.saturating_mul(times).saturating_mul(ONE),
    };
    let key = settings.get_or(&KEY, LimitKey::Address);
    let key = known(settings, key);
    policy.limits = Limits {
        per_second: per_second.map(|limit| bucket(limit, limit.saturating_mul(ONE))),
        // nginx rounds down, too: 1 each minute is 0.016 each second.
        per_minute: per_minute.map(|limit| bucket(limit, limit.saturating_mul(ONE) / 60)),
        connections,
        exempt: settings.get_or(&EXEMPT, Networks::default()),
        key,
        request_status: settings.get_or(&REQUEST_STATUS, 503),
        connection_status: settings.get_or(&CONNECTION_STATUS, 503),
    };
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(limits: &Limits, lines: &mut Lines) {
    let Limits {
        per_second,
        per_minute,
        connections,
        exempt,
        key,
        request_status,
        connection_status,
    } = limits;
    let told = |limit: u64, each: &str, bucket: &RequestLimit| {
        format!("{limit} requests/{each}, burst {}", bucket.burst / ONE)
    };
    let second = per_second.as_ref().map(|bucket| told(bucket.rate / ONE, "s", bucket));
    // What was rounded down for a second is rounded up for the minute.
    let minute = per_minute
        .as_ref()
        .map(|bucket| told(bucket.rate.saturating_mul(60).div_ceil(ONE), "min", bucket));
    let connections = connections.map(|number| format!("{number} requests at a time"));
    lines.add("limits.per_second", second).by(&[&PER_SECOND, &BURST]);
    lines.add("limits.per_minute", minute).by(&[&PER_MINUTE, &BURST]);
    lines.add("limits.connections", connections).by(&[&CONNECTIONS]);
    lines.add("limits.exempt", exempt).by(&[&EXEMPT]);
    let key = match key {
        LimitKey::Address => "$binary_remote_addr".to_owned(),
        LimitKey::Text(text) => words(text),
    };
    lines.add("limits.key", key).by(&[&KEY]);
    lines.add("limits.request_status", request_status).by(&[&REQUEST_STATUS]);
    lines.add("limits.connection_status", connection_status).by(&[&CONNECTION_STATUS]);
}

/// Text with variables, of which some may be those of snippets.
fn key(text: &str) -> Result<LimitKey, String> {
    if matches!(text, "$binary_remote_addr" | "${binary_remote_addr}") {
        return Ok(LimitKey::Address);
    }
    let other = |name: &str| {
        let name = name.to_ascii_lowercase();
        let of_snippets = || Variable::OfSnippets(name.as_str().into());
        Some(Part::Variable(Variable::named(&name).unwrap_or_else(of_snippets)))
    };
    let template = Template::parse_for(text, other).map_err(|unknown| {
        format!("has an {unknown}: write a variable that nginx has, such as $http_x_api_key")
    })?;
    match template.parts() {
        [Part::Variable(Variable::RemoteAddr)] => Ok(LimitKey::Address),
        _ => Ok(LimitKey::Text(template)),
    }
}

/// The key, if its variables have values: addresses tell clients apart otherwise.
fn known(settings: &mut Settings<'_>, key: LimitKey) -> LimitKey {
    let LimitKey::Text(template) = &key else { return key };
    let mut declared: Option<Declared> = None;
    let unknown = template.parts().iter().find_map(|part| {
        let Part::Variable(Variable::OfSnippets(name)) = part else { return None };
        let declared = declared.get_or_insert_with(|| Declared::of(settings));
        let is_known = match declared.knows(name) {
            Known::Declared | Known::Native => true,
            Known::Nginx => settings.scope().raw,
            Known::Empty | Known::Module | Known::Nowhere => false,
        };
        (!is_known).then(|| name.clone())
    });
    let Some(name) = unknown else { return key };
    if settings.is_config_map() {
        let message = format!(
            "has a variable ${name} that neither nginx nor the snippets of the ConfigMap have, so only Ingresses whose \
             snippets declare it go by it, and the others by addresses: correct the name, or declare it in http-snippet \
             (map, geo, split_clients)"
        );
        settings.note(KEY.about.name, Severity::Warning, message);
    }
    LimitKey::Address
}

fn status(text: &str) -> Result<u16, String> {
    let status = text.parse().ok().filter(|status| (400..600).contains(status));
    status.ok_or_else(|| {
        "is no status of an error: write one from 400 to 599, such as 429".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{key, status};
    use crate::settings::parse::addresses_without_gaps as exempt;
    use model::policy::LimitKey;

    #[test]
    fn addresses_are_told_apart_from_texts() {
        for address in ["$binary_remote_addr", "${binary_remote_addr}", "$remote_addr"] {
            assert_eq!(key(address), Ok(LimitKey::Address), "{address}");
        }
        assert!(matches!(key("$http_x_api_key"), Ok(LimitKey::Text(_))));
        assert!(matches!(key("$server_name$remote_addr"), Ok(LimitKey::Text(_))));
        assert!(matches!(key("$of_snippets"), Ok(LimitKey::Text(_))));
        assert!(key("$").is_err());
    }

    #[test]
    fn statuses_are_those_of_errors() {
        assert_eq!(status("429"), Ok(429));
        for wrong in ["200", "399", "600", "4xx", "-1"] {
            assert!(status(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_with_an_empty_item_is_no_list() {
        assert!(exempt("10.0.0.0/8, 192.0.2.1").is_ok());
        assert!(exempt("10.0.0.0/8,").is_err());
    }
}
