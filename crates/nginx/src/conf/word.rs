//! A parameter of a directive. What comes from outside gets in by a function that says how it is meant.

use super::one_line;
use model::{Part, Template, Variable};

/// A parameter as nginx reads it, before quoting. Only text of this program becomes one by `into()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(String);

/// The variable that stands for `$` where variables count: nginx knows no other way to write one.
pub(super) const DOLLAR: &str = "${fairway_dollar}";

impl Word {
    /// A text for a directive that knows no variables: a name of a server, a path, a file.
    pub fn plain(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A text for a directive that knows variables; the text has none.
    pub fn literal(text: &str) -> Self {
        Self(text.replace('$', DOLLAR))
    }

    /// A text with variables, for a directive that knows them; groups are those of the location's path. What is of
    /// more than one line counts as empty: it would end that of a header.
    pub fn template(template: &Template) -> Self {
        let group = |group| braced(&one_line::name_of_group(group));
        Self::of_template(template, |variable| braced(&one_line::name(variable)), group)
    }

    /// The same in a question about a request, or a copy of it: those have matched nothing (nginx: subrequests).
    pub fn of_question(template: &Template) -> Self {
        Self::template(&template.without_groups())
    }

    /// The same for what goes into no head, whatever is in it: lines of the log, which are escaped, and keys, where
    /// what counts as empty would be that of somebody else, or no limit.
    pub fn exact(template: &Template) -> Self {
        let group = |group| braced(&one_line::own(group));
        Self::of_template(template, |variable| braced(&variable.name()), group)
    }

    /// The same where groups are those of a match that the directive makes itself. Variables that patterns find out
    /// were found out before ([`found`]).
    pub(super) fn of_match(template: &Template) -> Self {
        let variable = |variable: &Variable| {
            if one_line::is_found_by_patterns(variable) {
                braced(&found(variable))
            } else {
                braced(&variable.name())
            }
        };
        Self::of_template(template, variable, |group| format!("${group}"))
    }

    fn of_template(
        template: &Template,
        variable: impl Fn(&Variable) -> String,
        group: impl Fn(usize) -> String,
    ) -> Self {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                Part::Text(literal) => text.push_str(&literal.replace('$', DOLLAR)),
                Part::Variable(of_request) => text.push_str(&variable(of_request)),
                Part::Capture(number) => text.push_str(&group(*number)),
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

fn braced(name: &str) -> String {
    format!("${{{name}}}")
}

/// The name of what a variable was before the rewrite module made its matches.
pub(super) fn found(variable: &Variable) -> String {
    format!("fairway_found_{}", variable.name())
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
