//! `enable-access-log`, `enable-rewrite-log`.

use super::Family;
use crate::settings::{Key, Lines, Settings, parse};
use model::policy::{Logging, Policy};

pub(super) const FAMILY: Family = Family { name: "logging", keys: &[&ACCESS, &REWRITE], apply };

static ACCESS: Key<bool> = Key::annotation("enable-access-log", parse::boolean)
    .switch(true, "Requests have a line in the access log.");
static REWRITE: Key<bool> = Key::annotation("enable-rewrite-log", parse::boolean)
    .switch(false, "Rewritten paths have a line in the error log, at level notice.");

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let logging = &mut policy.logging;
    logging.access = settings.get_or(&ACCESS, logging.access);
    logging.rewrite = settings.get_or(&REWRITE, logging.rewrite);
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(logging: &Logging, lines: &mut Lines) {
    let Logging { access, rewrite } = logging;
    lines.add("logging.access", access).by(&[&ACCESS]);
    lines.add("logging.rewrite", rewrite).by(&[&REWRITE]);
}
