//! `ssl-passthrough`: TLS connections that end at the Service (compat/behaviour.md section 19).

use super::Family;
use crate::settings::{Key, OnBad, Settings, parse};

pub(super) const FAMILY: Family =
    Family { name: "passthrough", keys: &[&PASSTHROUGH], apply: |_, _| {} };

static PASSTHROUGH: Key<bool> = Key::annotation("ssl-passthrough", parse::boolean)
    .switch(
        false,
        "TLS connections whose server name is exactly the host go to the Service of its path / as they are; nothing else \
         that is said of the host counts for them. Needs --enable-ssl-passthrough. Plain HTTP is served as ever.",
    )
    .on_bad(OnBad::Reject);

/// Whether an Ingress asks for it.
pub(crate) fn is_passed_through(settings: &mut Settings<'_>) -> bool {
    settings.get_or(&PASSTHROUGH, false)
}
