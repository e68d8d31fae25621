//! How far an alias reaches that is more than one name: which names of others it could take.

use model::{Alias, ServerName};

/// What the names of an alias end with; nothing where that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    end: String,
    /// Whether it may be any name at all.
    is_all: bool,
}

impl Reach {
    /// How far an alias reaches.
    pub(crate) fn of(alias: &Alias) -> Self {
        let end = match alias {
            Alias::Name(name) => name.to_string(),
            Alias::Below(parent) => format!(".{parent}"),
            Alias::Beginning(_) => return Self { end: String::new(), is_all: false },
            Alias::Pattern(pattern) => literal_end(pattern.source()),
        };
        Self { is_all: end.is_empty(), end }
    }

    /// Whether some name could be one of both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.end.ends_with(&other.end) || other.end.ends_with(&self.end)
    }

    /// Whether it could take names from a host with a wildcard, which is one label below its parent, or from the
    /// catch-all.
    pub(crate) fn takes_from(&self, host: &ServerName) -> bool {
        let Some(parent) = host.as_str().strip_prefix('*') else { return self.is_all };
        match self.end.strip_suffix(parent) {
            Some(label) => !label.contains('.'),
            None => parent.ends_with(&self.end),
        }
    }
}

/// What every name ends with in which a pattern matches.
fn literal_end(pattern: &str) -> String {
    let Some(body) = pattern.strip_suffix('$').filter(|body| !body.ends_with('\\')) else {
        return String::new();
    };
    if ["|", "(?", "\\Q"].iter().any(|part| body.contains(part)) {
        return String::new();
    }
    let mut end = Vec::new();
    let mut rest = body.chars().rev().peekable();
    while let Some(character) = rest.next() {
        let is_escaped = rest.peek() == Some(&'\\');
        match character {
            '.' | '-' if is_escaped => drop(rest.next()),
            // `\\d` and the like stand for others, `\\x41` for something that looks like this.
            _ if is_escaped => return String::new(),
            '-' => {}
            _ if character.is_ascii_alphanumeric() => {}
            _ => break,
        }
        end.push(character.to_ascii_lowercase());
    }
    end.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::Reach;
    use model::{Alias, ServerName};

    fn reach(text: &str) -> Reach {
        Reach::of(&Alias::parse(text).expect("an alias")[0])
    }

    #[test]
    fn what_may_be_a_name_of_a_wildcard_host_is_told_from_what_cannot() {
        let host = ServerName::new("*.a.com");
        for text in [
            "*.com",
            "*.a.com",
            "~.*",
            r"~\.com$",
            r"~^shop-\d+\.a\.com$",
            "shop.*",
            r"~x\d$",
            r"~\x41$",
        ] {
            assert!(reach(text).takes_from(&host), "{text}");
        }
        for text in ["*.b.com", "*.x.a.com", r"~^s\d+\.b\.com$", r"~^s\d+\.x\.a\.com$", "*.aa.com"]
        {
            assert!(!reach(text).takes_from(&host), "{text}");
        }
        let all = ServerName::catch_all();
        assert!(reach("~.*").takes_from(&all) && reach("~^a|b$").takes_from(&all));
        assert!(!reach("*.com").takes_from(&all) && !reach("shop.*").takes_from(&all));
    }

    #[test]
    fn two_ends_overlap_if_one_ends_with_the_other() {
        assert!(reach("*.com").overlaps(&reach(r"~^x\d+\.b\.com$")));
        assert!(reach("shop.*").overlaps(&reach("*.com")));
        assert!(!reach("*.a.com").overlaps(&reach("*.b.com")));
    }
}
