//! Hosts of rules: which texts are one, and what was meant by those that are none.

/// Whether a text can be the host of a rule: labels of letters, digits and `-`, the first one perhaps `*`.
pub(crate) fn is_host(text: &str) -> bool {
    let rest = text.strip_prefix("*.").unwrap_or(text);
    let label = |label: &str| {
        let edges = label.starts_with('-') || label.ends_with('-');
        !label.is_empty()
            && !edges
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.len() <= 253 && rest.split('.').all(label)
}

/// What is wrong with a host that is none, and what to write.
pub(super) fn fault(host: &str) -> String {
    let remedy = match meant(host) {
        Some(meant) => {
            format!("write {meant}, without scheme, port, path and the dot at the end")
        }
        None if host.contains('*') => {
            "a * stands for the first label alone: write one such as *.shop.example".to_owned()
        }
        None => "write one such as shop.example".to_owned(),
    };
    format!("{host:?} is no host name, the rule is left out; {remedy}")
}

/// The host in a URL, or beside a port.
fn meant(text: &str) -> Option<&str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let rest =
        rest.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(rest, |(name, _)| name);
    let name = rest.trim();
    let name = name.strip_suffix('.').unwrap_or(name);
    is_host(name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{fault, meant};

    #[test]
    fn the_host_in_a_url_or_beside_a_port_is_what_was_meant() {
        for text in [
            "https://a.test",
            "a.test:8080",
            "a.test/path",
            "a.test.",
            " a.test",
            "http://a.test:80/?x",
        ] {
            assert_eq!(meant(text), Some("a.test"), "{text}");
            assert!(fault(text).contains("write a.test, without"), "{}", fault(text));
        }
        for text in ["a_b.test", "", "a..test", "://", "a.test:http"] {
            assert_eq!(meant(text), None, "{text}");
        }
        for text in ["*.*.test", "a.*.test", "*a.test"] {
            assert!(fault(text).contains("write one such as *.shop.example"), "{text}");
        }
    }
}
