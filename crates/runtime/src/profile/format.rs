//! The protobuf messages of a profile (profile.proto of pprof), and what fills them.

use prost::Message;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(super) comment: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) text: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) function: String,
    pub(super) file: String,
    pub(super) line: u32,
}

/// A profile under construction: every text and every place is in it once.
pub(super) struct Builder {
    profile: Profile,
    texts: HashMap<String, i64>,
    functions: HashMap<(String, String), u64>,
    locations: HashMap<Vec<Place>, u64>,
}

impl Builder {
    /// A profile of values of these types and units.
    pub(super) fn new(types: &[(&str, &str)], taken: SystemTime) -> Self {
        let since = taken.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut builder = Self {
            profile: Profile {
                // The first text is the empty one, by definition.
                string_table: vec![String::new()],
                time_nanos: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
                ..Profile::default()
            },
            texts: HashMap::from([(String::new(), 0)]),
            functions: HashMap::new(),
            locations: HashMap::new(),
        };
        for (kind, unit) in types {
            let kind = builder.value_type(kind, unit);
            builder.profile.sample_type.push(kind);
        }
        builder
    }

    /// What one sample stands for.
    pub(super) fn period(&mut self, kind: &str, unit: &str, period: i64, duration_nanos: i64) {
        self.profile.period_type = Some(self.value_type(kind, unit));
        self.profile.period = period;
        self.profile.duration_nanos = duration_nanos;
    }

    /// A remark for whoever reads the profile.
    pub(super) fn comment(&mut self, text: &str) {
        let text = self.text(text);
        self.profile.comment.push(text);
    }

    /// Adds a stack, innermost frame first, each with what was inlined into it before it; `label` is key and value.
    pub(super) fn sample(&mut self, stack: Vec<Vec<Place>>, value: Vec<i64>, label: (&str, &str)) {
        let location_id = stack.into_iter().map(|frame| self.location(frame)).collect();
        let label = Label { key: self.text(label.0), text: self.text(label.1) };
        self.profile.sample.push(Sample { location_id, value, label: vec![label] });
    }

    /// The bytes of the profile.
    pub(super) fn encode(self) -> Vec<u8> {
        self.profile.encode_to_vec()
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType { kind: self.text(kind), unit: self.text(unit) }
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(known) = self.texts.get(text) {
            return *known;
        }
        let number = i64::try_from(self.profile.string_table.len()).unwrap_or(i64::MAX);
        self.profile.string_table.push(text.to_owned());
        self.texts.insert(text.to_owned(), number);
        number
    }

    fn location(&mut self, frame: Vec<Place>) -> u64 {
        if let Some(known) = self.locations.get(&frame) {
            return *known;
        }
        let line = |place: &Place| {
            let function_id = self.function(place);
            Line { function_id, line: i64::from(place.line) }
        };
        let line = frame.iter().map(line).collect();
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, line });
        self.locations.insert(frame, id);
        id
    }

    fn function(&mut self, place: &Place) -> u64 {
        let key = (place.function.clone(), place.file.clone());
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let id = self.profile.function.len() as u64 + 1;
        let (name, filename) = (self.text(&place.function), self.text(&place.file));
        self.profile.function.push(Function { id, name, system_name: name, filename });
        self.functions.insert(key, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::{Builder, Place, Profile};
    use prost::Message;
    use std::time::SystemTime;

    #[test]
    fn texts_functions_and_places_are_in_a_profile_once() {
        let place = |line| Place { function: "f".to_owned(), file: "f.rs".to_owned(), line };
        let mut builder = Builder::new(&[("samples", "count")], SystemTime::UNIX_EPOCH);
        builder.sample(vec![vec![place(1)], vec![place(2), place(3)]], vec![4], ("thread", "a"));
        builder.sample(vec![vec![place(1)]], vec![5], ("thread", "a"));
        let profile = Profile::decode(builder.encode().as_slice()).expect("it is a profile");
        assert_eq!(profile.string_table, ["", "samples", "count", "f", "f.rs", "thread", "a"]);
        assert_eq!((profile.function.len(), profile.location.len()), (1, 2));
        let stacks: Vec<_> =
            profile.sample.iter().map(|sample| sample.location_id.clone()).collect();
        assert_eq!(stacks, [vec![1, 2], vec![1]]);
    }
}
