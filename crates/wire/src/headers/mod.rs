//! Header fields in the order and spelling they came in; names compare without case (RFC 9110 section 5.1).
//!
//! A section that was read stays the bytes that it came as, with the places of names and values in them; what is added
//! stands in one more piece of memory. Fields are looked at, never held one by one.

mod came;
mod section;

use crate::names::{NameSet, bit, is_same, tokens};
use bytes::{BufMut, Bytes, BytesMut};
pub(crate) use section::line;
use section::{Line, Section, place};
use std::ops::Range;
use std::{fmt, slice};

/// One field line of a section.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Name as it was written.
    pub name: &'a [u8],
    /// Value without surrounding white space; any bytes but NUL, CR and LF.
    pub value: &'a [u8],
    text: &'a [u8],
    line: &'a Line,
}

impl<'a> Field<'a> {
    #[inline]
    fn at(line: &'a Line, read: &'a [u8], added: &'a [u8]) -> Self {
        let text = if line.added { added } else { read };
        let name = &text[line.start as usize..line.name_end as usize];
        Self { name, value: &text[line.value as usize..line.end as usize], text, line }
    }

    /// Whether the field is called `name` (given in any case).
    #[inline]
    pub fn is(&self, name: &str) -> bool {
        is_same(self.name, name.as_bytes())
    }

    /// Whether the field is called one of these.
    #[inline]
    pub fn is_one_of(&self, names: &NameSet) -> bool {
        names.has(self.name)
    }

    /// Appends the field line. One that came as it would be written is copied as a whole.
    pub fn write(&self, out: &mut BytesMut) {
        if self.line.whole {
            return out.extend_from_slice(
                &self.text[self.line.start as usize..self.line.end as usize + 2],
            );
        }
        out.reserve(self.name.len() + self.value.len() + 4);
        out.put_slice(self.name);
        out.put_slice(b": ");
        out.put_slice(self.value);
        out.put_slice(b"\r\n");
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        write!(f, "{}: {}", text(self.name), text(self.value))
    }
}

impl PartialEq for Field<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.value) == (other.name, other.value)
    }
}

/// The fields of a section in order.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    lines: slice::Iter<'a, Line>,
    read: &'a [u8],
    added: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        self.lines.next().map(|line| Field::at(line, self.read, self.added))
    }
}

/// The fields of a section that is being read: whose bytes it keeps is said at its end.
pub(crate) struct Reading(Box<Section>);

impl Reading {
    pub(crate) fn new() -> Self {
        Self(Section::spare())
    }

    /// Notes a name by its bit, also that of a field which is not added.
    #[inline]
    pub(crate) fn named(&mut self, bit: u64) {
        self.0.names |= bit;
    }

    /// Adds a field, whose line begins at `start`.
    #[inline]
    pub(crate) fn found(&mut self, start: u32, name_end: u32, value: Range<u32>, whole: bool) {
        let (value, end) = (value.start, value.end);
        self.0.lines.push(Line { start, name_end, value, end, added: false, whole });
    }

    /// How many fields were added.
    pub(crate) fn len(&self) -> usize {
        self.0.lines.len()
    }

    /// The section. `read` is what all places were counted in.
    #[inline]
    pub(crate) fn of(mut self, read: Bytes) -> Headers {
        self.0.read = read;
        Headers { section: Some(self.0) }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reading").field(&self.len()).finish()
    }
}

/// There are several fields of a name that may be there once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Several;

/// The fields of a message's header or trailer section.
#[derive(Clone, Default)]
pub struct Headers {
    /// None while there is nothing in it.
    section: Option<Box<Section>>,
}

impl Drop for Headers {
    #[inline]
    fn drop(&mut self) {
        if let Some(section) = self.section.take() {
            section.end();
        }
    }
}

impl Headers {
    /// A section with nothing in it.
    pub const NONE: Self = Self { section: None };

    /// The section of which `read` has the lines, none of them yet.
    pub(crate) fn of(read: Bytes) -> Self {
        let mut section = Section::spare();
        section.read = read;
        Self { section: Some(section) }
    }

    /// Adds a field that stands in what was read.
    pub(crate) fn found(&mut self, name: Range<usize>, value: Range<usize>) {
        let Some(section) = &mut self.section else { return };
        let whole = value.start == name.end + 2
            && section.read[name.end + 1] == b' '
            && section.read.get(value.end..value.end + 2) == Some(b"\r\n");
        section.names |= bit(&section.read[name.clone()]);
        section.lines.push(Line {
            start: place(name.start),
            name_end: place(name.end),
            value: place(value.start),
            end: place(value.end),
            added: false,
            whole,
        });
    }

    /// An empty section with room for so many bytes of lines.
    pub(crate) fn with_room(bytes: usize) -> Self {
        let mut section: Box<Section> = Box::default();
        section.added.reserve_exact(bytes);
        Self { section: Some(section) }
    }

    fn section(&mut self) -> &mut Section {
        self.section.get_or_insert_with(Section::spare)
    }

    /// Whether a field may have one of the names that `bits` stand for; mostly there is none.
    #[inline]
    fn may_have(&self, bits: u64) -> bool {
        self.section.as_ref().is_some_and(|section| section.names & bits != 0)
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let section = self.section();
        let line = section.write(name.as_ref(), value.as_ref());
        section.lines.push(line);
    }

    /// Adds a field with a static name at the end.
    pub fn add(&mut self, name: &'static str, value: impl AsRef<[u8]>) {
        self.push(name, value);
    }

    /// Adds a field with a static name before all others.
    pub fn add_first(&mut self, name: &'static str, value: impl AsRef<[u8]>) {
        let section = self.section();
        let line = section.write(name.as_bytes(), value.as_ref());
        section.lines.insert(0, line);
    }

    /// Replaces all fields called `name` by one.
    pub fn set(&mut self, name: &'static str, value: impl AsRef<[u8]>) {
        self.remove(name);
        self.add(name, value);
    }

    /// Replaces all fields called `name` by one, or by none if the value is empty.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        self.retain(|field| !field.name.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            self.push(name, value);
        }
    }

    /// Gives the first field called `name` this value and removes the others, where there is none adds one; an empty
    /// value removes all of them.
    pub fn put(&mut self, name: &[u8], value: &[u8]) {
        let is_it = |field: &Field<'_>| field.name.eq_ignore_ascii_case(name);
        let mut first = !value.is_empty();
        self.retain(|field| !is_it(field) || std::mem::take(&mut first));
        if self.iter().any(|field| is_it(&field)) {
            self.rewrite(|field| is_it(field).then(|| value.to_vec()));
        } else if !value.is_empty() {
            self.push(name, value);
        }
    }

    /// Does what [`Self::put`] does with each field of `new`, no two of which have the same name and none of which is
    /// empty.
    pub fn put_all(&mut self, new: &Self) {
        let Some(other) = &new.section else { return };
        // Mostly none of the names is there, and all of them were added in one piece.
        let in_one_piece = other.lines.iter().all(|line| line.added);
        if self.may_have(other.names) || !in_one_piece {
            return new.iter().for_each(|field| self.put(field.name, field.value));
        }
        let section = self.section();
        let by = place(section.added.len());
        section.added.extend_from_slice(&other.added);
        section.names |= other.names;
        section.lines.extend(other.lines.iter().map(|line| line.moved(by)));
    }

    /// Bytes of what was added to what was read.
    pub fn added(&self) -> usize {
        self.section.as_ref().map_or(0, |section| section.added.len())
    }

    /// Bytes of memory that it keeps: of what was read all, whatever of it still counts.
    pub fn held(&self) -> usize {
        self.section.as_ref().map_or(0, |section| {
            section.read.len() + section.added.len() + section.lines.len() * size_of::<Line>()
        })
    }

    /// Bytes of all lines, as HTTP/1 has them.
    pub fn size(&self) -> usize {
        let lines = self.section.iter().flat_map(|section| &section.lines);
        lines.map(|line| (line.end - line.start) as usize + "\r\n".len()).sum()
    }

    /// Appends all lines. Those that stand behind each other as they are written are one copy.
    pub fn write(&self, out: &mut BytesMut) {
        let Some(section) = &self.section else { return };
        let Section { read, added, lines, .. } = &**section;
        let mut lines = lines.iter();
        let mut next = lines.next();
        while let Some(first) = next {
            next = lines.next();
            if !first.whole {
                Field::at(first, read, added).write(out);
                continue;
            }
            let mut end = first.end + 2;
            while let Some(line) = next
                && line.whole
                && line.added == first.added
                && line.start == end
            {
                end = line.end + 2;
                next = lines.next();
            }
            let text = if first.added { &added[..] } else { &read[..] };
            out.extend_from_slice(&text[first.start as usize..end as usize]);
        }
    }

    /// Removes all fields called `name`.
    pub fn remove(&mut self, name: &str) {
        if self.may_have(bit(name.as_bytes())) {
            self.retain(|field| !field.is(name));
        }
    }

    /// Removes all fields that are called one of these.
    pub fn remove_all(&mut self, names: &NameSet) {
        if self.may_have(names.bits()) {
            self.retain(|field| !field.is_one_of(names));
        }
    }

    /// Keeps the fields that `keep` says yes to.
    pub fn retain(&mut self, mut keep: impl FnMut(&Field<'_>) -> bool) {
        if let Some(section) = &mut self.section {
            let Section { read, added, lines, .. } = &mut **section;
            lines.retain(|line| keep(&Field::at(line, read, added)));
        }
    }

    /// Gives the fields other values that `new` has one for.
    pub fn rewrite(&mut self, mut new: impl FnMut(&Field<'_>) -> Option<Vec<u8>>) {
        let Some(section) = &mut self.section else { return };
        for at in 0..section.lines.len() {
            let field = Field::at(&section.lines[at], &section.read, &section.added);
            if let Some(value) = new(&field) {
                let name = field.name.to_vec();
                section.lines[at] = section.write(&name, &value);
            }
        }
    }

    /// Value of the first field called `name`.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.first(name).map(|field| field.value)
    }

    /// Value of the first field called `name`, to be kept.
    #[inline]
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        self.first(name).map(|field| self.kept(&field))
    }

    /// All values of a field in one line, as nginx's `$http_…` has them; none where that is absent or empty.
    pub fn joined(&self, name: &str) -> Option<Bytes> {
        if !self.may_have(bit(name.as_bytes())) {
            return None;
        }
        let mut fields = self.iter().filter(|field| field.is(name));
        let first = fields.next()?;
        let mut rest = fields.map(|field| field.value).peekable();
        if rest.peek().is_none() {
            return Some(self.kept(&first)).filter(|value| !value.is_empty());
        }
        let values: Vec<&[u8]> = std::iter::once(first.value).chain(rest).collect();
        Some(values.join(&b", "[..]).into())
    }

    /// The same, for somebody who keeps it longer than the section: no more of that stays with it.
    pub fn copied(&self, name: &str) -> Option<Bytes> {
        self.joined(name).map(|value| Bytes::copy_from_slice(&value))
    }

    /// Value of the one field called `name`, to be kept; an error where there are several.
    pub fn one(&self, name: &str) -> Result<Option<Bytes>, Several> {
        if !self.may_have(bit(name.as_bytes())) {
            return Ok(None);
        }
        let mut fields = self.iter().filter(|field| field.is(name));
        match (fields.next(), fields.next()) {
            (only, None) => Ok(only.map(|field| self.kept(&field))),
            (_, Some(_)) => Err(Several),
        }
    }

    /// Value of one of these fields, to be kept.
    pub fn kept(&self, field: &Field<'_>) -> Bytes {
        let Line { added, value, end, .. } = *field.line;
        match &self.section {
            Some(section) if !added => section.read.slice(value as usize..end as usize),
            _ => Bytes::copy_from_slice(field.value),
        }
    }

    #[inline]
    fn first(&self, name: &str) -> Option<Field<'_>> {
        if self.may_have(bit(name.as_bytes())) { self.find(name) } else { None }
    }

    /// Looks for a field that may be there. Apart, so that who asks for what is not there calls nothing.
    #[inline(never)]
    fn find(&self, name: &str) -> Option<Field<'_>> {
        let Fields { lines, read, added } = self.iter();
        // Most lengths differ, so this is all that is looked at.
        lines
            .filter(|line| (line.name_end - line.start) as usize == name.len())
            .map(|line| Field::at(line, read, added))
            .find(|field| field.is(name))
    }

    /// Value of the first field called `name`, if it is text.
    #[inline]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Values of all fields called `name`, in order.
    #[inline]
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let mut fields = self.iter();
        if !self.may_have(bit(name.as_bytes())) {
            fields.lines = [].iter();
        }
        fields.filter(move |field| field.is(name)).map(|field| field.value)
    }

    /// The fields of a variable's name, `$http_…`: in lower case, and with `_` for `-`.
    #[inline]
    pub fn spelled<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Field<'a>> {
        let same = |(a, b): (&u8, u8)| a.to_ascii_lowercase() == b || (*a == b'-' && b == b'_');
        let mut fields = self.iter();
        // A bit goes by both ends of a name.
        let is_plain = !name.starts_with('_') && !name.ends_with('_');
        if is_plain && !self.may_have(bit(name.as_bytes())) {
            fields.lines = [].iter();
        }
        fields.filter(move |field| {
            field.name.len() == name.len() && field.name.iter().zip(name.bytes()).all(same)
        })
    }

    /// Whether a field is called `name`.
    #[inline]
    pub fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// Whether a field is called one of these.
    #[inline]
    pub fn has_any(&self, names: &NameSet) -> bool {
        self.may_have(names.bits()) && self.iter().any(|field| field.is_one_of(names))
    }

    /// Whether several fields are called the same one of these.
    #[inline]
    pub(crate) fn has_twice(&self, names: &NameSet) -> bool {
        self.may_have(names.bits()) && self.counts_twice(names)
    }

    #[inline(never)]
    fn counts_twice(&self, names: &NameSet) -> bool {
        let mut seen = 0_u64;
        self.iter().filter_map(|field| names.position(field.name)).any(|position| {
            let before = seen;
            seen |= 1 << position;
            seen == before
        })
    }

    /// The fields in order.
    #[inline]
    pub fn iter(&self) -> Fields<'_> {
        match &self.section {
            Some(section) => {
                Fields { lines: section.lines.iter(), read: &section.read, added: &section.added }
            }
            None => Fields { lines: [].iter(), read: &[], added: &[] },
        }
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.section.as_ref().map_or(0, |section| section.lines.len())
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one of the comma-separated members of the fields called `name` is `token` (without case).
    #[inline]
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .any(|value| tokens(value).any(|member| member.eq_ignore_ascii_case(token.as_bytes())))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Headers {}

#[cfg(test)]
mod tests {
    use super::Headers;
    use bytes::{Bytes, BytesMut};

    #[test]
    fn what_is_copied_keeps_nothing_of_the_rest() {
        let read = Bytes::from(vec![b'x'; 1000]);
        let mut headers = Headers::of(read.clone());
        headers.found(0..3, 5..9);
        let kept = headers.bytes("xxx");
        let copied = headers.copied("xxx");
        assert_eq!(kept, copied);
        drop(headers);
        assert!(!read.is_unique(), "that is what it is kept in");
        drop(kept);
        assert!(read.is_unique());
        drop(copied);
    }

    /// What was read, with something added: the fields of which `write` makes these lines.
    fn section() -> Headers {
        let read = Bytes::from_static(b"One: 1\r\nTwo:2\r\nthree: \t3 \r\nONE: 4\r\nLone\r\n\r\n");
        let mut headers = Headers::of(read);
        let places =
            [(0..3, 5..6), (8..11, 12..13), (15..20, 23..24), (27..30, 32..33), (35..39, 39..39)];
        places.into_iter().for_each(|(name, value)| headers.found(name, value));
        headers.add("Five", "5");
        headers
    }

    fn written(headers: &Headers) -> String {
        let mut out = BytesMut::new();
        headers.iter().for_each(|field| field.write(&mut out));
        let mut at_once = BytesMut::new();
        headers.write(&mut at_once);
        assert_eq!(at_once, out);
        String::from_utf8(out.to_vec()).expect("the test has text only")
    }

    #[test]
    fn lines_are_written_as_they_are_understood() {
        assert_eq!(
            written(&section()),
            "One: 1\r\nTwo: 2\r\nthree: 3\r\nONE: 4\r\nLone: \r\nFive: 5\r\n"
        );
    }

    #[test]
    fn fields_are_found_in_any_case_wherever_they_stand() {
        let mut headers = section();
        assert_eq!((headers.get("one"), headers.get("FIVE")), (Some(&b"1"[..]), Some(&b"5"[..])));
        assert_eq!(headers.all("one").collect::<Vec<_>>(), [b"1", b"4"]);
        assert_eq!(headers.bytes("three").as_deref(), Some(&b"3"[..]));
        headers.remove("one");
        assert!(!headers.has("one") && headers.get("on").is_none() && headers.has("two"));
        assert_eq!(headers.len(), 4);
    }

    #[test]
    fn fields_are_found_by_the_names_of_their_variables() {
        let mut headers = section();
        headers.add("X-One-Two", "1");
        headers.add("x_one-two", "2");
        headers.add("-Odd-", "3");
        let spelled = |name| headers.spelled(name).map(|field| field.value).collect::<Vec<_>>();
        assert_eq!(spelled("x_one_two"), [b"1", b"2"]);
        assert_eq!(spelled("_odd_"), [b"3"]);
        assert_eq!(spelled("x-one-two"), [b"1"]);
        assert!(spelled("x_one_too").is_empty());
    }

    #[test]
    fn a_changed_field_keeps_its_place() {
        let mut headers = section();
        headers.put(b"ONE", b"other");
        headers.put(b"five", b"");
        headers.put(b"six", b"6");
        headers.rewrite(|field| field.is("three").then(|| b"33".to_vec()));
        assert_eq!(written(&headers), "One: other\r\nTwo: 2\r\nthree: 33\r\nLone: \r\nsix: 6\r\n");
        headers.replace(b"two", b"22");
        headers.add_first("first", "0");
        let mut new = Headers::default();
        new.add("SIX", "66");
        new.add("seven", "7");
        headers.put_all(&new);
        let all =
            "first: 0\r\nOne: other\r\nthree: 33\r\nLone: \r\nsix: 66\r\ntwo: 22\r\nseven: 7\r\n";
        assert_eq!(written(&headers), all);
        let mut new = Headers::default();
        new.add("eight", "8");
        new.add("nine", "9");
        headers.put_all(&new);
        assert_eq!(written(&headers), format!("{all}eight: 8\r\nnine: 9\r\n"));
        assert_eq!((headers.get("eight"), headers.get("nine")), (Some(&b"8"[..]), Some(&b"9"[..])));
        headers.remove("seven");
        assert!(written(&headers).ends_with("two: 22\r\neight: 8\r\nnine: 9\r\n"));
    }

    #[test]
    fn sections_are_equal_if_their_fields_are() {
        let mut copied = Headers::default();
        section().iter().for_each(|field| copied.push(field.name, field.value));
        assert_eq!(copied, section());
        copied.remove("five");
        assert_ne!(copied, section());
        assert_eq!(Headers::default(), Headers::of(Bytes::new()));
    }
}
