//! What stands between brackets, as PCRE reads it.

use super::error::PatternError;
use super::escapes::{Escaped, Reader, escaped, wrong};
use super::sets::Set;

/// What a set has between its brackets.
enum Member {
    Byte(u8),
    Set(Set),
    /// A `-` that is written as it is.
    Hyphen,
}

/// Reads a set behind the bracket that opens it, up to the one that ends it; says whether it is all but these.
pub(super) fn set(reader: &mut Reader<'_>, ignore_case: bool) -> Result<(Set, bool), PatternError> {
    if name(reader.0).is_some() {
        return Err(wrong("a class such as [:alpha:] stands within a set only"));
    }
    while reader.take("\\E") || reader.take("\\Q\\E") {}
    let negated = reader.take("^");
    let members = members(reader, ignore_case)?;
    let mut all = Set::of(|_| false);
    let mut rest = members.as_slice();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (first, behind) {
            (Member::Byte(_) | Member::Hyphen, [Member::Hyphen, end, ..])
                if !matches!(end, Member::Set(_)) =>
            {
                let (start, end) = (byte(first), byte(end));
                if end < start {
                    return Err(wrong("a range of a set ends before it starts"));
                }
                all.add(Set::of(|byte| (start..=end).contains(&byte)));
                rest = &behind[2..];
            }
            (Member::Set(set), _) => all.add(*set),
            (member, _) => all.put(byte(member)),
        }
    }
    Ok((all, negated))
}

fn byte(member: &Member) -> u8 {
    match member {
        Member::Byte(byte) => *byte,
        Member::Hyphen | Member::Set(_) => b'-',
    }
}

fn members(reader: &mut Reader<'_>, ignore_case: bool) -> Result<Vec<Member>, PatternError> {
    let mut members = Vec::new();
    let mut is_first = true;
    loop {
        let first = std::mem::take(&mut is_first);
        let named = reader.0.strip_prefix(b"[").and_then(name);
        match reader.next() {
            None => return Err(wrong("Invalid character class")),
            // Where nothing stands before it, it is a member.
            Some(b']') if !first => return Ok(members),
            Some(b'[') if named.is_some() => {
                let inner = named.unwrap_or_default();
                reader.0 = &reader.0[inner.len() + 2..];
                let set = inner.strip_prefix(':').and_then(|name| Set::of_name(name, ignore_case));
                members.push(Member::Set(set.ok_or_else(|| wrong("a set has an unknown class"))?));
            }
            Some(b'-') => members.push(Member::Hyphen),
            Some(b'\\') if reader.take("E") => is_first = first,
            Some(b'\\') if reader.take("Q") => {
                let quoted = reader.up_to("\\E").ok_or_else(|| wrong("Invalid character class"))?;
                members.extend(quoted.iter().map(|byte| Member::Byte(*byte)));
                is_first = first && quoted.is_empty();
            }
            Some(b'\\') => members.push(match escaped(reader, None)? {
                Escaped::Byte(byte) => Member::Byte(byte),
                Escaped::Set(set) => Member::Set(set),
                Escaped::Group(_) | Escaped::Letter(_) => {
                    return Err(wrong("a set has an escape that stands for no byte"));
                }
            }),
            Some(byte) => members.push(Member::Byte(byte)),
        }
    }
}

/// The text between `[` and `:]` of what PCRE takes for a class by name, its first character included; and what stands
/// between `[.` and `.]` or `[=` and `=]`, which it refuses.
fn name(behind: &[u8]) -> Option<&str> {
    let mark = *behind.first().filter(|first| b":.=".contains(first))?;
    let mut at = 1;
    loop {
        match behind.get(at..)? {
            [b'\\', b'\\' | b']', ..] => at += 1,
            [b']', ..] => return None,
            [b'[', next, ..] if *next == mark => return None,
            [next, b']', ..] if *next == mark => return str::from_utf8(&behind[..at]).ok(),
            [] => return None,
            _ => {}
        }
        at += 1;
    }
}
