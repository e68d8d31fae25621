//! The text of a pattern as PCRE reads it, written anew for a parser that reads much of it in another way.
//!
//! Whatever this does not know is refused, and nothing is passed on as it is but what means the same to both.

use super::brackets::set;
use super::error::PatternError;
use super::escapes::{Escaped, Reader, escaped, unsupported, wrong};
use super::sets::is_space;
use std::fmt::Write;

const UNCLOSED: &str = "Opening parenthesis without closing parenthesis";

/// How often something may be repeated.
const OFTEN: usize = 65_535;

/// A pattern as the parser is to have it.
pub(super) struct Spelled {
    /// Its text. Characters beyond ASCII are the bytes that they are written with, as PCRE has it without UTF.
    pub(super) text: String,
    /// The names of its groups, in the order in which they open.
    pub(super) groups: Vec<Option<String>>,
}

/// Reads a pattern as PCRE does.
pub(super) fn spelled(source: &str, ignore_case: bool) -> Result<Spelled, PatternError> {
    let mut writer = Writer::new(source, ignore_case);
    match writer.all() {
        Ok(()) => Ok(writer.spelled),
        Err(error) => {
            let at = source.len() - writer.reader.0.len();
            let reason = format!("Parsing error at position {at}: {}", error.reason);
            Err(PatternError { reason, ..error })
        }
    }
}

/// The names of groups, up to where PCRE would go no further.
pub(super) fn groups(source: &str) -> Vec<Option<String>> {
    let mut writer = Writer::new(source, false);
    while matches!(writer.piece(), Ok(true)) {}
    writer.spelled.groups
}

/// What `(?…)` sets.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// `i`
    ignore_case: bool,
    /// `s`
    dot_is_all: bool,
    /// `U`
    lazy: bool,
    /// `m`: the parser does not hear of it.
    lines: bool,
    /// `x`: nor of this.
    extended: bool,
}

impl Flags {
    /// What makes these of others.
    fn change(self, before: Self) -> String {
        let all = [
            ('i', self.ignore_case, before.ignore_case),
            ('s', self.dot_is_all, before.dot_is_all),
            ('U', self.lazy, before.lazy),
        ];
        let changed = |wanted: bool| {
            let changed = all.iter().filter(move |(_, now, was)| now != was && *now == wanted);
            changed.map(|(letter, ..)| *letter).collect::<String>()
        };
        let (on, off) = (changed(true), changed(false));
        if off.is_empty() { on } else { format!("{on}-{off}") }
    }

    fn set(&mut self, letter: u8, on: bool) -> Result<(), PatternError> {
        let flag = match letter {
            b'i' => &mut self.ignore_case,
            b's' => &mut self.dot_is_all,
            b'U' => &mut self.lazy,
            b'm' => &mut self.lines,
            b'x' => &mut self.extended,
            _ => return Err(wrong("it has a group of an unknown kind behind (?")),
        };
        *flag = on;
        Ok(())
    }
}

/// A group that has not ended.
struct Open {
    /// The flags before it.
    flags: Flags,
    /// What ends it.
    end: &'static str,
    /// Whether it may be repeated.
    repeatable: bool,
}

struct Writer<'s> {
    reader: Reader<'s>,
    flags: Flags,
    open: Vec<Open>,
    /// Whether what was read last may be repeated.
    repeatable: bool,
    spelled: Spelled,
}

impl<'s> Writer<'s> {
    fn new(source: &'s str, ignore_case: bool) -> Self {
        let spelled = Spelled { text: String::with_capacity(source.len()), groups: Vec::new() };
        Self {
            reader: Reader(source.as_bytes()),
            flags: Flags { ignore_case, ..Flags::default() },
            open: Vec::new(),
            repeatable: false,
            spelled,
        }
    }

    fn all(&mut self) -> Result<(), PatternError> {
        while self.piece()? {}
        if self.open.is_empty() { Ok(()) } else { Err(wrong(UNCLOSED)) }
    }

    /// The next piece of the pattern; says whether there was one.
    fn piece(&mut self) -> Result<bool, PatternError> {
        let here = self.reader.0;
        let Some(next) = self.reader.next() else { return Ok(false) };
        match next {
            b'#' if self.flags.extended => {
                self.reader.before("\n");
            }
            _ if self.flags.extended && is_space(next) => {}
            b'\\' => self.escape()?,
            b'[' => {
                let (set, negated) = set(&mut self.reader, self.flags.ignore_case)?;
                set.write(negated, &mut self.spelled.text);
                self.repeatable = true;
            }
            b'(' => self.group()?,
            b')' if self.open.is_empty() => {
                self.reader.0 = here;
                return Err(wrong("General parsing error: end of string not reached"));
            }
            b')' => self.end(),
            b'|' => {
                self.spelled.text.push('|');
                self.repeatable = false;
            }
            b'*' | b'+' | b'?' => self.repeat(char::from(next).to_string())?,
            b'{' => match self.count()? {
                Some(count) => self.repeat(count)?,
                None => self.byte(b'{'),
            },
            b'.' => self.item("."),
            // Not behind a newline that ends the text.
            b'^' if self.flags.lines => self.item(r"(?:\A|(?m:^)(?!\z))"),
            b'^' => self.item(r"\A"),
            b'$' if self.flags.lines => self.item("(?m:$)"),
            // Before a newline that ends the text, too, as PCRE has it without DOLLAR_ENDONLY.
            b'$' => self.item(r"\Z"),
            byte => self.byte(byte),
        }
        Ok(true)
    }

    fn item(&mut self, text: &str) {
        self.spelled.text.push_str(text);
        self.repeatable = true;
    }

    /// A byte that stands for itself.
    fn byte(&mut self, byte: u8) {
        if byte.is_ascii_alphanumeric() || b"/_-".contains(&byte) {
            self.spelled.text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(self.spelled.text, "\\x{byte:02X}");
        }
        self.repeatable = true;
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<(), PatternError> {
        if self.reader.take("E") {
            return Ok(());
        }
        if self.reader.take("Q") {
            // Whoever puts a pattern into another one knows where it ends.
            let quoted = self.reader.up_to("\\E").ok_or_else(|| wrong("a \\Q has no \\E"))?;
            quoted.iter().for_each(|byte| self.byte(*byte));
            return Ok(());
        }
        match escaped(&mut self.reader, Some(self.spelled.groups.len()))? {
            Escaped::Byte(byte) => self.byte(byte),
            Escaped::Set(set) => {
                set.write(false, &mut self.spelled.text);
                self.repeatable = true;
            }
            Escaped::Group(group) => self.again(group),
            Escaped::Letter(letter) => self.letter(letter)?,
        }
        Ok(())
    }

    fn letter(&mut self, letter: u8) -> Result<(), PatternError> {
        match letter {
            b'A' | b'B' | b'G' | b'K' | b'Z' | b'b' | b'z' => {
                let text = format!("\\{}", char::from(letter));
                self.item(&text);
            }
            b'N' if matches!(self.reader.0, [b'{', next, ..] if !next.is_ascii_digit()) => {
                return Err(unsupported("it has \\N{…}, which is not supported"));
            }
            b'C' => self.item(r"[\x00-\xFF]"),
            b'N' => self.item(r"[^\x0A]"),
            b'R' => self.item(r"(?>\x0D\x0A|[\x0A-\x0D\x85])"),
            b'g' | b'k' => {
                let group = self.reference(letter)?;
                self.again(group);
            }
            _ => {
                let letter = char::from(letter);
                return Err(unsupported(&format!("it has \\{letter}, which is not supported")));
            }
        }
        Ok(())
    }

    /// What a group has matched once more. No digit behind it is part of its number.
    fn again(&mut self, group: usize) {
        self.item(&format!("(?:\\{group})"));
    }

    /// The group behind `\g` or `\k`.
    fn reference(&mut self, letter: u8) -> Result<usize, PatternError> {
        let bad = || wrong(&format!("it has no group behind \\{}", char::from(letter)));
        if letter == b'g' {
            let braced = self.reader.take("{");
            if !braced
                || self
                    .reader
                    .0
                    .first()
                    .is_some_and(|next| !next.is_ascii_alphabetic() && *next != b'_')
            {
                let back = self.reader.take("-");
                let number = self.reader.number().ok_or_else(bad)?;
                let opened = self.spelled.groups.len();
                let group = if back { (opened + 1).checked_sub(number) } else { Some(number) };
                let closed = !braced || self.reader.take("}");
                return group.filter(|group| *group > 0 && number > 0 && closed).ok_or_else(bad);
            }
            return self.named("}");
        }
        let ends = [("{", "}"), ("<", ">"), ("'", "'")];
        let found = ends.into_iter().find(|(start, _)| self.reader.take(start));
        self.named(found.ok_or_else(bad)?.1)
    }

    /// The group whose name is next, up to what ends it.
    fn named(&mut self, end: &str) -> Result<usize, PatternError> {
        let name = self.reader.name().filter(|_| self.reader.take(end));
        let named = name.and_then(|name| {
            self.spelled.groups.iter().position(|group| group.as_deref() == Some(name))
        });
        named.map(|at| at + 1).ok_or_else(|| wrong("it refers to a group that it does not have"))
    }

    /// How often something may be repeated, behind a brace; none where the brace stands for itself.
    fn count(&mut self) -> Result<Option<String>, PatternError> {
        let mut ahead = Reader(self.reader.0);
        let least = ahead.number();
        let several = ahead.take(",");
        let most = ahead.number();
        if ahead.take("}") && (least.is_some() || (several && most.is_some())) {
            // Old releases of PCRE take it for text.
            let least = least.ok_or_else(|| unsupported("{,n} is to be written {0,n}"))?;
            self.reader = ahead;
            let most = if several { most } else { Some(least) };
            if least.max(most.unwrap_or(0)) > OFTEN {
                return Err(wrong(&format!("it repeats something more than {OFTEN} times")));
            }
            return match most {
                Some(most) if most < least => Err(wrong("the numbers of a {n,m} are out of order")),
                Some(most) => Ok(Some(format!("{{{least},{most}}}"))),
                None => Ok(Some(format!("{{{least},}}"))),
            };
        }
        // Later ones allow spaces.
        let mut ahead = Reader(self.reader.0);
        let inner = ahead.up_to("}").unwrap_or_default();
        let is_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'\t' | b',');
        if inner.iter().all(is_number) && inner.iter().any(u8::is_ascii_digit) {
            return Err(unsupported("braces with numbers hold something else, such as spaces"));
        }
        Ok(None)
    }

    /// What was read last, so often.
    fn repeat(&mut self, mut count: String) -> Result<(), PatternError> {
        if !std::mem::take(&mut self.repeatable) {
            return Err(wrong(&format!("there is nothing before {count} that it could repeat")));
        }
        let mark = ["?", "+"].into_iter().find(|mark| self.reader.take(mark));
        count.push_str(mark.unwrap_or_default());
        self.spelled.text.push_str(&count);
        Ok(())
    }

    /// What stands behind a parenthesis.
    fn group(&mut self) -> Result<(), PatternError> {
        if self.reader.take("*") {
            if !self.reader.take("F)") && !self.reader.take("FAIL)") {
                return Err(unsupported("it has a (*…) that is not supported"));
            }
            self.item("(*FAIL)");
            return Ok(());
        }
        if !self.reader.take("?") {
            self.capture(None);
            return Ok(());
        }
        if self.reader.take("#") {
            return self.reader.up_to(")").map(drop).ok_or_else(|| wrong("a comment has no end"));
        }
        for plain in [":", "=", "!", "<=", "<!", ">"] {
            if self.reader.take(plain) {
                self.open(&format!("(?{plain}"), ")", matches!(plain, ":" | ">"));
                return Ok(());
            }
        }
        for (start, end) in [("<", ">"), ("P<", ">"), ("'", "'")] {
            if self.reader.take(start) {
                return self.capture_named(end);
            }
        }
        if self.reader.take("P=") {
            let group = self.named(")")?;
            self.again(group);
            return Ok(());
        }
        if self.reader.take("(") {
            return self.condition();
        }
        // Recursion, groups with the same numbers, calls.
        let sort = self.reader.0.first().filter(|sort| b"|&RC+P0123456789".contains(sort));
        match sort {
            Some(sort) => {
                let sort = char::from(*sort);
                Err(unsupported(&format!(
                    "it has a group that begins with (?{sort}, which is not supported"
                )))
            }
            None => self.set_flags(),
        }
    }

    fn open(&mut self, text: &str, end: &'static str, repeatable: bool) {
        self.spelled.text.push_str(text);
        self.open.push(Open { flags: self.flags, end, repeatable });
        self.repeatable = false;
    }

    fn capture(&mut self, name: Option<&str>) {
        self.spelled.groups.push(name.map(str::to_owned));
        self.open("(", ")", true);
    }

    fn capture_named(&mut self, end: &str) -> Result<(), PatternError> {
        let name = self.reader.name().filter(|_| self.reader.take(end));
        let name = name.ok_or_else(|| wrong("the name of a group is none"))?;
        if self.spelled.groups.iter().any(|group| group.as_deref() == Some(name)) {
            return Err(wrong(&format!("two groups are called {name}")));
        }
        self.capture(Some(name));
        Ok(())
    }

    /// `(?(…)`: what it asks; nobody is to take a question without an answer for an assertion.
    fn condition(&mut self) -> Result<(), PatternError> {
        for look in ["?=", "?!", "?<=", "?<!"] {
            if self.reader.take(look) {
                self.open("(?", ")", true);
                self.open(&format!("(({look}"), "))(?=)", false);
                return Ok(());
            }
        }
        let opened = self.spelled.groups.len();
        let signs = ["+", "-"].into_iter().find(|sign| self.reader.take(sign));
        let number = self.reader.number();
        let group = match (signs, number) {
            (Some("+"), Some(number)) if number > 0 => opened.checked_add(number),
            (Some(_), Some(number)) if number > 0 => (opened + 1).checked_sub(number),
            (None, Some(number)) => Some(number),
            (None, None) => Some(self.condition_by_name()?),
            _ => None,
        };
        let closed = number.is_none() || self.reader.take(")");
        let group = group.filter(|group| *group > 0 && closed);
        let group = group.ok_or_else(|| unsupported("it has a condition that is not supported"))?;
        self.open(&format!("(?({group})(?=)"), ")", true);
        Ok(())
    }

    fn condition_by_name(&mut self) -> Result<usize, PatternError> {
        for (start, end) in [("<", ">)"), ("'", "')")] {
            if self.reader.take(start) {
                return self.named(end);
            }
        }
        // `R1` asks whether there is a recursion.
        let is_recursion = self.reader.0.strip_prefix(b"R").is_some_and(|behind| {
            behind.first().is_some_and(|next| matches!(next, b')' | b'&') || next.is_ascii_digit())
        });
        if is_recursion || self.reader.0.starts_with(b"DEFINE)") {
            return Err(unsupported("it has a condition that is not supported"));
        }
        self.named(")")
    }

    /// `(?i-s)` and `(?i-s:`.
    fn set_flags(&mut self) -> Result<(), PatternError> {
        let before = self.flags;
        let (mut flags, mut on, mut last) = (before, true, 0);
        loop {
            let Some(letter) = self.reader.next() else { return Err(wrong(UNCLOSED)) };
            match letter {
                b':' => {
                    self.open(&format!("(?{}:", flags.change(before)), ")", true);
                    break;
                }
                b')' => {
                    self.change(flags);
                    self.repeatable = false;
                    break;
                }
                b'-' if on => on = false,
                // Old releases of PCRE do not know `xx`.
                b'x' if last == b'x' => return Err(unsupported("(?xx) is not supported")),
                letter => flags.set(letter, on)?,
            }
            last = letter;
        }
        self.flags = flags;
        Ok(())
    }

    fn change(&mut self, flags: Flags) {
        let change = flags.change(self.flags);
        if !change.is_empty() {
            let _ = write!(self.spelled.text, "(?{change})");
        }
        self.flags = flags;
    }

    /// The end of a group, and of flags that were set within it.
    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.change(open.flags);
        self.spelled.text.push_str(open.end);
        self.repeatable = open.repeatable;
    }
}
