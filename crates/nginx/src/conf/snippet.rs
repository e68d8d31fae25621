//! Whether raw configuration stays where it is put: what it opens it closes, and it closes nothing else. Otherwise one
//! Ingress could end the block of another one.

/// The directives of a text that is a sequence of whole ones, without those in its blocks: their words, as they are
/// written (nginx: ngx_conf_read_token, and the Lua module's blocks). None if it is not.
pub(super) fn directives(text: &str) -> Option<Vec<Vec<&str>>> {
    let mut reader = Reader { rest: text, depth: 0, first: "", ended: true, all: Vec::new() };
    while let Some(next) = reader.rest.chars().next() {
        reader.step(next)?;
    }
    (reader.depth == 0 && reader.ended).then_some(reader.all)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
    /// The first word of the directive that is being read.
    first: &'a str,
    /// Whether no directive is being read.
    ended: bool,
    /// The words outside of blocks.
    all: Vec<Vec<&'a str>>,
}

/// What parts words: no other space does, though it may look like one.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

impl<'a> Reader<'a> {
    fn step(&mut self, next: char) -> Option<()> {
        match next {
            '#' => self.skip_line(),
            ';' if self.ended => return None,
            ';' => {
                self.skip(1);
                self.end();
            }
            '{' if self.ended => return None,
            '{' if self.first.ends_with("_by_lua_block") => {
                self.rest = lua(self.rest.get(1..)?)?;
                self.end();
            }
            '{' => {
                self.skip(1);
                self.depth += 1;
                self.end();
            }
            '}' if !self.ended => return None,
            '}' => {
                self.skip(1);
                self.depth = self.depth.checked_sub(1)?;
            }
            space if is_space(space) => self.skip(1),
            _ => self.word()?,
        }
        Some(())
    }

    fn end(&mut self) {
        self.first = "";
        self.ended = true;
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
    }

    /// One parameter, quoted or not: in quotes it is the same one.
    fn word(&mut self) -> Option<()> {
        let (end, word) = match self.rest.chars().next()? {
            quote @ ('"' | '\'') => {
                let end = quoted(&self.rest[1..], quote)?;
                (1 + end, &self.rest[1..end])
            }
            _ => {
                let end = bare(self.rest);
                (end, &self.rest[..end])
            }
        };
        if self.ended && self.depth == 0 {
            self.all.push(Vec::new());
        }
        if let Some(words) = self.all.last_mut().filter(|_| self.depth == 0) {
            words.push(word);
        }
        if self.ended {
            self.first = word;
            self.ended = false;
        }
        self.skip(end);
        // Behind a quote nginx wants the parameter to end.
        Some(())
    }
}

/// Bytes up to and with the closing quote.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            character if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Bytes of a parameter without quotes: no brace that follows `$` opens a block, nor one behind that.
fn bare(text: &str) -> usize {
    let mut characters = text.char_indices();
    let mut is_variable = false;
    while let Some((at, character)) = characters.next() {
        match character {
            '{' if is_variable => continue,
            '\\' => drop(characters.next()),
            ';' | '{' => return at,
            space if is_space(space) => return at,
            _ => {}
        }
        is_variable = character == '$';
    }
    text.len()
}

/// From where the Lua module stopped last to the end of the next string or remark, in bytes at most. It reads on where
/// less than half of its 4,096 bytes are left; what does not end in them is no token to it, and whatever braces and
/// quotes are in that count.
const LONGEST: usize = 1500;

/// What follows the brace that ends a block of Lua.
fn lua(text: &str) -> Option<&str> {
    let (mut rest, mut depth, mut stopped) = (text, 1_usize, text);
    loop {
        let next = rest.chars().next()?;
        let (after, is_token) = match next {
            // Long brackets with a level could hide anything: who needs them can do without.
            '-' if rest.starts_with("--[=") => return None,
            '[' if rest.starts_with("[=") => return None,
            // What is in them nginx looks for itself, and says so where it is too long; they have to be seen.
            '-' if rest.starts_with("--[[") => {
                (in_time(stopped, &rest[4..])?.split_once("]]")?.1, true)
            }
            '[' if rest.starts_with("[[") => {
                (in_time(stopped, &rest[2..])?.split_once("]]")?.1, true)
            }
            '-' if rest.starts_with("--") => (in_time(stopped, rest.split_once('\n')?.1)?, true),
            '"' | '\'' => {
                let end = 1 + quoted(&rest[1..], next)?;
                // The Lua module ends a string with its line, behind a backslash, too: the rest would be Lua.
                let after = rest.get(end..).filter(|_| !rest[..end].contains('\n'))?;
                (in_time(stopped, after)?, true)
            }
            '}' if depth == 1 => return Some(&rest[1..]),
            '{' | '}' => {
                depth = if next == '{' { depth + 1 } else { depth - 1 };
                (&rest[1..], true)
            }
            other => (&rest[other.len_utf8()..], false),
        };
        rest = after;
        if is_token {
            stopped = rest;
        }
    }
}

/// What is left of a block behind a token that the Lua module has as a whole in its buffer; `stopped`: what was left
/// where it began to look for it.
fn in_time<'a>(stopped: &str, after: &'a str) -> Option<&'a str> {
    (stopped.len() - after.len() <= LONGEST).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::directives;

    fn is_whole(text: &str) -> bool {
        directives(text).is_some()
    }

    #[test]
    fn whole_directives_stay_where_they_are_put() {
        for text in [
            "",
            "# remark }",
            "deny all;",
            "if ($http_x) { return 403 \"}\"; }",
            "set $a \"b;}\"; set $c ${d}e;",
            "add_header X 'a}\\'b';\n# }\n",
            "access_by_lua_block { local t = { a = '}' } -- }\n ngx.say(\"}\") }",
            "\"access_by_lua_block\" { local t = '}' }",
            "gzip_types ${{ b;",
        ] {
            assert!(is_whole(text), "{text}");
        }
    }

    #[test]
    fn what_would_reach_beyond_its_place_is_found() {
        for text in [
            "}",
            "deny all",
            "deny all; } location / {",
            "} server { listen 81;",
            "set $a \"b;",
            "if ($x) { return 403;",
            "return 200 'a;",
            ";",
            "{ }",
            "access_by_lua_block { ngx.say(\"}\")",
            "access_by_lua_block { local x = [=[ } ]=] }",
            "access_by_lua_block { --[=[ } ]=] }",
            // To nginx a form feed is a letter, as all of a line behind it may be.
            "set $x b\u{c}#; } location = /pwn { return 200 pwned; } location /zz { set $x b\u{c}\n;",
            "\"access_by_lua_block\" { local t = \"\" return # t } } location = /pwn { return 200 pwned; } \
             location /zz { if ($x) { set $x b;\nbreak; }",
            "gzip_types ${{ b; }",
            // A string of Lua that goes on in the next line is none to the Lua module.
            "log_by_lua_block { local s = \"\\\n} } server { listen 81; location / {\n# \" }",
            "log_by_lua_block { local s = 'a\n} marker;\n# ' }",
        ] {
            assert!(!is_whole(text), "{text}");
        }
    }

    #[test]
    fn what_does_not_end_in_what_nginx_reads_at_once_is_no_token_of_lua() {
        let long = |bytes| "b".repeat(bytes);
        for (is_plain_before, bytes) in [(false, 1400), (true, 1400), (false, 1500), (true, 1500)] {
            let (before, within) = if is_plain_before { (bytes, 0) } else { (0, bytes) };
            let plain = long(before);
            for token in [
                format!("\"}} {}\"", long(within)),
                format!("'}} {}'", long(within)),
                format!("--}} {}\n", long(within)),
            ] {
                let text = format!("log_by_lua_block {{{plain}{token}}}");
                assert_eq!(is_whole(&text), bytes == 1400, "{text}");
            }
            // How much is in long brackets nginx knows.
            for [begin, end] in [["[[", "]]"], ["--[[", "]]"]] {
                let text = format!("log_by_lua_block {{{plain}{begin}}} {}{end}}}", long(within));
                assert_eq!(is_whole(&text), !is_plain_before || bytes == 1400, "{text}");
            }
        }
        let often = format!("log_by_lua_block {{{}}}", "--} a remark\n".repeat(1000));
        assert!(is_whole(&often), "each is short");
    }

    #[test]
    fn the_words_of_directives_are_told_however_they_are_written() {
        let text = "listen 81;\n'listen' 82; if ($x) { listen 83; }\n\"set\" $x { listen; }";
        let words = [&["listen", "81"][..], &["listen", "82"], &["if", "($x)"], &["set", "$x"]];
        assert_eq!(directives(text), Some(words.map(<[_]>::to_vec).to_vec()));
    }
}
