//! OpenSSL's cipher lists, as far as the suites exist here: names, groups of them, and exclusions.

/// TLS 1.2 suites with what OpenSSL's ciphers(1) calls their properties, in the default order.
const SUITES: [(&str, &[&str]); 6] = [
    ("ECDHE-ECDSA-AES128-GCM-SHA256", &["ECDSA", "aECDSA", "AES", "AES128", "AESGCM", "SHA256"]),
    ("ECDHE-RSA-AES128-GCM-SHA256", &["aRSA", "AES", "AES128", "AESGCM", "SHA256"]),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", &["ECDSA", "aECDSA", "AES", "AES256", "AESGCM", "SHA384"]),
    ("ECDHE-RSA-AES256-GCM-SHA384", &["aRSA", "AES", "AES256", "AESGCM", "SHA384"]),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", &["ECDSA", "aECDSA", "CHACHA20", "SHA256"]),
    ("ECDHE-RSA-CHACHA20-POLY1305", &["aRSA", "CHACHA20", "SHA256"]),
];
/// Properties that all of them have.
const ALL: [&str; 9] =
    ["ALL", "DEFAULT", "HIGH", "TLSv1.2", "ECDHE", "EECDH", "kECDHE", "kEECDH", "ECDH"];

/// What a list means here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CipherList {
    /// Suites in the order of the list.
    pub(crate) suites: Vec<String>,
    /// Words that mean nothing that exists here.
    pub(crate) left_out: Vec<String>,
}

/// Reads a list. Suites of TLS 1.3 are not a matter of such lists.
pub(crate) fn read(text: &str) -> CipherList {
    let mut list = CipherList { suites: Vec::new(), left_out: Vec::new() };
    let mut killed: Vec<&str> = Vec::new();
    for word in text.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        match word.as_bytes()[0] {
            // Orders by strength and by level: what exists here is of one kind.
            b'@' | b'+' => {}
            b'!' | b'-' => {
                let gone: Vec<&str> = meant(&word[1..]).collect();
                list.suites.retain(|suite| !gone.contains(&suite.as_str()));
                if word.starts_with('!') {
                    killed.extend(gone);
                }
            }
            _ => {
                let known = meant(word).next().is_some();
                let new: Vec<&str> = meant(word)
                    .filter(|suite| !killed.contains(suite))
                    .filter(|suite| !list.suites.iter().any(|known| known == suite))
                    .collect();
                list.suites.extend(new.into_iter().map(str::to_owned));
                if !known && !word.starts_with("TLS_") {
                    list.left_out.push(word.to_owned());
                }
            }
        }
    }
    list
}

/// The suites that a word names: one, or all that have every property joined by `+`.
fn meant(word: &str) -> impl Iterator<Item = &'static str> {
    let has =
        |properties: &[&str], wanted: &str| ALL.contains(&wanted) || properties.contains(&wanted);
    SUITES.iter().filter_map(move |(name, properties)| {
        (*name == word || word.split('+').all(|wanted| has(properties, wanted))).then_some(*name)
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn names_groups_and_exclusions_make_a_list() {
        let list = read("ECDHE-RSA-AES256-GCM-SHA384:ECDHE+CHACHA20:!ECDSA:AES128-SHA");
        assert_eq!(list.suites, ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"]);
        assert_eq!(list.left_out, ["AES128-SHA"]);
    }

    #[test]
    fn what_is_excluded_for_good_does_not_come_back() {
        assert_eq!(read("HIGH:!aNULL:!MD5").suites.len(), 6);
        assert_eq!(read("!CHACHA20:ALL:@STRENGTH").suites.len(), 4);
        assert_eq!(read("ALL:-CHACHA20:CHACHA20").suites.len(), 6);
        assert_eq!(read("AESGCM:!AES").suites, Vec::<String>::new());
    }
}
