//! `limit-rate` and `limit-rate-after`: how fast an answer is sent to the client.

use super::Family;
use crate::settings::{Key, Lines, Settings, parse};
use model::policy::{LimitRate, Policy};

pub(super) const FAMILY: Family = Family { name: "limit_rate", keys: &[&RATE, &AFTER], apply };

static RATE: Key<i64> = Key::both("limit-rate", parse::integer).number(
    "KiB per second",
    "0",
    "How fast each answer is sent; 0 is as fast as the client takes it.",
);

static AFTER: Key<i64> = Key::both("limit-rate-after", parse::integer).number(
    "KiB",
    "0",
    "What is sent of an answer before limit-rate counts.",
);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    // Documented in bytes by ingress-nginx, but handed to nginx in KiB (compat/decisions.md line 6).
    let bytes = |kib: i64| u64::try_from(kib).unwrap_or(0).saturating_mul(1 << 10);
    policy.limit_rate = LimitRate {
        rate: bytes(settings.get_or(&RATE, 0)),
        after: bytes(settings.get_or(&AFTER, 0)),
    };
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(limit: &LimitRate, lines: &mut Lines) {
    let LimitRate { rate, after } = limit;
    let rate = match rate {
        0 => "unlimited".to_owned(),
        rate => format!("{} KiB/s", rate >> 10),
    };
    lines.add("limit_rate.rate", rate).by(&[&RATE]);
    lines.add("limit_rate.after", format!("{} KiB", after >> 10)).by(&[&AFTER]);
}
