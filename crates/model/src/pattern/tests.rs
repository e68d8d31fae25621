//! Patterns mean what they mean to PCRE, and cost what they may.

use super::backtrack::Program;
use super::dialect::spelled;
use super::linear::Linear;
use super::{Engine, Pattern, SIZE, Spent, Steps, syntax};
use fancy_regex::{BytesMode, RegexBuilder};

fn pattern(source: &str) -> Pattern {
    Pattern::new(source, true).expect("a pattern")
}

fn matches(source: &str, text: &[u8]) -> bool {
    pattern(source).try_match(text, &Steps::default()).expect("few steps")
}

#[test]
fn characters_are_bytes_and_classes_are_ascii() {
    for (source, text, wanted) in [
        (r"^\w$", "a", true),
        (r"^\w+$", "ä", false),
        (r"^\W\W$", "ä", true),
        (r"^\d$", "٣", false),
        (r"^\s$", "\u{a0}", false),
        (r"^\S\S$", "\u{a0}", true),
        (r"a\b", "aä", true),
        ("^..$", "ä", true),
        ("^.$", "ä", false),
        ("^ä$", "ä", true),
        ("^ä$", "Ä", false),
        ("^äx$", "äX", true),
        ("^[ä]{2}$", "ä", true),
        ("^[^/]+$", "ä", true),
        (r"^\xC3\xA4$", "ä", true),
        ("^(?!ä).+$", "ä", false),
        ("^(?=ä)..$", "ä", true),
        (r"^(.)\1$", "aA", true),
        (r"^(ä)\1$", "ää", true),
        ("K", "\u{212a}", false),
    ] {
        assert_eq!(matches(source, text.as_bytes()), wanted, "{source} {text}");
    }
    assert!(matches("^/.$", b"/\xff") && matches(r"^/\xff$", b"/\xff"));
}

/// Patterns that other parsers read in another way, texts, and whether PCRE finds a match.
const OF_PCRE: &[(&str, &str, bool)] = &[
    // There is no such assertion.
    (r"\<\?php|\<!--#", "q=<?php", true),
    (r"\<\?php|\<!--#", "q=php", false),
    (r"(\<|%3C).*script.*(\>|%3E)", "q=description", false),
    (r"(\<|%3C).*script.*(\>|%3E)", "q=<script>", true),
    (r"\b{start}a", "a", false),
    (r"\b{start}a", "{start}a", false),
    (r"x\b{start}a", "x{start}a", true),
    // Sets have members, and nothing else.
    ("[;&&|]", "a=1;id", true),
    ("[;&&|]", "a&b", true),
    ("[;&&|]", "a=1", false),
    ("[<>&&;]", "x;y", true),
    ("[a&&[b]", "[", true),
    ("^[a-z&&[^b]]$", "a]", true),
    ("[a~~b]", "~", true),
    (r"^[\w--.]+$", "a-b.c", true),
    (r"^[\w--.]+$", "a/b", false),
    (r"^[\w-.]+$", "a-b.c", true),
    ("^[a[b]c]$", "[c]", true),
    ("^[a[b]c]$", "ac", false),
    ("[[(]", "(", true),
    ("^[^[]*$", "a[b", false),
    ("^[^[]*$", "a", true),
    ("^[[:alpha:][]+$", "a[", true),
    ("^[]$]x$", "]x", true),
    ("^[[:^upper:]]$", "a", true),
    ("(?i)^[[:^upper:]]$", "a", false),
    ("(?i)^[[:upper:]]$", "a", true),
    (r"^[\Qa-c\E]$", "b", false),
    (r"^[\E^\Q\E]]$", "]", false),
    (r"^[\101\b]+$", "A\u{8}", true),
    ("(?x)^[ #]$", "#", true),
    // Letters that stand for others.
    (r"\h", "my toy", true),
    (r"\h", "abc123", false),
    (r"^\H+$", "abc123", true),
    (r"^\H+$", "my toy", false),
    (r"[\h]", "a\tb", true),
    (r"[\h]", "ab", false),
    (r"\v", "/a\nb", true),
    (r"\v", "/a\rb", true),
    (r"^\V+$", "/a\nb", false),
    (r"[\v]", "a\nb", true),
    (r"^a\R?b$", "a\u{c}b", true),
    (r"^\N$", "\n", false),
    (r"^\C\C$", "ä", true),
    (r"^\e\cA\x{41}\x\o{101}$", "\u{1b}\u{1}A\0A", true),
    (r"^\Qa.b\E$", "a.b", true),
    (r"^\Qa.b\E$", "axb", false),
    (r"^a\E+$", "aa", true),
    // Numbers are groups where there are so many.
    (r"^(a)\101$", "aA", true),
    (r"^(a)\012$", "a\n", true),
    (r"^(a)\1(?#)1$", "aa1", true),
    (r"^(a)\g1$", "aa", true),
    (r"^(a|b)\g{-1}$", "bb", true),
    (r"^(a|b)\g{-1}$", "ab", false),
    (r"^(?<n>a|b)\k{n}(?P=n)\k'n'$", "bbbb", true),
    // Flags end with their group, and begin within it.
    ("^(a(?i)b)c$", "aBc", true),
    ("^(a(?i)b)c$", "aBC", false),
    ("^(a(?i)b|c)d$", "Cd", true),
    ("^(a(?i)b|c)d$", "CD", false),
    ("^(?:a(?s)b).$", "ab\n\n", false),
    ("^(?x)a b # c", "ab", true),
    ("^(?x: a ) b$", "a b", true),
    ("(?x)^a\u{b}b$", "ab", true),
    ("(?x)a#)\nb", "ab", true),
    ("(?m)^$", "a\n", false),
    ("(?m)^$", "a\n\nb", true),
    ("^(?m:a$)", "a\nb", true),
    ("^((?m)a$)b$", "ab", false),
    ("^(?:(?m)a)$", "a\nb", false),
    ("^(?U)a+(a?)$", "aa", true),
    // What may be told from a comment, a question, or a count.
    (r"^a(?#\)b$", "ab", true),
    ("^(a)?(?(1))b$", "b", true),
    ("^(a)?(?(1)|)b$", "b", true),
    ("^(?<n>c)?(?(n)a|b)$", "b", true),
    ("^(?<n>c)?(?(n)a|b)$", "ca", true),
    ("^(?(?=a)a|b)c$", "bc", true),
    ("^(a)?(?(-1)b|c)$", "c", true),
    ("^a{x}{,}{1$", "a{x}{,}{1", true),
    ("^a{2}}$", "aa}", true),
    // Behind an end there may be a newline.
    ("^/a(/|$)[^/]+$", "/a\n", true),
    ("^/a(/|$)b", "/a\n", false),
    ("a$\n", "a\n", true),
    (r"a$\H", "a\n\n", false),
];

#[test]
fn expressions_mean_what_they_mean_to_pcre() {
    for (source, text, wanted) in OF_PCRE {
        let pattern =
            Pattern::new(source, false).unwrap_or_else(|error| panic!("{source}: {error:?}"));
        let found = pattern.try_match(text.as_bytes(), &Steps::default());
        assert_eq!(found, Ok(*wanted), "{source} {text:?}");
        let captures = Pattern::for_captures(source, false).expect("a pattern");
        let groups = captures.captures(text.as_bytes(), &Steps::default()).expect("few steps");
        assert_eq!(groups.is_some(), *wanted, "{source} {text:?}");
    }
}

#[test]
fn what_others_take_and_pcre_does_not_is_no_pattern() {
    for source in [
        // A mistake in PCRE.
        "a**",
        "+a",
        "(?~a)",
        "(?u:a)",
        r"\u0041",
        r"\U00000041",
        r"\O",
        r"\N{x}",
        "{2}a",
        "a|{2}",
        "(?<n>a)(?<n>b)",
        "(?<é>a)",
        r"(a)\k<1>",
        "[:alpha:]",
        "[[.a.]]",
        "[[:foo:]]",
        "[b-a]",
        "[]",
        "(?x)( ?:a)",
        "((?#c)?:a)",
        "a{3,2}",
        "a{70000}",
        r"\x{141}",
        r"\777",
        r"\c",
        "\\",
        "(?#a",
        "a)",
        // Another meaning, or one that depends on the release.
        "(?R)",
        "(?R:a)",
        "(?R)a",
        "(?0)",
        "(?1)(a)",
        "(?&n)(?<n>a)",
        r"(a)\g<1>",
        "(?P<n>a)(?P>n)",
        r"\Qa",
        "(?(R)a|b)",
        "(?(DEFINE)a)",
        "(?|a|b)",
        "(*ACCEPT)",
        "(*UCP)a",
        "(*COMMIT)a",
        "(?C)a",
        "(?xx)[a b]",
        "(?^a)",
        "(?J)a",
        r"\p{L}",
        r"\pL",
        r"[\p{L}]",
        r"\X",
        r"[\R]",
        r"[\A]",
        r"\y",
        "a{2}{3}",
        "a+(?#c)?",
        "(?x)a+ ?",
        "a{,5}",
        "a{ 1, 2}",
        "a{1, 2 }",
    ] {
        assert!(Pattern::new(source, false).is_err(), "{source}");
        assert!(Pattern::for_captures(source, true).is_err(), "{source}");
    }
}

#[test]
fn an_end_is_also_before_the_newline_that_ends_the_text() {
    for (source, text, wanted) in [
        ("^/private/.*$", "/private/x\n", true),
        (r"\.php$", "/a.php\n", true),
        ("^/adm$", "/adm\n", true),
        ("^/adm$", "/adm\n\n", false),
        ("^/adm\n$", "/adm\n\n", true),
        ("^/adm$", "\n/adm", false),
        (r"^/adm\z", "/adm\n", false),
        (r"^/adm\Z", "/adm\n", true),
        (r"^/adm(?!x)$", "/adm\n", true),
        (r"^/adm(?!x)\z", "/adm\n", false),
        (r"^(/adm$|/b\z)", "/adm\n", true),
        (r"^(/adm$|/b\z)", "/b\n", false),
        ("^/a(/|$)(.*)", "/a\n", true),
        (r"^/a[$]\$b$", "/a$$b\n", true),
        ("^/[]$]x$", "/$x\n", true),
        ("^/[[:alpha:]$]+$", "/x$\n", true),
        ("(?m)^b$", "a\nb\nc", true),
        ("(?i)^/A$", "/a\n", true),
    ] {
        assert_eq!(matches(source, text.as_bytes()), wanted, "{source} {text:?}");
    }
    let pattern = Pattern::for_captures("^/int/(.*)$", false).expect("a pattern");
    let groups = pattern.captures(b"/int/x\n", &Steps::default()).expect("few steps");
    assert_eq!(groups.expect("a match")[1], Some(&b"x"[..]));
}

#[test]
fn groups_are_told_by_number_and_may_be_named() {
    for source in ["/(?<a>[^/]+)(?:/(b))?/?(.*)", "/(?=.)(?<a>[^/]+)(?:/(b))?/?(.*)"] {
        let pattern = Pattern::for_captures(source, true).expect("a pattern");
        let groups = pattern.captures(b"x/one/two", &Steps::default()).expect("few steps");
        let groups = groups.expect("a match");
        assert_eq!(groups, [Some(&b"/one/two"[..]), Some(b"one"), None, Some(b"two")], "{source}");
    }
}

/// What each engine finds, as spans of groups.
type Found = Option<Vec<Option<(usize, usize)>>>;

fn pairs(slots: Option<Vec<Option<usize>>>) -> Found {
    let pair = |ends: &[Option<usize>]| ends[0].zip(ends[1]);
    slots.map(|slots| slots.chunks(2).map(pair).collect())
}

/// Compares the engines with each other, and with the crate that reads the syntax.
fn compare(source: &str, texts: &[String]) {
    let Ok(spelled) = spelled(source, true) else { return };
    let mut builder = RegexBuilder::new(&spelled.text);
    builder.bytes_mode(BytesMode::Ascii).case_insensitive(true).backtrack_limit(1_000_000);
    let reference = builder.build();
    let expr = syntax::parse(source, true);
    let (Ok(reference), Ok(expr)) = (reference, expr) else { return };
    let whole = syntax::whole(&expr).ok();
    let linear = whole.map(|(hir, ends)| Linear::new(&hir, true, ends).expect("it is small"));
    let program = Program::new(&expr).expect("it is small");
    for text in texts {
        let bytes = text.as_bytes();
        let found = reference.captures(bytes).expect("few steps").map(|groups| {
            (0..groups.len()).map(|at| groups.get(at).map(|g| (g.start(), g.end()))).collect()
        });
        let steps = Steps::default();
        let run = pairs(program.search(bytes, &steps).expect("few steps"));
        let whole = |found: &Found| found.as_ref().map(|groups| groups[0]);
        assert_eq!(whole(&run), whole(&found), "{source} on {text:?}");
        if let Some(linear) = &linear {
            let captures = pairs(linear.captures(bytes, &steps).expect("few steps"));
            assert_eq!(captures, found, "{source} on {text:?}");
            let is_match = linear.is_match(bytes, &steps).expect("few steps");
            assert_eq!(is_match, found.is_some(), "{source} on {text:?}");
        } else {
            assert_eq!(run, found, "{source} on {text:?}");
        }
    }
}

fn texts() -> Vec<String> {
    let mut all = vec![String::new()];
    for _ in 0..4 {
        let longer = all.iter().flat_map(|text| ["a", "b", "/", "B"].map(|c| format!("{text}{c}")));
        all = [String::new()].into_iter().chain(longer.collect::<Vec<_>>()).collect();
    }
    all.extend(["a\n", "ab\nb", "\n", "a b", "aabbab/ab", "a_b-a"].map(str::to_owned));
    all
}

#[test]
fn all_engines_agree_on_what_ingresses_have() {
    let texts = texts();
    for source in [
        "^/a(/|$)(.*)",
        "/a/?(.*)",
        "^/(?!a)[a-b]+",
        "^/(?!a|b$)(.*)$",
        "^(?!.*b)/?.*$",
        "(?<=/)a+",
        "(?<!a)b",
        "(?<=a|/b)b",
        "(?<=(?!b)a)b",
        r"(a|b)\1",
        r"^(?:(a|b)\1?)*b$",
        "(?>a|ab)b",
        "(?>a*)b?/",
        "a*+b",
        "(?:a|ab)(?:b|/)?",
        r"a\Kb",
        r"(a)?(?(1)b|/)",
        r"\bab?\b",
        r"(?=(a))\w*?b",
        "(?i)AB",
        "(?-i)B",
        "(?m)^b$",
        r"a\Z",
        r"a\R?",
        "a{2,3}?(b)",
        "(a){0}b",
        "(?:a{1,2}){2}(?!/)",
        "[^a]+(?=b)",
        r"\Ga",
        "^(a|)+b(?!/)",
    ] {
        compare(source, &texts);
    }
}

/// A sequence of numbers that looks like chance.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn pattern(&mut self, depth: usize) -> String {
        let atom = ["a", "b", "/", ".", "[^a]", "[a-b]", r"\w", "B"];
        if depth == 0 {
            return atom[self.below(atom.len())].to_owned();
        }
        let (one, two) = (self.pattern(depth - 1), self.pattern(depth - 1));
        match self.below(14) {
            0..=3 => format!("{one}{two}"),
            4 => format!("(?:{one}|{two})"),
            5 => format!("(?:{one})*{two}"),
            6 => format!("(?:{one})+?"),
            7 => format!("(?:{one})?{two}"),
            8 => format!("(?={one}){two}"),
            9 => format!("(?!{one}){two}"),
            10 => format!("(?<={}){one}", atom[self.below(atom.len())]),
            11 => format!("(?>{one}){two}"),
            12 => format!("(?:{one}){{1,2}}"),
            _ => format!("(?:^|{one}){two}$"),
        }
    }
}

#[test]
fn all_engines_agree_on_patterns_by_chance() {
    let (texts, mut draw) = (texts(), Draw(7));
    for _ in 0..400 {
        let depth = 1 + draw.below(3);
        let source = draw.pattern(depth);
        compare(&source, &texts[..120]);
    }
}

#[test]
fn whatever_is_written_is_bounded() {
    let mut draw = Draw(11);
    let words = [
        "a", "/", "(", "(?:", ")", "|", "*", "+", "?", "{2,900}", "[a-", "]", "[^", "\\w", "\\b",
        "^", "$", ".", "(?=", "(?!", "(?<=", "(?>", "\\1", "(?<n>", "\\k<n>", "(?(1)", "(?i)",
        "(?#", "\\K", "\\Q", "\\x", "ä",
    ];
    let text = format!("/{}", "a/ab".repeat(200));
    for _ in 0..3000 {
        let length = 1 + draw.below(12);
        let source: String = (0..length).map(|_| words[draw.below(words.len())]).collect();
        let Ok(pattern) = Pattern::new(&source, true) else { continue };
        assert!(pattern.size() <= 3 * SIZE, "{source}: {}", pattern.size());
        let (one, two) = (Steps::new(50_000), Steps::new(50_000));
        let captures = Pattern::for_captures(&source, true).expect("it is one");
        if let (Ok(matches), Ok(groups)) =
            (pattern.try_match(text.as_bytes(), &one), captures.captures(text.as_bytes(), &two))
        {
            assert_eq!(matches, groups.is_some(), "{source}");
        }
        assert!(Pattern::check(&source).is_ok(), "{source}");
    }
}

#[test]
fn a_pattern_that_backtracks_without_end_is_found_and_bounded() {
    for source in [r"^/(?:(a|a)\1?)*z", "^/(?:(?=a)a|a)*z"] {
        assert!(pattern(source).is_catastrophic(), "{source}");
    }
    for source in ["^/(a+)+$", "^/api/v[0-9]+/(.*)", "^/(?!admin)[a-z]+", r"^/(x)\1"] {
        assert!(!pattern(source).is_catastrophic(), "{source}");
    }
}

#[test]
fn no_pattern_takes_more_steps_than_there_are() {
    let text = format!("/{}", "a".repeat(8000));
    for source in [r"^/(?:(a|a)\1?)*z", "^(?:(?=.*a).)*z", "(?<!x.*)z", "/[ab]*a[ab]{600}b$"] {
        let steps = Steps::new(100_000);
        assert_eq!(pattern(source).try_match(text.as_bytes(), &steps), Err(Spent), "{source}");
        assert_eq!(steps.left(), 0, "{source}");
    }
}

#[test]
fn steps_of_a_table_end_with_the_byte_that_decides() {
    let (steps, text) = (Steps::new(1000), "/b".to_owned() + &"c".repeat(900));
    assert_eq!(pattern("^/api(/|$)(.*)").try_match(text.as_bytes(), &steps), Ok(false));
    assert!(steps.left() > 990, "{}", steps.left());
}

#[test]
fn what_takes_too_much_memory_is_no_pattern() {
    let long = "a".repeat(5000);
    let groups = "(a)".repeat(300) + "[a-z]{200}";
    for source in [
        r"\w{20000}",
        "^/x[01]*1[01]{1000}0001$",
        "(?:a{1000}){1000}",
        "(?!x)(?:a{1000}){1000}",
        "(?!x)a{4000000000}",
        &long,
        &groups,
        "(?1)(a)",
        r"\2(a)",
        r"(?!b)(a)\9223372036854775808",
        r"(?!b)(a)\11326434445538011819",
        r"\p{Greek}",
        "(",
        "[z-a]",
    ] {
        assert!(Pattern::new(source, true).is_err(), "{source}");
    }
    assert!(Pattern::check(r"\w{20000}").is_ok(), "checking compiles nothing");
}

#[test]
fn what_is_nested_needs_little_stack() {
    let nest = |open: &str, close: &str| format!("{}a{}", open.repeat(400), close.repeat(400));
    let sources = [
        nest("(", ")"),
        nest("(?:a|", ")"),
        nest("(?=", ")"),
        nest("(?!(?>", "))"),
        nest("", "{0,1}"),
        nest("", "{1,2}?"),
        nest("(?:", ")?"),
        nest("[a&&[b", "]]"),
        nest("[", "]"),
    ];
    let read = move || sources.iter().filter(|source| Pattern::new(source, true).is_ok()).count();
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(read);
    let read = thread.expect("a thread").join().expect("no panic");
    assert!(read < 9, "{read}");
}

#[test]
fn a_pattern_keeps_few_bytes_and_says_how_many() {
    for (source, most) in [
        (r"^/x@\w{20}", 8 << 10),
        ("^/api/v1/users(/|$)(.*)", 10 << 10),
        ("^/x[01]*1[01]{500}0001$", 20 << 10),
        (r"^/(?!a).*\w{20}", 2 << 10),
    ] {
        let pattern = pattern(source);
        assert!(pattern.size() <= most, "{source}: {}", pattern.size());
        let captures = Pattern::for_captures(source, true).expect("a pattern");
        assert!(captures.size() <= pattern.size());
    }
}

#[test]
fn the_same_text_is_compiled_once_as_long_as_somebody_has_it() {
    let (one, two) = (pattern("^/shared(.*)"), pattern("^/shared(.*)"));
    assert!(std::sync::Arc::ptr_eq(&one.0, &two.0));
    let other = Pattern::new("^/shared(.*)", false).expect("a pattern");
    assert!(!std::sync::Arc::ptr_eq(&one.0, &other.0) && one != other);
    assert!(matches!(one.0.engine, Engine::Linear(_)));
    let many: Vec<Pattern> = (0..3000).map(|number| pattern(&format!("^/{number}$"))).collect();
    drop(many);
    let _sweep: Vec<Pattern> =
        (0..9000).map(|number| pattern(&format!("^/x{number}$"))).rev().take(1).collect();
}

#[test]
fn every_path_that_a_pattern_matches_begins_with_its_start() {
    const PIECES: [&str; 20] = [
        "(?:a", "(?x)", "#(\n", "x", "/", r"\E", r"\Q\E", "(?#c)", "{0}", "*", r"\c(", r"\c\",
        r"\c[", "|", "(a)", "(", ")", ".", "[(]", r"\Qx\E",
    ];
    const TEXTS: [&str; 10] =
        ["", "/", "/x", "/s", "/sx", "/sxx", "x", "a", "/sx/xax", "/sx\u{1c}(a)"];
    for [first, second, third] in PIECES.into_iter().flat_map(|one| {
        PIECES
            .into_iter()
            .flat_map(move |two| PIECES.into_iter().map(move |three| [one, two, three]))
    }) {
        let source = format!("/sx{first}{second}{third}");
        let Ok(pattern) = Pattern::new(&format!("^{source}"), true) else { continue };
        let starts = [syntax::fixed_start(&source), syntax::start_with_dots(&source)];
        for text in TEXTS {
            let matches = pattern.try_match(text.as_bytes(), &Steps::default()).expect("few steps");
            let begins = |start: &str| {
                let bytes =
                    start.bytes().zip(text.bytes().map(Some).chain(std::iter::repeat(None)));
                bytes.into_iter().all(|(byte, other)| byte == b'.' || Some(byte) == other)
            };
            assert!(!matches || starts.into_iter().all(begins), "{source} {starts:?} {text}");
        }
    }
}
