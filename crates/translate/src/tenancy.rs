//! What Ingresses of one namespace may do to what another namespace owns (docs/tenancy.md): nothing, unless an item of
//! `allow-cross-namespace` says otherwise.

/// The key of the ConfigMap.
pub(crate) const KEY: &str = "allow-cross-namespace";

/// Something that an Ingress did to the hosts and paths of others in ingress-nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// `server-alias` of a host that another namespace owns, or of names that its hosts have.
    Aliases,
    /// `app-root` of such a host.
    AppRoot,
    /// A canary beside its paths.
    Canary,
    /// `spec.tls` for such a host.
    Certificate,
    /// `ssl-ciphers` and `ssl-prefer-server-ciphers` of such a host.
    Ciphers,
    /// `auth-tls-*` for all paths of such a host.
    ClientCertificate,
    /// `custom-headers` in a ConfigMap of another namespace.
    CustomHeaders,
    /// `ssl-passthrough` of a host on which another namespace has paths.
    Passthrough,
    /// Paths that take requests from those of another namespace.
    Paths,
    /// Paths of such a host as regular expressions.
    Regex,
    /// `server-snippet` for such a host.
    ServerSnippet,
    /// `from-to-www-redirect` of such a host.
    Www,
    /// `allow-cross-namespace-resources`, which is a key of its own.
    Resources,
}

const ITEMS: [(&str, Item); 12] = [
    ("aliases", Item::Aliases),
    ("app-root", Item::AppRoot),
    ("canary", Item::Canary),
    ("certificate", Item::Certificate),
    ("ciphers", Item::Ciphers),
    ("client-certificate", Item::ClientCertificate),
    ("custom-headers", Item::CustomHeaders),
    ("passthrough", Item::Passthrough),
    ("paths", Item::Paths),
    ("regex", Item::Regex),
    ("server-snippet", Item::ServerSnippet),
    ("www", Item::Www),
];

/// The items that are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrossNamespace(u16);

impl CrossNamespace {
    /// Whether an item is allowed.
    pub(crate) fn allows(self, item: Item) -> bool {
        self.0 & Self::only(item).0 != 0
    }

    /// Also this one.
    #[must_use]
    pub(crate) fn and(self, item: Item) -> Self {
        Self(self.0 | Self::only(item).0)
    }

    fn only(item: Item) -> Self {
        Self(1 << item as u16)
    }
}

/// Reads `allow-cross-namespace`.
pub(crate) fn parse(text: &str) -> Result<CrossNamespace, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.into_iter().try_fold(CrossNamespace::default(), |allowed, word| {
        if word == "all" {
            return Ok(ITEMS.iter().fold(allowed, |allowed, (_, item)| allowed.and(*item)));
        }
        let found = ITEMS.iter().find(|(name, _)| *name == word);
        found.map(|(_, item)| allowed.and(*item)).ok_or_else(|| {
            let names: Vec<&str> = ITEMS.iter().map(|(name, _)| *name).collect();
            format!("has {word:?} in it, which is none of {}, all", names.join(", "))
        })
    })
}

/// The end of a sentence of a problem that is [`model::Why::OtherNamespace`]: which item gives ingress-nginx's
/// behaviour back.
pub(crate) fn remedy(item: Item) -> String {
    let name = ITEMS.iter().find(|(_, named)| *named == item).map_or("", |(name, _)| *name);
    format!("{name} in {KEY} of the ConfigMap allows it")
}

#[cfg(test)]
mod tests {
    use super::{ITEMS, Item, parse};

    #[test]
    fn items_are_allowed_one_by_one_or_all() {
        assert!(!parse("").expect("nothing").allows(Item::Canary));
        let two = parse("canary, regex").expect("two items");
        assert!(two.allows(Item::Canary) && two.allows(Item::Regex) && !two.allows(Item::Www));
        let all = parse("all").expect("all");
        assert!(ITEMS.iter().all(|(_, item)| all.allows(*item)) && !all.allows(Item::Resources));
        let wrong = parse("canary, tea").expect_err("no such item");
        assert!(wrong.contains("\"tea\"") && wrong.contains("server-snippet"), "{wrong}");
    }
}
