//! The documents of a file, and where in the file something is: YAML and JSON.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Options, Spanned};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// What the reader of YAML says of a line of a quoted text that is not further to the right than its key.
const TOO_FAR_LEFT: &str = "invalid indentation in multiline quoted scalar";
/// How far such a line is moved.
const FURTHER: &str = "                ";
/// Bytes of a document that are read for it, all times together.
const MOST_READ: usize = 64 << 20;

/// Values of one document at most, and events of its reader, several of which make one.
const VALUES: usize = 20_000_000;
const EVENTS: usize = 50_000_000;
/// What the values of all aliases of a document are, read again for each.
const UNFOLDED: usize = 100_000;
const TOO_DEEP: &str =
    "lists and maps are nested more deeply here than those of any object; write them flat";

/// Line and column, both counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

/// One document of a file.
pub(super) struct Document<'a> {
    text: Cow<'a, str>,
    /// Where its text begins in the file.
    origin: Place,
    /// Where its first words are.
    start: Place,
    json: bool,
}

/// What an object is read from: what was read already, or the text, for errors that know their place.
pub(super) enum Source<'a> {
    /// With the fields that there are and that nobody reads, as `serde_ignored` writes them.
    Value(Value, &'a mut Vec<String>),
    Yaml(&'a str),
    Json(&'a str),
}

impl Source<'_> {
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<T, (Option<Place>, String)> {
        match self {
            Self::Value(value, unknown) => {
                let mut track = serde_path_to_error::Track::new();
                let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
                let read =
                    serde_ignored::deserialize(tracked, |path| unknown.push(path.to_string()));
                read.map_err(|error| (None, format!("{}: {error}", track.path())))
            }
            Self::Yaml(text) => {
                // A number where the API wants text is refused there; so it is here.
                let mut options = options();
                options.no_schema = true;
                serde_saphyr::from_str_with_options(text, options)
                    .map_err(|error| yaml_error(&error, text))
            }
            Self::Json(text) => serde_json::from_str(text).map_err(json_error),
        }
    }
}

impl<'a> Document<'a> {
    /// The document as a plain value.
    pub(super) fn value(&mut self) -> Result<Value, (Place, String)> {
        let read = if self.json {
            serde_json::from_str(&self.text).map_err(json_error)
        } else {
            self.yaml()
        };
        read.map_err(|(place, message)| (place.map_or(self.start, |at| self.place(at)), message))
    }

    /// YAML as kubectl reads it: lines of a quoted text may begin as far to the left as its key, as tools write them
    /// (YAML 1.2.2 section 7.3 wants them further to the right). Such a line is moved; the text stays the same.
    fn yaml(&mut self) -> Result<Value, (Option<Place>, String)> {
        let mut read = 0;
        loop {
            let error = match serde_saphyr::from_str_with_options(&self.text, options()) {
                Ok(value) => return Ok(value),
                Err(error) => yaml_error(&error, &self.text),
            };
            read += self.text.len();
            match error {
                (Some(at), message) if message == TOO_FAR_LEFT && read < MOST_READ => {
                    let lines = self.text.split_inclusive('\n').take(at.line - 1);
                    let begin = lines.map(str::len).sum();
                    self.text.to_mut().insert_str(begin, FURTHER);
                }
                error => return Err(error),
            }
        }
    }

    /// Where its first words are.
    pub(super) fn start(&self) -> Place {
        self.start
    }

    pub(super) fn source(&self) -> Source<'_> {
        if self.json { Source::Json(&self.text) } else { Source::Yaml(&self.text) }
    }

    /// A place in the document as a place in the file.
    pub(super) fn place(&self, within: Place) -> Place {
        if within.line > 1 {
            Place { line: self.origin.line + within.line - 1, column: within.column }
        } else {
            Place { line: self.origin.line, column: self.origin.column + within.column - 1 }
        }
    }

    /// Where the items of a list are, or those of an array. JSON is YAML enough for that.
    pub(super) fn item_places(&self) -> Vec<Place> {
        type Items = Vec<Spanned<IgnoredAny>>;
        #[derive(Deserialize)]
        struct List {
            items: Items,
        }
        let list = serde_saphyr::from_str_with_options::<List>(&self.text, options());
        let items = match list {
            Ok(List { items }) => Ok(items),
            Err(_) => serde_saphyr::from_str_with_options::<Items>(&self.text, options()),
        };
        items.unwrap_or_default().iter().map(|item| self.at(item)).collect()
    }

    /// Where the value of a key is, in the map that a path leads to.
    pub(super) fn place_of_value(&self, map: &[&str], key: &str) -> Option<Place> {
        type Values = BTreeMap<String, Spanned<IgnoredAny>>;
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Texts {
            data: Values,
            string_data: Values,
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Metadata {
            annotations: Values,
            labels: Values,
        }
        let texts: Texts = serde_saphyr::from_str_with_options(&self.text, options()).ok()?;
        let values = match *map.last()? {
            "data" => texts.data,
            "stringData" => texts.string_data,
            "annotations" => texts.metadata.annotations,
            _ => texts.metadata.labels,
        };
        values.get(key).map(|value| self.at(value))
    }

    fn at(&self, found: &Spanned<IgnoredAny>) -> Place {
        let at = found.referenced;
        self.place(Place { line: at.line() as usize, column: at.column() as usize })
    }
}

/// Cuts a file into its documents, by its extension. In YAML, a line that begins with `---` can be nothing but the
/// start of a document, so that an error in one document says nothing about the next.
pub(super) fn documents<'a>(path: &Path, text: &'a str) -> Vec<Document<'a>> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        json_documents(text)
    } else {
        yaml_documents(text)
    }
}

fn yaml_documents(text: &str) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let (mut begin, mut first_line) = (0, 1);
    let (mut at, mut line) = (0, 1);
    for content in text.split_inclusive('\n') {
        if is_separator(content) && at > begin {
            documents.extend(yaml_document(&text[begin..at], first_line));
            (begin, first_line) = (at, line);
        }
        at += content.len();
        line += 1;
    }
    documents.extend(yaml_document(&text[begin..], first_line));
    documents
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// A piece between separators; none if it holds nothing but comments and directives.
fn yaml_document(text: &str, first_line: usize) -> Option<Document<'_>> {
    let content = |line: &str| {
        let line = line.trim_start_matches('\u{feff}');
        let line = if is_separator(line) { &line[3..] } else { line };
        let words = line.trim_start();
        !(words.is_empty() || words.starts_with('#') || line.starts_with('%'))
    };
    let skipped = text.lines().position(content)?;
    let start = Place { line: first_line + skipped, column: 1 };
    let text = Cow::Borrowed(text);
    Some(Document { text, origin: Place { line: first_line, column: 1 }, start, json: false })
}

fn json_documents(text: &str) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut begin = 0;
    loop {
        begin += text[begin..].len() - text[begin..].trim_start().len();
        let next = stream.next();
        // An unreadable document hides where the next one begins: it is the rest of the file.
        let end = if let Some(Ok(_)) = next { stream.byte_offset() } else { text.len() };
        if next.is_some() && begin < end {
            let origin = place_of(text, begin);
            let text = Cow::Borrowed(&text[begin..end]);
            documents.push(Document { text, origin, start: origin, json: true });
        }
        if !matches!(next, Some(Ok(_))) {
            return documents;
        }
        begin = end;
    }
}

fn place_of(text: &str, offset: usize) -> Place {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        // Nobody reads them, and so they may be of any length.
        emit_comments: false,
        // A `List` of a whole cluster is one document, whose texts are no longer than its file; what aliases may unfold
        // to stays bounded.
        budget: serde_saphyr::budget! {
            max_events: EVENTS,
            max_nodes: VALUES,
            max_total_scalar_bytes: usize::MAX,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: UNFOLDED },
    }
}

/// Which bound of the reader a document exceeds, with the remedy.
fn beyond(error: &Error) -> Option<String> {
    match error.without_snippet() {
        // What came of following one.
        Error::AliasError { error, .. } => beyond(error),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => Some(TOO_DEEP.to_owned()),
        Error::Budget {
            breach: BudgetBreach::Events { .. } | BudgetBreach::Nodes { .. }, ..
        } => Some(format!(
            "a document holds {VALUES} values at most; divide it into several files, or by a line ---"
        )),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => Some(
            "it has more anchors, aliases and merge keys (&, *, <<) than are followed, or they unfold to too much; \
             write out what they stand for, or give JSON, which has none (kubectl … -o json)"
                .to_owned(),
        ),
        _ => None,
    }
}

fn yaml_error(error: &Error, read: &str) -> (Option<Place>, String) {
    let place = error
        .location()
        .map(|at| Place { line: at.line() as usize, column: at.column() as usize })
        .filter(|place| place.line > 0);
    if let Some(message) = beyond(error) {
        return (place, message);
    }
    let text = error.without_snippet().to_string();
    if text.starts_with("recursion limit exceeded") {
        return (place, TOO_DEEP.to_owned());
    }
    // That place is one of the document; the caller turns it into one of the file.
    let suffix = place.map(|at| format!(" at line {}, column {}", at.line, at.column));
    let message = suffix.and_then(|suffix| text.strip_suffix(&suffix).map(str::to_owned));
    let mut message = message.unwrap_or(text);
    if let Some(end) = message.find(", set DuplicateKeyPolicy") {
        message.replace_range(end.., ": remove one of the two");
    }
    if message.contains("unknown anchor") {
        // A wildcard host, most of the time.
        message.push_str("; text that begins with * needs quotes, as in \"*.shop.example\"");
    }
    if message.starts_with("tabs disallowed") {
        message.push_str("; write spaces instead of the tab");
    }
    let line = place.and_then(|place| read.lines().nth(place.line - 1));
    if line.is_some_and(|line| line.contains("{{")) {
        message.push_str("; is this a template? Render it first (helm template)");
    }
    (place, message)
}

fn json_error(error: serde_json::Error) -> (Option<Place>, String) {
    let place = Place { line: error.line(), column: error.column().max(1) };
    let text = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    let mut message = text.strip_suffix(&suffix).unwrap_or(&text).to_owned();
    if message == "recursion limit exceeded" {
        TOO_DEEP.clone_into(&mut message);
    } else if error.is_eof() {
        message.push_str("; the file ends in the middle of it: save it once more");
    } else if message == "expected value" {
        message
            .push_str("; this is no JSON: write a value, or give YAML a name that ends with .yaml");
    }
    ((place.line > 0).then_some(place), message)
}
