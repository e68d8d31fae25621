//! Keys: name, origin, risk, documentation and parser of a setting in one value.

mod documentation;
mod lines;
mod lookup;
mod names;
mod nginx_words;
pub(crate) mod parse;
mod references;

pub use documentation::{
    Fate, Row, annotation_rows, annotations_markdown, config_map_markdown, config_map_rows,
};
pub(crate) use lines::{Group, Line, Lines, fields, on_off, size, url, words};
pub(crate) use lookup::{Rejection, Rule, Scope, Settings, Written, normalise, quote};
pub(crate) use names::{ANNOTATIONS, CONFIG_MAP, Name, NameFate, Names, nearest};
pub(crate) use nginx_words::{annotation as meant_annotation, config_map_key as meant_key};
pub(crate) use references::{ABSENT, ENTRIES, host_of, no_secret};

/// Where a key may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In annotations of an Ingress only.
    Annotation,
    /// In the controller's ConfigMap only.
    ConfigMap,
    /// In both, under the same name; the annotation counts.
    Both,
    /// In both; the ConfigMap has another name for it.
    BothAs(&'static str),
}

/// How much harm a value can do (compat/behaviour.md section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// None beyond the Ingress itself.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Raw configuration text.
    Critical,
}

impl Risk {
    /// The risk called so, in any case of letters.
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            ("low", Self::Low),
            ("medium", Self::Medium),
            ("high", Self::High),
            ("critical", Self::Critical),
        ];
        all.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, risk)| risk)
    }
}

/// What happens to an annotation's value that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBad {
    /// The ConfigMap's value or the default is used.
    Default,
    /// The Ingress is not taken; its last valid version stays.
    Reject,
    /// The paths of the Ingress answer 503; where the ConfigMap has the value, every path does, unless its last good
    /// text is known.
    Deny,
    /// The Ingress is not taken; where values are not validated, its paths answer 503.
    RejectOrDeny,
    /// The ConfigMap's value says who is believed: nobody is, unless its last good text is known.
    Disbelieve,
}

/// How ingress-nginx reads a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As true or false; what counts when nothing is written.
    Switch(bool),
    /// As a whole number, by what it begins with.
    Number,
    /// In a way of its own.
    Other,
}

/// What items look like of a list that commas alone separate, and that may be nearly any text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// They begin with a slash.
    Paths,
    /// Names, without spaces.
    Names,
    /// Values of headers, in which spaces and semicolons are usual: only words joined by `;` are conspicuous.
    Values,
}

/// What there is to know about a key besides its type.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name, without prefix.
    pub name: &'static str,
    /// Other names; they are read when the first one is absent or empty.
    pub aliases: &'static [&'static str],
    /// Where it may be written.
    pub source: Source,
    /// How ingress-nginx reads a value.
    pub form: Form,
    /// What its items look like, if it is such a list.
    pub items: Option<Items>,
    /// What a value looks like.
    pub kind: &'static str,
    /// What counts when nothing is written.
    pub default: &'static str,
    /// How much harm a value can do.
    pub risk: Risk,
    /// What happens to a bad value.
    pub on_bad: OnBad,
    /// What is wrong with values that ingress-nginx passed over.
    pub passed_over: Option<&'static str>,
    /// Space around an annotation's value makes it a bad one.
    pub exact: bool,
    /// An annotation of blanks counts as absent, though a bad value takes the Ingress out.
    pub may_be_blank: bool,
    /// What is written may open a door: it is shown nowhere.
    pub secret: bool,
    /// One sentence for users.
    pub doc: &'static str,
}

/// A setting: what there is to know about it, and how its text is read. Reading is the validation.
#[derive(Debug)]
pub struct Key<T: 'static> {
    /// What there is to know about it.
    pub about: About,
    /// Reads a value; the error says what is wrong with it and how to mend it.
    pub parse: fn(&str) -> Result<T, String>,
    /// Reads an annotation where values are not validated; the same, unless the characters of a value are all that is
    /// validated.
    pub free: fn(&str) -> Result<T, String>,
    /// Reads the ConfigMap's value; the same, unless ingress-nginx takes a list apart in another way there.
    pub of_all: fn(&str) -> Result<T, String>,
}

impl<T> Key<T> {
    const fn new(source: Source, name: &'static str, parse: fn(&str) -> Result<T, String>) -> Self {
        let about = About {
            name,
            aliases: &[],
            source,
            form: Form::Other,
            items: None,
            kind: "string",
            default: "",
            risk: Risk::Low,
            on_bad: OnBad::Default,
            passed_over: None,
            exact: false,
            may_be_blank: false,
            secret: false,
            doc: "",
        };
        Self { about, parse, free: parse, of_all: parse }
    }

    /// A key that annotations alone may have.
    pub const fn annotation(name: &'static str, parse: fn(&str) -> Result<T, String>) -> Self {
        Self::new(Source::Annotation, name, parse)
    }

    /// A key that the ConfigMap alone may have.
    pub const fn config_map(name: &'static str, parse: fn(&str) -> Result<T, String>) -> Self {
        Self::new(Source::ConfigMap, name, parse)
    }

    /// A key of both that the ConfigMap calls `config_map`.
    pub const fn both_as(
        name: &'static str,
        config_map: &'static str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Self {
        Self::new(Source::BothAs(config_map), name, parse)
    }

    /// A key of both.
    pub const fn both(name: &'static str, parse: fn(&str) -> Result<T, String>) -> Self {
        Self::new(Source::Both, name, parse)
    }

    /// Other names of the annotation, which are read when the first one is absent or empty.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.about.aliases = aliases;
        self
    }

    /// What a value looks like, the default and one sentence.
    pub const fn says(
        mut self,
        kind: &'static str,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        self.about.kind = kind;
        self.about.default = default;
        self.about.doc = doc;
        self
    }

    /// The same of a number: what is counted, the default and one sentence.
    pub const fn number(
        mut self,
        kind: &'static str,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        self.about.form = Form::Number;
        self.says(kind, default, doc)
    }

    /// What its items look like, which commas alone separate.
    pub const fn items(mut self, items: Items) -> Self {
        self.about.items = Some(items);
        self
    }

    /// How much harm a value can do.
    pub const fn risk(mut self, risk: Risk) -> Self {
        self.about.risk = risk;
        self
    }

    /// Space around an annotation's value makes it a bad one, as ingress-nginx has it for numbers, booleans and what
    /// it checks with a pattern.
    pub const fn exact(mut self) -> Self {
        self.about.exact = true;
        self
    }

    /// An annotation of blanks counts as absent: ingress-nginx checks it without its spaces with a pattern that takes
    /// nothing, too.
    pub const fn may_be_blank(mut self) -> Self {
        self.about.may_be_blank = true;
        self
    }

    /// What is written may open a door, and is shown nowhere.
    pub const fn secret(mut self) -> Self {
        self.about.secret = true;
        self
    }

    /// How an annotation is read where values are not validated.
    pub const fn free(mut self, free: fn(&str) -> Result<T, String>) -> Self {
        self.free = free;
        self
    }

    /// Reads the ConfigMap's value so.
    pub const fn of_all(mut self, of_all: fn(&str) -> Result<T, String>) -> Self {
        self.of_all = of_all;
        self
    }

    /// What is wrong with values that ingress-nginx passed over.
    pub const fn passed_over(mut self, wrong: &'static str) -> Self {
        self.about.passed_over = Some(wrong);
        self
    }

    /// What happens to a bad value.
    pub const fn on_bad(mut self, on_bad: OnBad) -> Self {
        self.about.on_bad = on_bad;
        self
    }
}

impl Key<bool> {
    /// The default of a switch and one sentence.
    pub const fn switch(mut self, default: bool, doc: &'static str) -> Self {
        self.about.form = Form::Switch(default);
        self.says("true or false", if default { "true" } else { "false" }, doc)
    }
}

/// A key whose type does not matter: for documentation and for lists of names.
pub trait AnyKey: Sync {
    /// What there is to know about it.
    fn about(&self) -> &About;
    /// Whether a text is a value of it; of an annotation, where values are not validated, `free`.
    fn reads(&self, text: &str, free: bool) -> bool;
    /// What is wrong with a text in the ConfigMap.
    fn fault(&self, text: &str) -> Option<String>;
}

impl<T> AnyKey for Key<T> {
    fn about(&self) -> &About {
        &self.about
    }

    fn reads(&self, text: &str, free: bool) -> bool {
        (if free { self.free } else { self.parse })(text).is_ok()
    }

    fn fault(&self, text: &str) -> Option<String> {
        (self.of_all)(text).err()
    }
}

impl About {
    /// Whether annotations may have it.
    pub fn in_annotations(&self) -> bool {
        self.source != Source::ConfigMap
    }

    /// Its name in the ConfigMap, if it may be there.
    pub fn in_config_map(&self) -> Option<&'static str> {
        match self.source {
            Source::Annotation => None,
            Source::ConfigMap | Source::Both => Some(self.name),
            Source::BothAs(name) => Some(name),
        }
    }
}
