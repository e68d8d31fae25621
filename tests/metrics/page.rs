//! A strict reader of Prometheus' text format: what is not exactly that fails the test.

use std::collections::{BTreeMap, BTreeSet};

/// Names and values of labels.
pub(crate) type Labels = BTreeMap<String, String>;

/// One line of a page.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

/// A family with its samples.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) samples: Vec<Sample>,
}

/// Everything that a page says.
#[derive(Clone, Debug)]
pub(crate) struct Page(pub(crate) BTreeMap<String, Family>);

impl Page {
    /// Reads a page.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has an end");
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let (mut current, mut helped) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                helped = rest.split(' ').next().expect("a name").to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert_eq!(helped, name, "HELP stands before TYPE");
                let family = Family { kind: kind.to_owned(), samples: Vec::new() };
                assert!(families.insert(name.to_owned(), family).is_none(), "{name} comes twice");
                current = name.to_owned();
            } else {
                let family = families.get_mut(&current).expect("TYPE stands before samples");
                let sample = sample(line);
                let ending = sample.name.strip_prefix(&current).unwrap_or_else(|| {
                    panic!("{line} stands among the samples of {current}");
                });
                let endings: &[&str] = match family.kind.as_str() {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    "counter" | "gauge" => &[""],
                    other => panic!("{current} is of type {other}"),
                };
                assert!(endings.contains(&ending), "{line}");
                family.samples.push(sample);
            }
        }
        families.iter().for_each(|(name, family)| family.check(name));
        Self(families)
    }

    /// The samples with this name, which may end in `_bucket` and the like.
    pub(crate) fn samples(&self, name: &str) -> Vec<&Sample> {
        let all = self.0.values().flat_map(|family| &family.samples);
        all.filter(|sample| sample.name == name).collect()
    }

    /// The sum of the samples with this name and these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |sample: &&&Sample| {
            labels
                .iter()
                .all(|(label, value)| sample.labels.get(*label).is_some_and(|is| is == value))
        };
        self.samples(name).iter().filter(fits).map(|sample| sample.value).sum()
    }
}

impl Family {
    fn check(&self, name: &str) {
        assert!(!self.samples.is_empty(), "{name} has no samples");
        let mut seen = BTreeSet::new();
        for sample in &self.samples {
            assert!(seen.insert((&sample.name, &sample.labels)), "{sample:?} comes twice");
            assert!(sample.value >= 0.0, "{sample:?}");
        }
        if self.kind == "histogram" {
            self.check_buckets(name);
        }
    }

    /// Buckets grow, the last one is that of all, and as large as the count.
    fn check_buckets(&self, name: &str) {
        let mut all: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|sample| sample.name.ends_with("_bucket")) {
            let mut labels = sample.labels.clone();
            let bound = labels.remove("le").expect("a bound");
            let bound =
                if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a number") };
            all.entry(labels).or_default().push((bound, sample.value));
        }
        for (labels, buckets) in &all {
            let grow = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
            assert!(buckets.windows(2).all(grow), "{name} {labels:?}: {buckets:?}");
            let (last, count) = buckets.last().expect("a bucket");
            assert_eq!(*last, f64::INFINITY, "{name} {labels:?}");
            let counts =
                self.samples.iter().filter(|sample| sample.name == format!("{name}_count"));
            let own: Vec<f64> =
                counts.filter(|one| one.labels == *labels).map(|one| one.value).collect();
            assert_eq!(own, [*count], "{name} {labels:?}");
        }
    }
}

/// `name{label="value",…} number`.
fn sample(line: &str) -> Sample {
    let is_name = |text: &str| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line} has no value"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(is_name(label), "{line}");
            let (value, after) = unescaped(after, line);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}: {label} twice");
            if let Some(after) = after.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = after.strip_prefix(',').unwrap_or_else(|| panic!("{line}"));
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("{line} has no number"));
    Sample { name: name.to_owned(), labels, value }
}

/// A value up to its quotation mark, and what follows that.
fn unescaped<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some(escaped @ ('"' | '\\')) => value.push(escaped),
                _ => panic!("{line}"),
            },
            other => value.push(other),
        }
    }
    panic!("{line} has no end of a value")
}
