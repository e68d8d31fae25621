//! What is written is what nginx reads: a reader of its own, after nginx's rules, gets back exactly what was put in.

mod blocks;
mod hostile;
mod reader;
mod sizes;

use nginx::conf::{Block, Name, Node, Text, Word};
use proptest::prelude::*;
use reader::{Read, read};

fn text() -> impl Strategy<Value = String> {
    // What means something to the lexer is likelier than it would be by chance.
    let special = prop::sample::select(vec![
        "\"", "'", "\\", ";", "{", "}", "#", "$", "${", "\n", "\r", "\t", " ", "(", ")", "~*", "é",
        "*/", "/*",
    ]);
    let piece = prop_oneof![3 => special.prop_map(str::to_owned), 2 => "[a-z0-9/._-]{0,6}", 1 => "\\PC{0,4}"];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn tree() -> impl Strategy<Value = Block> {
    let line =
        (text().prop_filter("a key", |key| !key.is_empty()), prop::collection::vec(text(), 0..4));
    let leaf = prop::collection::vec(line, 0..5).prop_map(|lines| {
        let mut block = Block::default();
        for (key, words) in lines {
            block.entry(Word::plain(key), words.into_iter().map(Word::plain).collect());
        }
        block
    });
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop::collection::vec((prop::collection::vec(text(), 0..3), inner), 0..4).prop_map(
            |blocks| {
                let mut block = Block::default();
                for (words, inner) in blocks {
                    block.open("location", words.into_iter().map(Word::plain).collect(), inner);
                }
                block
            },
        )
    })
}

/// The tree as nginx would have it.
fn expected(block: &Block) -> Vec<Read> {
    let directives = block.nodes().iter().filter_map(|node| match node {
        Node::Directive(directive) => Some(directive),
        _ => None,
    });
    directives
        .map(|directive| {
            let name = match &directive.name {
                Name::Known(name) => (*name).to_owned(),
                Name::Key(word) => word.as_str().to_owned(),
            };
            let words = directive.words.iter().map(|word| word.as_str().to_owned());
            Read {
                words: std::iter::once(name).chain(words).collect(),
                block: directive.block.as_ref().map(expected),
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nginx_reads_back_exactly_what_was_put_in(tree in tree()) {
        let written = Text::of(&tree).expect("nothing that nginx cannot read");
        prop_assert_eq!(read(&written.text), Ok(expected(&tree)), "{}", written.text);
    }
}

#[test]
fn what_somebody_wrote_is_written_as_it_was_judged() {
    // A backslash at the end of a line takes the first byte of the next one along: no space may be put between.
    let text = "gzip_types text/a\\\n#; if ($arg_a) { set $q\nz; } location /zz { gzip_types a\\\n#; }\nb;";
    let (mut inner, mut tree) = (Block::default(), Block::default());
    inner.raw("configuration-snippet", text, None);
    tree.open("location", vec![Word::plain("/")], inner);
    let written = Text::of(&tree).expect("it closes what it opens");
    assert!(written.text.contains(&format!("\n{text}\n")), "{}", written.text);
}

#[test]
fn the_reader_reads_what_people_write() {
    let text = "a 'b c' \"d\\\"e\\\\\" ${f}g; # h;\ni { j; }\nk_by_lua_block {\n if x then { \" } end\n}\n";
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let all = read(text).expect("a configuration");
    assert_eq!(all[0].words, words(&["a", "b c", "d\"e\\", "${f}g"]));
    assert_eq!(all[1].block.as_ref().map(Vec::len), Some(1));
    assert_eq!(all[2], Read { words: words(&["k_by_lua_block"]), block: Some(Vec::new()) });
    for broken in ["a", "a;}", "{", ";", "a \"b;", "a \"b\"c;", "a { b;"] {
        assert!(read(broken).is_err(), "{broken}");
    }
}
