//! A reader of nginx.conf after the rules of nginx's own lexer (ngx_conf_read_token), for tests: it shares no line with
//! what writes.

/// A directive as nginx hands it to its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub words: Vec<String>,
    pub block: Option<Vec<Self>>,
}

/// All directives of a text.
pub(crate) fn read(text: &str) -> Result<Vec<Read>, String> {
    let mut tokens = tokens(text)?.into_iter();
    let all = directives(&mut tokens, false)?;
    match tokens.next() {
        None => Ok(all),
        Some(token) => Err(format!("{token:?} at the end")),
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    End,
    Open,
    Close,
}

fn directives(tokens: &mut impl Iterator<Item = Token>, inside: bool) -> Result<Vec<Read>, String> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => words.push(word),
            Token::End if words.is_empty() => return Err("unexpected ;".to_owned()),
            Token::End => all.push(Read { words: std::mem::take(&mut words), block: None }),
            Token::Open if words.is_empty() => return Err("unexpected {".to_owned()),
            Token::Open => {
                let words = std::mem::take(&mut words);
                // Another module reads these itself, up to the brace that ends them.
                let block = directives(tokens, true)?;
                all.push(Read { words, block: Some(block) });
            }
            Token::Close if inside && words.is_empty() => return Ok(all),
            Token::Close => return Err("unexpected }".to_owned()),
        }
    }
    if inside || !words.is_empty() { Err("unexpected end".to_owned()) } else { Ok(all) }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let bytes = text.as_bytes();
    let (mut at, mut all) = (0, Vec::new());
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'#' => at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count(),
            b';' => {
                all.push(Token::End);
                at += 1;
            }
            b'{' => {
                all.push(Token::Open);
                at += 1;
                at = skip_lua(&mut all, text, at)?;
            }
            b'}' => {
                all.push(Token::Close);
                at += 1;
            }
            quote @ (b'"' | b'\'') => {
                let (word, next) = quoted(bytes, at + 1, quote)?;
                all.push(Token::Word(word));
                at = next;
                match bytes.get(at) {
                    Some(b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{' | b')') => {}
                    other => return Err(format!("{other:?} after a quote")),
                }
            }
            _ => {
                let (word, next) = bare(bytes, at)?;
                all.push(Token::Word(word));
                at = next;
            }
        }
    }
    Ok(all)
}

/// The Lua module reads its blocks itself; here their text is one line after the other up to a lone brace.
fn skip_lua(all: &mut [Token], text: &str, at: usize) -> Result<usize, String> {
    let words = all.iter().rev().skip(1).take_while(|token| matches!(token, Token::Word(_)));
    let first = words.last();
    let is_lua = matches!(first, Some(Token::Word(word)) if word.ends_with("_by_lua_block"));
    if !is_lua {
        return Ok(at);
    }
    let mut end = at;
    for line in text[at..].split_inclusive('\n') {
        if line.trim() == "}" {
            return Ok(end);
        }
        end += line.len();
    }
    Err("Lua without end".to_owned())
}

fn quoted(bytes: &[u8], mut at: usize, quote: u8) -> Result<(String, usize), String> {
    let mut word = Vec::new();
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) => return Err("a quote without end".to_owned()),
            (Some(b'\\'), Some(next)) => {
                escaped(&mut word, *next);
                at += 2;
            }
            (Some(byte), _) if *byte == quote => return Ok((text(word)?, at + 1)),
            (Some(byte), _) => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

fn bare(bytes: &[u8], mut at: usize) -> Result<(String, usize), String> {
    let mut word = Vec::new();
    let mut variable = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' if variable => {}
            b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{' => break,
            b'\\' => {
                if let Some(next) = bytes.get(at + 1) {
                    escaped(&mut word, *next);
                }
                at += 2;
                variable = false;
                continue;
            }
            _ => {}
        }
        variable = *byte == b'$';
        word.push(*byte);
        at += 1;
    }
    Ok((text(word)?, at))
}

fn escaped(word: &mut Vec<u8>, next: u8) {
    match next {
        b'"' | b'\'' | b'\\' => word.push(next),
        b't' => word.push(b'\t'),
        b'r' => word.push(b'\r'),
        b'n' => word.push(b'\n'),
        other => word.extend([b'\\', other]),
    }
}

fn text(word: Vec<u8>) -> Result<String, String> {
    String::from_utf8(word).map_err(|error| error.to_string())
}
