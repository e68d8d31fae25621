//! Names that nginx, other controllers or common sense have for what is called otherwise here: whoever writes them
//! means something that there is, and no spelling leads there.

/// Each with the annotation that is meant.
const ANNOTATIONS: &[(&str, &str)] = &[
    ("allow", "allowlist-source-range"),
    ("auth-basic", "auth-type"),
    ("auth-request", "auth-url"),
    ("client-max-body-size", "proxy-body-size"),
    ("deny", "denylist-source-range"),
    ("error-page", "custom-http-errors"),
    ("force-https", "force-ssl-redirect"),
    ("https-redirect", "ssl-redirect"),
    ("ip-whitelist", "allowlist-source-range"),
    ("limit-conn", "limit-connections"),
    ("limit-req", "limit-rps"),
    ("max-body-size", "proxy-body-size"),
    ("proxy-write-timeout", "proxy-send-timeout"),
    ("redirect", "permanent-redirect"),
    ("rewrite", "rewrite-target"),
    ("secure-backends", "backend-protocol"),
    ("session-affinity", "affinity"),
    ("ssl-client-certificate", "auth-tls-secret"),
    ("ssl-verify-client", "auth-tls-verify-client"),
    ("sticky", "affinity"),
];

/// Each with the key of the ConfigMap that is meant.
const CONFIG_MAP: &[(&str, &str)] = &[
    ("access-log", "access-log-path"),
    ("client-max-body-size", "proxy-body-size"),
    ("error-log", "error-log-path"),
    ("error-page", "custom-http-errors"),
    ("gzip", "use-gzip"),
    ("http2", "use-http2"),
    ("keepalive-timeout", "keep-alive"),
    ("log-format", "log-format-upstream"),
    ("max-body-size", "proxy-body-size"),
    ("proxy-protocol", "use-proxy-protocol"),
    ("proxy-write-timeout", "proxy-send-timeout"),
    ("real-ip-header", "forwarded-for-header"),
    ("set-real-ip-from", "proxy-real-ip-cidr"),
    ("worker-connections", "max-worker-connections"),
];

/// The annotation that is meant by a name of nginx, as a directive or as an annotation would write it.
pub(crate) fn annotation(name: &str) -> Option<&'static str> {
    meant(ANNOTATIONS, name)
}

/// The key of the ConfigMap that is meant by one.
pub(crate) fn config_map_key(name: &str) -> Option<&'static str> {
    meant(CONFIG_MAP, name)
}

fn meant(words: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    words.iter().find(|(word, _)| *word == name).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use super::{ANNOTATIONS, CONFIG_MAP, annotation, config_map_key};
    use crate::{annotations, config_map};

    #[test]
    fn each_word_is_unknown_and_means_a_name_that_is_known() {
        for (word, meant) in ANNOTATIONS {
            let known = annotations::is_annotation;
            assert!(known(meant) && !known(word) && !config_map::is_key(word), "{word}: {meant}");
        }
        for (word, meant) in CONFIG_MAP {
            let known = config_map::is_key;
            assert!(known(meant) && !known(word), "{word}: {meant}");
        }
        assert_eq!(annotation("client_max_body_size"), Some("proxy-body-size"));
        assert_eq!(config_map_key("Keepalive_Timeout"), Some("keep-alive"));
        assert_eq!(config_map_key("something"), None);
    }
}
