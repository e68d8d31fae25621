//! A parameter of a directive. What comes from outside gets in by a function that says how it is meant.

use model::{Part, Template};

/// A parameter as nginx reads it, before quoting. Only text of this program becomes one by `into()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(String);

/// The variable that stands for `$` where variables count: nginx knows no other way to write one.
pub(super) const DOLLAR: &str = "${fairway_dollar}";

/// Variables that nginx decodes.
pub(super) const DECODED: [&str; 6] = [
    "uri",
    "document_uri",
    "remote_user",
    "fastcgi_script_name",
    "ssl_client_cert",
    "ssl_client_raw_cert",
];

impl Word {
    /// A text for a directive that knows no variables: a name of a server, a path, a file.
    pub fn plain(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A text for a directive that knows variables; the text has none.
    pub fn literal(text: &str) -> Self {
        Self(text.replace('$', DOLLAR))
    }

    /// A text with variables, for a directive that knows them. What may hold control characters, since nginx decodes
    /// it, counts as empty where it does: it would end a header line.
    pub fn template(template: &Template) -> Self {
        Self::of_template(template, |name| {
            if DECODED.contains(&name.as_str()) {
                format!("${{fairway_safe_{name}}}")
            } else {
                format!("${{{name}}}")
            }
        })
    }

    /// The same for a log, which escapes what it writes.
    pub fn log(template: &Template) -> Self {
        Self::of_template(template, |name| format!("${{{name}}}"))
    }

    fn of_template(template: &Template, write: impl Fn(String) -> String) -> Self {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                Part::Text(literal) => text.push_str(&literal.replace('$', DOLLAR)),
                Part::Variable(variable) => text.push_str(&write(variable.name())),
                Part::Capture(group) => text.push_str(&format!("${group}")),
            }
        }
        Self(text)
    }

    /// A key of a `map` or `geo`: whatever it begins with, it is a text and neither a pattern nor a keyword.
    pub fn key(text: &str) -> Self {
        const KEYWORDS: [&str; 4] = ["default", "hostnames", "include", "volatile"];
        let special = text.starts_with(['~', '\\']) || KEYWORDS.contains(&text);
        Self(if special { format!("\\{text}") } else { text.to_owned() })
    }

    /// This parameter with another one behind it, as one.
    #[must_use]
    pub fn then(self, next: impl Into<Self>) -> Self {
        Self(self.0 + &next.into().0)
    }

    /// What nginx reads.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Word {
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for Word {
            fn from(number: $number) -> Self {
                Self(number.to_string())
            }
        })*
    };
}
numbers!(u8, u16, u32, u64, usize, i64);

impl From<bool> for Word {
    fn from(on: bool) -> Self {
        Self(if on { "on" } else { "off" }.to_owned())
    }
}

impl From<std::time::Duration> for Word {
    /// Whole seconds where that is exact, else milliseconds.
    fn from(time: std::time::Duration) -> Self {
        match time.subsec_millis() {
            0 => Self(format!("{}s", time.as_secs())),
            _ => Self(format!("{}ms", time.as_millis())),
        }
    }
}

impl From<&std::path::Path> for Word {
    fn from(path: &std::path::Path) -> Self {
        Self(path.display().to_string())
    }
}
