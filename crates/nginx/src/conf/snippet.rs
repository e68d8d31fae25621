//! Whether raw configuration stays where it is put: what it opens it closes, and it closes nothing else. Otherwise one
//! Ingress could end the block of another one.

/// Whether a text is a sequence of whole directives (ngx_conf_read_token, and the Lua module's blocks).
pub(super) fn is_whole(text: &str) -> bool {
    let mut reader = Reader { rest: text, depth: 0, first: String::new(), ended: true };
    while let Some(next) = reader.rest.chars().next() {
        if reader.step(next).is_none() {
            return false;
        }
    }
    reader.depth == 0 && reader.ended
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
    /// The first word of the directive that is being read.
    first: String,
    /// Whether no directive is being read.
    ended: bool,
}

impl Reader<'_> {
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
            space if space.is_ascii_whitespace() => self.skip(1),
            _ => self.word()?,
        }
        Some(())
    }

    fn end(&mut self) {
        self.first.clear();
        self.ended = true;
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
    }

    /// One parameter, quoted or not.
    fn word(&mut self) -> Option<()> {
        let end = match self.rest.chars().next()? {
            quote @ ('"' | '\'') => quoted(&self.rest[1..], quote)? + 1,
            _ => bare(self.rest),
        };
        if self.ended {
            self.first = self.rest[..end].to_owned();
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

/// Bytes of a parameter without quotes: `${` does not open a block.
fn bare(text: &str) -> usize {
    let mut characters = text.char_indices();
    let mut before = ' ';
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '{' if before == '$' => {}
            ';' | '{' => return at,
            space if space.is_ascii_whitespace() => return at,
            _ => {}
        }
        before = character;
    }
    text.len()
}

/// What follows the brace that ends a block of Lua.
fn lua(mut rest: &str) -> Option<&str> {
    let mut depth = 1_usize;
    loop {
        let next = rest.chars().next()?;
        rest = match next {
            '-' if rest.starts_with("--[[") => rest.split_once("]]")?.1,
            '-' if rest.starts_with("--") => rest.split_once('\n')?.1,
            '[' if rest.starts_with("[[") => rest.split_once("]]")?.1,
            // Long brackets with a level could hide anything: who needs them can do without.
            '[' if rest.starts_with("[=") => return None,
            '"' | '\'' => rest.get(1 + quoted(&rest[1..], next)?..)?,
            '{' => {
                depth += 1;
                &rest[1..]
            }
            '}' if depth == 1 => return Some(&rest[1..]),
            '}' => {
                depth -= 1;
                &rest[1..]
            }
            other => &rest[other.len_utf8()..],
        };
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;

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
        ] {
            assert!(!is_whole(text), "{text}");
        }
    }
}
