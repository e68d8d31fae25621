//! The text of a pattern read: what it says of bytes, and whether automata can do it.

use super::PatternError;
use super::backtrack::width;
use super::dialect::spelled;
use fancy_regex::{Assertion, Expr};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Capture, Class, ClassBytes, ClassBytesRange, Dot, Hir, Look, Repetition};

/// Bytes of the text of one pattern.
pub(super) const LONGEST: usize = 4096;

/// Expressions within expressions.
const DEEPEST: usize = 100;

/// Why an expression has no [`Hir`].
pub(super) enum Not {
    /// It needs backtracking.
    Linear,
    /// It is wrong.
    Valid(PatternError),
}

/// Reads the text.
pub(super) fn parse(source: &str, ignore_case: bool) -> Result<Expr, PatternError> {
    if source.len() > LONGEST {
        let reason = format!("it has {} bytes, {LONGEST} is the most", source.len());
        return Err(PatternError::of_ours(reason));
    }
    let bytes = spelled(source, ignore_case)?.text;
    let flags = if ignore_case { fancy_regex::internal::FLAG_CASEI } else { 0 };
    match Expr::parse_tree_with_flags(&bytes, flags) {
        Ok(tree) if is_deep(&tree.expr) => Err(PatternError::of_ours("it is nested too deeply")),
        Ok(tree) => Ok(tree.expr),
        Err(error) => Err(PatternError::wrong(error.to_string())),
    }
}

/// Whether something is nested deeper than recursion should follow it.
fn is_deep(expr: &Expr) -> bool {
    let mut waiting = vec![(expr, 0)];
    while let Some((expr, depth)) = waiting.pop() {
        if depth > DEEPEST {
            return true;
        }
        waiting.extend(expr.children_iter().map(|child| (child, depth + 1)));
    }
    false
}

/// What automata run, and where its texts end.
pub(super) fn whole(expr: &Expr) -> Result<(Hir, bool), Not> {
    let (mut strict, mut last_line) = (false, false);
    let mut waiting = vec![expr];
    while let Some(expr) = waiting.pop() {
        match expr {
            Expr::Assertion(Assertion::EndText) => strict = true,
            Expr::Assertion(Assertion::EndTextIgnoreTrailingNewlines { .. }) => last_line = true,
            _ => waiting.extend(expr.children_iter()),
        }
        // Whoever matches twice, see below, does not find this.
        strict |= matches!(expr, Expr::Concat(parts) if reads_behind_an_end(parts));
    }
    if strict && last_line {
        return Err(Not::Linear);
    }
    Ok((hir(expr, &mut 0)?, last_line))
}

/// Whether something that has to be read behind a `\Z` may be the newline that ends the text.
fn reads_behind_an_end(parts: &[Expr]) -> bool {
    let is_end = |expr: &Expr| {
        matches!(expr, Expr::Assertion(Assertion::EndTextIgnoreTrailingNewlines { .. }))
    };
    let mut behind = parts.iter().skip_while(|part| !has(part, is_end)).skip(1);
    behind.any(|part| width(part).0 > 0 && has(part, reads_newline))
}

/// Whether there is such an expression in one.
fn has(expr: &Expr, wanted: impl Fn(&Expr) -> bool) -> bool {
    let mut waiting = vec![expr];
    while let Some(expr) = waiting.pop() {
        if wanted(expr) {
            return true;
        }
        waiting.extend(expr.children_iter());
    }
    false
}

fn reads_newline(leaf: &Expr) -> bool {
    let sets = one(leaf).ok().flatten().unwrap_or_default();
    sets.iter()
        .flat_map(ClassBytes::iter)
        .any(|range| (range.start()..=range.end()).contains(&b'\n'))
}

/// The same for a part; groups are numbered in the order in which they open.
fn hir(expr: &Expr, groups: &mut u32) -> Result<Hir, Not> {
    Ok(match expr {
        Expr::Empty => Hir::empty(),
        Expr::Concat(parts) => Hir::concat(all(parts, groups)?),
        Expr::Alt(parts) => Hir::alternation(all(parts, groups)?),
        Expr::Group(inner) => {
            *groups += 1;
            let index = *groups;
            Hir::capture(Capture { index, name: None, sub: Box::new(hir(inner, groups)?) })
        }
        // Their groups would be lost, and the numbers of later ones with them.
        Expr::Repeat { hi: 0, .. } => return Err(Not::Linear),
        Expr::Repeat { child, lo, hi, greedy } => {
            let number =
                |count: usize| u32::try_from(count).map_err(|_| Not::Valid(too_often(count)));
            let min = number(*lo)?;
            let max = if *hi == usize::MAX { None } else { Some(number(*hi)?) };
            let sub = Box::new(hir(child, groups)?);
            Hir::repetition(Repetition { min, max, greedy: *greedy, sub })
        }
        // Whoever matches looks once more without a newline at the end.
        Expr::Assertion(assertion) => Hir::look(look(*assertion).unwrap_or(Look::End)),
        leaf => match one(leaf).map_err(Not::Valid)? {
            Some(bytes) => {
                Hir::concat(bytes.into_iter().map(|set| Hir::class(Class::Bytes(set))).collect())
            }
            None => return Err(Not::Linear),
        },
    })
}

fn all(parts: &[Expr], groups: &mut u32) -> Result<Vec<Hir>, Not> {
    parts.iter().map(|part| hir(part, groups)).collect()
}

fn too_often(count: usize) -> PatternError {
    PatternError::of_ours(format!("it repeats something {count} times"))
}

/// The bytes that a leaf stands for, one set after the other; none if it stands for something else.
pub(super) fn one(leaf: &Expr) -> Result<Option<Vec<ClassBytes>>, PatternError> {
    let byte = |byte: u8| ClassBytes::new([ClassBytesRange::new(byte, byte)]);
    Ok(Some(match leaf {
        Expr::Literal { val, casei } => val
            .bytes()
            .map(|value| {
                let mut set = byte(value);
                if *casei {
                    set.case_fold_simple();
                }
                set
            })
            .collect(),
        Expr::LiteralBytes { bytes } => bytes.iter().map(|value| byte(*value)).collect(),
        Expr::Any { newline, crlf } => {
            let dot = match (newline, crlf) {
                (true, _) => Dot::AnyByte,
                (false, true) => Dot::AnyByteExceptCRLF,
                (false, false) => Dot::AnyByteExceptLF,
            };
            class(&Hir::dot(dot)).into_iter().collect()
        }
        Expr::Delegate { inner, casei } => {
            let mut parser = ParserBuilder::new();
            parser.unicode(false).utf8(false).case_insensitive(*casei);
            let parsed = parser.build().parse(inner);
            let set = parsed.ok().as_ref().and_then(class);
            let wrong = || PatternError::wrong(format!("{inner} is no set of bytes"));
            vec![set.ok_or_else(wrong)?]
        }
        _ => return Ok(None),
    }))
}

/// The set of bytes that an expression is, if it is one.
fn class(hir: &Hir) -> Option<ClassBytes> {
    use regex_syntax::hir::HirKind;
    match hir.kind() {
        HirKind::Class(Class::Bytes(set)) => Some(set.clone()),
        HirKind::Class(Class::Unicode(set)) => set.to_byte_class(),
        HirKind::Literal(literal) => match *literal.0 {
            [byte] => Some(ClassBytes::new([ClassBytesRange::new(byte, byte)])),
            _ => None,
        },
        _ => None,
    }
}

/// The assertion as automata know it; none for `\Z`.
pub(super) fn look(assertion: Assertion) -> Option<Look> {
    Some(match assertion {
        Assertion::StartText => Look::Start,
        Assertion::EndText => Look::End,
        Assertion::StartLine { crlf: false } | Assertion::StartLineOniguruma { crlf: false } => {
            Look::StartLF
        }
        Assertion::StartLine { crlf: true } | Assertion::StartLineOniguruma { crlf: true } => {
            Look::StartCRLF
        }
        Assertion::EndLine { crlf: false } => Look::EndLF,
        Assertion::EndLine { crlf: true } => Look::EndCRLF,
        Assertion::WordBoundary => Look::WordAscii,
        Assertion::NotWordBoundary => Look::WordAsciiNegate,
        Assertion::LeftWordBoundary => Look::WordStartAscii,
        Assertion::RightWordBoundary => Look::WordEndAscii,
        Assertion::LeftWordHalfBoundary => Look::WordStartHalfAscii,
        Assertion::RightWordHalfBoundary => Look::WordEndHalfAscii,
        Assertion::EndTextIgnoreTrailingNewlines { .. } => return None,
    })
}

/// The text up to the first special character of a path that is a pattern, without a character that may be repeated
/// zero times: what every path starts with that it matches from the beginning.
pub fn fixed_start(pattern: &str) -> &str {
    start_before("\\.+*?()[]{}|^$", pattern)
}

/// The same where a dot, which is any character, belongs to the start.
pub fn start_with_dots(pattern: &str) -> &str {
    start_before("\\+*?()[]{}|^$", pattern)
}

fn start_before<'p>(special: &str, pattern: &'p str) -> &'p str {
    let Some(end) = pattern.find(|character: char| special.contains(character)) else {
        return pattern;
    };
    if may_have_alternatives(pattern) {
        // The anchor belongs to the first alternative only.
        return "";
    }
    let (start, behind) = pattern.split_at(end);
    // Of some of these nothing is left, so that a count behind them is about the character before.
    let counts = ["*", "?", "{", "\\E", "\\Q", "(?#"].iter().any(|next| behind.starts_with(next));
    match start.char_indices().next_back() {
        Some((last, _)) if counts => &start[..last],
        _ => start,
    }
}

/// What every text without a newline ends with in which a pattern matches, whatever the case of letters; nothing where
/// that is not known. It is in lower case.
pub fn fixed_end(pattern: &str) -> String {
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
            '.' | '-' if is_escaped => {
                rest.next();
                // The backslash may be a character itself.
                if rest.peek() == Some(&'\\') {
                    return String::new();
                }
            }
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

/// Whether there may be a `|` outside of all groups. Where brackets, quotes or comments could hide parentheses, any `|`
/// counts.
fn may_have_alternatives(pattern: &str) -> bool {
    let is_flag = |character: char| character.is_ascii_alphabetic() || "^-".contains(character);
    let has_comments = |behind: &str| {
        let flags = behind.split(|character| !is_flag(character)).next().unwrap_or_default();
        behind.starts_with('#') || flags.contains('x')
    };
    let hides = pattern.contains('[')
        || pattern.contains("\\Q")
        || pattern.split("(?").skip(1).any(has_comments);
    let mut depth = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            // What stands behind `\c` is part of it, whatever it is.
            '\\' if characters.next() == Some('c') => drop(characters.next()),
            '\\' => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 || hides => return true,
            _ => {}
        }
    }
    false
}
