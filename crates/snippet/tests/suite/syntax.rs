//! Texts as nginx reads them; printing and parsing agree; bounds hold.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use snippet::syntax::{Block, Directive, Word, parse, print, same};
use snippet::{Bounds, Context, Position};

fn read(text: &str) -> Vec<Directive> {
    parse(text, &Bounds::of(Context::Location))
        .unwrap_or_else(|mistake| panic!("{mistake}: {text}"))
}

fn words(text: &str) -> Vec<String> {
    read(text)[0].words.iter().map(|word| word.text.clone()).collect()
}

fn wrong(text: &str) -> String {
    parse(text, &Bounds::of(Context::Location)).expect_err(text).to_string()
}

#[test]
fn words_are_cut_as_nginx_cuts_them() {
    let cases: &[(&str, &[&str])] = &[
        ("a b;", &["a", "b"]),
        ("a \"b c\" 'd;e';", &["a", "b c", "d;e"]),
        (r#"a "say \"x\"" 'it\'s';"#, &["a", r#"say "x""#, "it's"]),
        (r"a ^/x\.(css|js)$;", &["a", r"^/x\.(css|js)$"]),
        (r"a \t\n\\;", &["a", "\t\n\\"]),
        (r"a b\ c;", &["a", r"b\ c"]),
        ("a ${b}c$d;", &["a", "${b}c$d"]),
        ("a b#c;", &["a", "b#c"]),
        ("a # b\n c;", &["a", "c"]),
        ("a \"\";", &["a", ""]),
        ("if ($a = \"b\") { }", &["if", "($a", "=", "b", ")"]),
        ("a b}c;", &["a", "b}c"]),
        ("a 'x\ny';", &["a", "x\ny"]),
    ];
    for (text, expected) in cases {
        assert_eq!(words(text), *expected, "{text}");
    }
}

#[test]
fn positions_are_lines_and_columns() {
    let directives = read("# ü\n  a b;\n\tif (x) {\n    c  \"d\";\n}");
    assert_eq!(directives[0].at(), Position { line: 2, column: 3 });
    assert_eq!(directives[1].at(), Position { line: 3, column: 2 });
    let Some(Block::Directives(inner)) = &directives[1].block else { panic!("a block") };
    assert_eq!(inner[0].arguments()[0].at, Position { line: 4, column: 8 });
}

#[test]
fn a_program_of_another_language_is_one_block() {
    let directives =
        read("access_by_lua_block { local a = \"}\" -- }\n if a then f{ '}' } end --[[ } ]] }\nb;");
    assert_eq!(directives.len(), 2);
    assert!(matches!(&directives[0].block, Some(Block::Foreign(text)) if text.contains("then")));
    assert!(wrong("access_by_lua_block { a = { }").contains("another language"));
}

#[test]
fn what_has_not_the_form_is_said_with_its_place() {
    let cases = [
        ("a b", "line 1, column 1: \"a\" lacks its \";\""),
        ("a 'b", "line 1, column 3: the quote ' that begins here is not closed"),
        (
            "a 'b'c;",
            "line 1, column 6: unexpected \"c\": a blank or \";\" must follow a word in quotes",
        ),
        (";", "line 1, column 1: unexpected \";\""),
        ("\n {", "line 2, column 2: unexpected \"{\""),
        ("a { b; ", "line 1, column 4: the block that begins here is not closed by \"}\""),
        ("a; }", "line 1, column 3: a \"}\" that closes nothing of this snippet"),
        ("a { b }", "line 1, column 5: \"b\" lacks its \";\""),
    ];
    for (text, expected) in cases {
        assert_eq!(wrong(text), expected, "{text}");
    }
}

#[test]
fn sizes_are_bounded() {
    let bounds = Bounds::of(Context::Location);
    assert!(wrong(&"a;".repeat(bounds.directives + 1)).contains("directives"));
    assert!(wrong(&format!("{}{}", "a{".repeat(20), "}".repeat(20))).contains("blocks within"));
    assert!(wrong(&format!("a {};", "b".repeat(bounds.word + 1))).contains("bytes"));
    assert!(wrong(&format!("a {};", "b ".repeat(bounds.words + 1))).contains("words"));
    assert!(wrong(&" ".repeat(bounds.bytes + 1)).contains("at most"));
    assert!(wrong("a \0;").contains("NUL"));
}

fn word(first: bool) -> impl Strategy<Value = Word> {
    let text = prop_oneof![
        "[a-z_]{1,8}".prop_map(String::from),
        "[ -~\\n\\tü€]{1,12}".prop_map(String::from),
        Just("${a}{".to_owned()),
        Just("\\\\\"'".to_owned()),
    ];
    let text = match first {
        true => "[a-z_]{1,8}".prop_map(String::from).boxed(),
        false => text.boxed(),
    };
    text.prop_map(|text| Word { text, at: Position::default() })
}

fn directives() -> impl Strategy<Value = Vec<Directive>> {
    let line = (word(true), prop::collection::vec(word(false), 0..4)).prop_map(|(name, rest)| {
        let words = std::iter::once(name).chain(rest).collect();
        vec![Directive { words, block: None }]
    });
    line.prop_recursive(4, 24, 4, |inner| {
        (word(true), prop::collection::vec(inner, 0..4), any::<bool>()).prop_map(
            |(name, inner, block)| {
                let inner: Vec<Directive> = inner.into_iter().flatten().collect();
                match block {
                    true => {
                        vec![Directive { words: vec![name], block: Some(Block::Directives(inner)) }]
                    }
                    false => inner,
                }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_means_the_same_again(directives in directives()) {
        let text = print(&directives);
        assert!(same(&read(&text), &directives), "{text}");
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\\n{};'\"\\\\$#a-z]{0,80}") {
        if let Ok(directives) = parse(&text, &Bounds::of(Context::Location)) {
            assert!(same(&read(&print(&directives)), &directives), "{text}");
        }
    }
}
