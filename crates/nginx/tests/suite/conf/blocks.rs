//! Blocks of Lua in snippets end for nginx where they were judged to end, wherever its buffer ends in them.

use crate::engine::bed::program;
use nginx::conf::{Block, Text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Bytes of nginx's buffer.
const BUFFER: usize = 4096;
/// What nginx does not know, should it ever be a directive.
const ASTRAY: &str = "} marker;";

/// Whether a text is written at all.
fn is_taken(text: &str) -> bool {
    let mut block = Block::default();
    block.raw("configuration-snippet", text, None);
    Text::of(&block).is_ok()
}

/// Remarks of so many bytes.
fn remarks(bytes: usize) -> String {
    let lines = (0..bytes / 64).map(|_| format!("#{}\n", "x".repeat(62)));
    let rest = bytes % 64;
    let last = if rest > 1 { format!("#{}\n", "x".repeat(rest - 2)) } else { "\n".repeat(rest) };
    lines.chain([last]).collect()
}

/// What nginx says of texts, each of which begins so many bytes behind the beginning of a file.
fn refused<'a>(texts: impl IntoIterator<Item = (usize, &'a str)>) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mut all = String::new();
    for (number, (bytes, text)) in texts.into_iter().enumerate() {
        let path = at(&format!("{number}.inc"));
        let begin = format!("location /{number} {{\n");
        let padding = remarks(bytes.saturating_sub(begin.len()));
        fs::write(&path, format!("{begin}{padding}{text}\n}}\n")).expect("a file");
        all += &format!("include {path};\n");
    }
    let modules = Path::new("/usr/lib/nginx/modules");
    let modules = ["ndk_http_module.so", "ngx_http_lua_module.so"]
        .map(|name| format!("load_module {};\n", modules.join(name).display()));
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};\n", at(name)));
    let conf = format!(
        "{}pid {};\nerror_log {};\nevents {{ }}\nhttp {{\naccess_log off;\n{}server {{\n\
         listen unix:{};\n{all}}}\n}}\n",
        modules.concat(),
        at("pid"),
        at("log"),
        folders.concat(),
        at("socket"),
    );
    fs::write(at("nginx.conf"), conf).expect("a file");
    let mut command = Command::new(program());
    let output = command.args(["-t", "-e", "stderr", "-c", &at("nginx.conf")]).output();
    let output = output.expect("scripts/need nginx");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

/// The same of each of them at every place of the buffer.
fn refused_somewhere<'a>(texts: &'a [String]) -> Option<String> {
    let everywhere = |text: &'a String| (0..BUFFER).map(move |bytes| (bytes, text.as_str()));
    refused(texts.iter().flat_map(everywhere))
}

#[test]
fn a_block_of_lua_that_is_taken_ends_where_it_was_judged_to_wherever_the_buffer_ends() {
    let long = |bytes| "b".repeat(bytes);
    let lines = "local a = 1\n".repeat(60);
    let texts = [
        format!("log_by_lua_block {{ {lines}--{}{ASTRAY}\n }}", long(700)),
        format!("log_by_lua_block {{ {lines}local s = '{}{ASTRAY}'\n }}", long(700)),
        format!("log_by_lua_block {{ {lines}local s = [[{}{ASTRAY}]] }}", long(700)),
        format!(
            "log_by_lua_block {{{}}}",
            format!("-- {ASTRAY}\nlocal s = \"{ASTRAY}\"\n").repeat(150)
        ),
    ];
    assert!(texts.iter().all(|text| is_taken(text)));
    assert_eq!(refused_somewhere(&texts), None);
}

#[test]
fn what_would_end_earlier_for_nginx_somewhere_is_not_taken() {
    let (long, lines) = ("b".repeat(4100), "local a = 1\n".repeat(180));
    let unknown = "unknown directive \"marker\"";
    for (text, why) in [
        (format!("log_by_lua_block {{ --{long} {ASTRAY}\n }}"), unknown),
        (format!("log_by_lua_block {{ {lines}local s = '{} {ASTRAY}' }}", &long[..600]), unknown),
        (format!("log_by_lua_block {{ {lines}-- {ASTRAY}\n }}"), unknown),
        (format!("log_by_lua_block {{ {lines}local s = [[{ASTRAY}]] }}"), "closing long bracket"),
    ] {
        assert!(!is_taken(&text), "{text}");
        let said = refused_somewhere(&[text]).expect("it ends elsewhere for nginx");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn blocks_of_lua_by_chance_end_where_they_were_judged_to() {
    let pieces = [
        "local a = 1\n",
        "x",
        " - ",
        "-",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'",
        "\\",
        "\n",
        "--",
        "[[",
        "]]",
        "--[[",
        "\"} marker; \"",
        "'{ } } marker; '",
        "-- } marker;\n",
        "[[ } marker; ]]",
        "--[[ } marker; ]]",
        "{ a = 1 }",
        "a[b[1]]",
        "\"\\\"} marker;\"",
        "'\\\\'",
        "é",
        "# } x\n",
        "--\n",
        "''",
        "\"--\"",
        "--'\n",
    ];
    // As in many a test, chance is the same each time.
    let mut seed = 7_u64;
    let mut chance = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("31 bits") % below
    };
    let mut texts = Vec::new();
    while texts.len() < 1000 {
        let mut text = "log_by_lua_block {x ".to_owned();
        for _ in 0..chance(60) {
            text += pieces[chance(pieces.len())];
            if chance(12) == 0 {
                text += &"b".repeat(chance(1400));
            }
        }
        text += "}";
        // What is longer in long brackets nginx refuses itself.
        let is_short = |rest: &str| rest.find("]]").is_some_and(|end| end < 1500);
        let is_short = text.split("[[").skip(1).all(is_short);
        // Nor is it of interest what it makes of what is behind a block.
        let mut ends = text.match_indices('}').map(|(at, _)| at + 1);
        let mut is_one = || ends.all(|end| end == text.len() || !is_taken(&text[..end]));
        if is_taken(&text) && is_short && is_one() {
            texts.push((chance(BUFFER), text));
        }
    }
    assert_eq!(refused(texts.iter().map(|(bytes, text)| (*bytes, text.as_str()))), None);
}
