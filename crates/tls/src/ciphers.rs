//! OpenSSL's names for the cipher suites that rustls has.

use rustls::{CipherSuite, SupportedCipherSuite};

/// OpenSSL's name of a suite.
pub fn openssl_name(suite: CipherSuite) -> String {
    let name = format!("{suite:?}");
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => name
            .trim_start_matches("TLS_")
            .replace("_WITH_AES_", "_AES")
            .replace("_GCM", "-GCM")
            .replace("_WITH_CHACHA20_POLY1305_SHA256", "_CHACHA20_POLY1305")
            .replace("CHACHA20_POLY1305", "CHACHA20-POLY1305")
            .replace('_', "-"),
    }
}

/// The suites of `names` in that order, and all of TLS 1.3; all that there are if none is known.
pub(super) fn chosen(names: &[String], all: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
    let is_new = |suite: &SupportedCipherSuite| suite.tls13().is_some();
    let named = |name: &String| {
        all.iter().find(|suite| !is_new(suite) && openssl_name(suite.suite()) == *name)
    };
    let mut old: Vec<_> = names.iter().filter_map(named).copied().collect();
    if old.is_empty() {
        old = all.iter().filter(|suite| !is_new(suite)).copied().collect();
    }
    all.iter().filter(|suite| is_new(suite)).copied().chain(old).collect()
}

#[cfg(test)]
mod tests {
    use super::openssl_name;

    #[test]
    fn suites_are_called_as_openssl_calls_them() {
        let suites = rustls::crypto::aws_lc_rs::default_provider().cipher_suites;
        let names: Vec<_> = suites.iter().map(|suite| openssl_name(suite.suite())).collect();
        for name in [
            "TLS_AES_256_GCM_SHA384",
            "ECDHE-RSA-AES128-GCM-SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
    }
}
