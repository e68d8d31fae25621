//! Annotations that count only beside another one: without it they change nothing, and whoever wrote them believes
//! that they do.

use crate::settings::Settings;
use model::Severity;

/// Annotations with the one that they belong to.
struct Companions {
    names: &'static [&'static str],
    /// Any of these will do, here or in the ConfigMap.
    beside: &'static [&'static str],
    /// What is to be written there.
    remedy: &'static str,
}

/// Those that have no louder word of their own.
const ALL: &[Companions] = &[
    Companions {
        names: &["proxy-ssl-verify"],
        beside: &["proxy-ssl-secret"],
        remedy: "the upstream's certificate is not verified; name the Secret with its authorities (ca.crt) there",
    },
    Companions {
        names: &[
            "proxy-ssl-ciphers",
            "proxy-ssl-name",
            "proxy-ssl-protocols",
            "proxy-ssl-server-name",
            "proxy-ssl-verify-depth",
        ],
        beside: &["proxy-ssl-secret"],
        remedy: "name a Secret there",
    },
    Companions {
        names: &[
            "cors-allow-credentials",
            "cors-allow-headers",
            "cors-allow-methods",
            "cors-allow-origin",
            "cors-expose-headers",
            "cors-max-age",
        ],
        beside: &["enable-cors"],
        remedy: "write \"true\" there",
    },
    Companions {
        names: &[
            "auth-always-set-cookie",
            "auth-cache-duration",
            "auth-cache-key",
            "auth-method",
            "auth-proxy-set-headers",
            "auth-request-redirect",
            "auth-response-headers",
            "auth-signin",
            "auth-signin-redirect-param",
        ],
        beside: &["auth-url"],
        remedy: "this Ingress has no authenticator of its own; write its address there",
    },
    Companions {
        names: &["auth-realm", "auth-secret-type"],
        beside: &["auth-type"],
        remedy: "nobody is asked for a password; write basic or digest there",
    },
    Companions {
        names: &["permanent-redirect-code"],
        beside: &["permanent-redirect"],
        remedy: "write there where requests are redirected to",
    },
    Companions {
        names: &["temporal-redirect-code"],
        beside: &["temporal-redirect"],
        remedy: "write there where requests are redirected to",
    },
    Companions {
        names: &["limit-allowlist", "limit-whitelist"],
        beside: &["limit-rps", "limit-rpm", "limit-connections"],
        remedy: "nobody is limited; write a limit there (allowlist-source-range is what says who is let in)",
    },
    Companions {
        names: &["limit-burst-multiplier"],
        beside: &["limit-rps", "limit-rpm"],
        remedy: "write a limit there",
    },
    Companions {
        names: &["x-forwarded-prefix"],
        beside: &["rewrite-target"],
        remedy: "write there the path that the upstream gets",
    },
    Companions {
        names: &["upstream-hash-by-subset"],
        beside: &["upstream-hash-by"],
        remedy: "write there what decides, such as $request_uri",
    },
    Companions {
        names: &["upstream-hash-by-subset-size"],
        beside: &["upstream-hash-by", "load-balance"],
        remedy: "write there what decides, such as $request_uri",
    },
    Companions {
        names: &["mirror-host", "mirror-request-body"],
        beside: &["mirror-target"],
        remedy: "write there where copies go",
    },
    Companions {
        names: &[
            "affinity-mode",
            "session-cookie-change-on-failure",
            "session-cookie-conditional-samesite-none",
            "session-cookie-domain",
            "session-cookie-expires",
            "session-cookie-max-age",
            "session-cookie-name",
            "session-cookie-path",
            "session-cookie-samesite",
            "session-cookie-secure",
        ],
        beside: &["affinity"],
        remedy: "write cookie there",
    },
];

/// Values that ask for what is so anyway.
const ASK_NOTHING: [&str; 2] = ["off", "false"];

/// Notes every companion whose main annotation is not there. One that is there and says no was meant to.
pub(super) fn check(settings: &mut Settings<'_>) {
    let data = settings.scope().config_map.map(|(_, data)| data);
    for Companions { names, beside, remedy } in ALL {
        let is_there = |name: &&str| {
            settings.raw(name).is_some_and(|text| !text.is_empty())
                || data.is_some_and(|data| data.contains_key(*name))
        };
        if beside.iter().any(is_there) {
            continue;
        }
        let is_asked = |name: &&&str| {
            let text = settings.raw(name);
            text.is_some_and(|text| !text.is_empty() && !ASK_NOTHING.contains(&&*text))
        };
        let asked: Vec<&str> = names.iter().filter(is_asked).copied().collect();
        let main = match beside.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => beside.concat(),
        };
        for name in asked {
            let message = format!("has no effect without {main}: {remedy}");
            settings.note(name, Severity::Warning, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::annotations::FAMILIES;

    #[test]
    fn every_name_is_that_of_a_key() {
        let keys = FAMILIES.iter().flat_map(|family| family.keys).map(|key| key.about());
        let known: Vec<&str> = keys
            .flat_map(|about| std::iter::once(about.name).chain(about.aliases.iter().copied()))
            .collect();
        for of in ALL {
            for name in of.names.iter().chain(of.beside) {
                assert!(known.contains(name), "{name}");
            }
        }
    }
}
