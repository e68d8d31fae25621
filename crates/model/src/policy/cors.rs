//! `enable-cors` and `cors-*`: which origins may read answers, and what they are told.

use serde::Serialize;

/// Cross-origin resource sharing: as ingress-nginx writes it (compat/behaviour.md section 17), or as a filter of a
/// route of the Gateway API asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cors {
    /// `cors-allow-origin`.
    pub origins: Origins,
    /// `cors-allow-credentials`.
    pub credentials: bool,
    /// `cors-allow-methods`, as written; empty where a filter names none.
    pub methods: String,
    /// `cors-allow-headers`, as written; empty where a filter names none.
    pub headers: String,
    /// `cors-expose-headers`, as written.
    pub expose: Option<String>,
    /// `cors-max-age`: seconds; any whole number is passed on.
    pub max_age: i64,
}

/// The origins that are allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Origins {
    /// All, and requests without one.
    Any,
    /// Those that one of these matches.
    Listed(Vec<AllowedOrigin>),
}

/// An origin of a list. The whole origin must match, without regard to case (compat/decisions.md row 4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllowedOrigin {
    /// What it begins with: all of it, unless a label is left open.
    before: String,
    /// What follows one label of letters, digits and hyphens.
    after: Option<String>,
    /// Whether it may be several labels.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deep: bool,
}

impl AllowedOrigin {
    /// An origin such as `https://a.example:8443` or `null`; a `*` stands for one label.
    pub fn new(text: &str) -> Self {
        let (before, after) = match text.split_once('*') {
            Some((before, after)) => (before, Some(after.to_owned())),
            None => (text, None),
        };
        Self { before: before.to_owned(), after, deep: false }
    }

    /// The same, but a `*` stands for any number of labels, at least one.
    pub fn at_any_depth(text: &str) -> Self {
        Self { deep: true, ..Self::new(text) }
    }

    /// The origin as it was written, in words of a filter: a `*` for what is left open.
    pub fn text(&self) -> String {
        match &self.after {
            Some(after) => format!("{}*{after}", self.before),
            None => self.before.clone(),
        }
    }

    /// The same as a regular expression, to be matched without regard to case.
    pub fn pattern(&self) -> String {
        let escape = |text: &str| -> String {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_/:".contains(c) || !c.is_ascii();
            text.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
        };
        let open = if self.deep { "[A-Za-z0-9.-]+" } else { "[A-Za-z0-9-]+" };
        let after = self.after.as_ref().map(|after| format!("{open}{}", escape(after)));
        format!("^{}{}$", escape(&self.before), after.unwrap_or_default())
    }

    fn may_have(&self, byte: u8) -> bool {
        byte == b'-' || self.deep && byte == b'.'
    }

    /// Whether an Origin header's value is this origin.
    pub fn matches(&self, origin: &[u8]) -> bool {
        let Some(after) = &self.after else {
            return origin.eq_ignore_ascii_case(self.before.as_bytes());
        };
        let Some(open) = origin.len().checked_sub(self.before.len() + after.len()) else {
            return false;
        };
        let (before, rest) = origin.split_at(self.before.len());
        let (label, end) = rest.split_at(open);
        before.eq_ignore_ascii_case(self.before.as_bytes())
            && end.eq_ignore_ascii_case(after.as_bytes())
            && !label.is_empty()
            && label.iter().all(|byte| byte.is_ascii_alphanumeric() || self.may_have(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::AllowedOrigin;

    #[test]
    fn an_origin_matches_as_a_whole_and_without_regard_to_case() {
        let origin = AllowedOrigin::new("https://a.example");
        assert!(origin.matches(b"https://A.example"));
        for other in ["https://a.example.evil", "evilhttps://a.example", "https://a-example", ""] {
            assert!(!origin.matches(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_star_is_exactly_one_label() {
        let origin = AllowedOrigin::new("http://*.a.example:8080");
        assert!(origin.matches(b"http://b-1.a.example:8080"));
        for other in
            ["http://a.example:8080", "http://.a.example:8080", "http://x.y.a.example:8080"]
        {
            assert!(!origin.matches(other.as_bytes()), "{other}");
        }
        assert!(!origin.matches(b"http://b_1.a.example:8080"));
    }

    #[test]
    fn at_any_depth_a_star_is_labels_but_no_port_and_no_other_scheme() {
        let origin = AllowedOrigin::at_any_depth("https://*.a.example");
        for good in ["https://b.a.example", "https://x.y.a.example"] {
            assert!(origin.matches(good.as_bytes()), "{good}");
        }
        for other in ["https://a.example", "http://b.a.example", "https://b.a.example:1"] {
            assert!(!origin.matches(other.as_bytes()), "{other}");
        }
        let all = AllowedOrigin::at_any_depth("https://*");
        assert!(all.matches(b"https://b.test") && !all.matches(b"https://b.test:8443"));
        assert_eq!(all.pattern(), "^https://[A-Za-z0-9.-]+$");
    }
}
