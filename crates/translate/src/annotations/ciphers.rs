//! `ssl-ciphers`, `ssl-prefer-server-ciphers`: cipher suites of a host.

use super::Family;
use crate::ciphers;
use crate::settings::{Key, Lines, OnBad, Settings, parse};
use model::Severity;
use model::policy::{Ciphers, Policy};

pub(super) const FAMILY: Family =
    Family { name: "ciphers", keys: &[&SUITES, &PREFER_SERVER], apply };

static SUITES: Key<String> = Key::annotation("ssl-ciphers", list)
    .says(
        "OpenSSL cipher list",
        "that of the ConfigMap",
        "Cipher suites of TLS 1.2 in order of preference, for the whole host. There are no others than those of the \
         ConfigMap's default.",
    )
    .on_bad(OnBad::Reject);

static PREFER_SERVER: Key<bool> = Key::annotation("ssl-prefer-server-ciphers", parse::boolean)
    .switch(true, "Our order of cipher suites counts, not that of the client.");

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let text = settings.get(&SUITES);
    let prefer_server = settings.get(&PREFER_SERVER);
    let suites = match text {
        None => Vec::new(),
        Some(text) => {
            let list = ciphers::read(&text);
            if list.suites.is_empty() {
                let message =
                    "names no suite that exists here; those of the ConfigMap are used".to_owned();
                settings.note(SUITES.about.name, Severity::Warning, message);
            } else if !list.left_out.is_empty() {
                let message = format!(
                    "{} is not supported and left out: docs/configmap.md names those that exist",
                    list.left_out.join(", ")
                );
                settings.note(SUITES.about.name, Severity::Notice, message);
            }
            list.suites
        }
    };
    if !suites.is_empty() || prefer_server.is_some() {
        policy.ciphers = Some(Ciphers { suites, prefer_server });
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(ciphers: Option<&Ciphers>, lines: &mut Lines) {
    let Some(Ciphers { suites, prefer_server }) = ciphers else { return };
    if !suites.is_empty() {
        lines.add("ciphers.suites", suites.join(":")).by(&[&SUITES]).of_host();
    }
    if let Some(prefer) = prefer_server {
        lines.add("ciphers.prefer_server", prefer).by(&[&PREFER_SERVER]).of_host();
    }
}

/// As compat/annotations.csv has it: words, `@STRENGTH` and `@SECLEVEL=n`.
fn list(text: &str) -> Result<String, String> {
    let text: String = text.chars().filter(|c| *c != ' ').collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "!:+-_".contains(c);
    let mut parts = text.split('@');
    let first = parts.next().unwrap_or_default();
    let special = |part: &str| {
        let rest = part.strip_prefix("STRENGTH").or_else(|| {
            let rest = part.strip_prefix("SECLEVEL=")?;
            rest.strip_prefix(|c| ('0'..='5').contains(&c))
        });
        rest.is_some_and(|rest| rest.chars().all(plain))
    };
    if first.chars().all(plain) && parts.all(special) {
        return Ok(text);
    }
    Err("is no cipher list: write names joined by colons, such as ECDHE-RSA-AES128-GCM-SHA256"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn lists_are_words_and_nothing_that_ends_a_directive() {
        for text in ["HIGH:!aNULL", "ALL:@STRENGTH", "DEFAULT@SECLEVEL=1:AES128-SHA", "A B"] {
            assert!(list(text).is_ok(), "{text}");
        }
        for text in ["HIGH;", "@SECLEVEL=9", "ALL:@X", "a\nb", "a{b}", "\""] {
            assert!(list(text).is_err(), "{text}");
        }
    }
}
