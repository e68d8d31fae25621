//! What a client says it can decode, read as nginx reads it, which is not quite RFC 9110 section 12.5.3: `*` and
//! orders of preference mean nothing, and what is malformed is a no.

/// Whether a client takes gzip (ngx_http_gzip_accept_encoding).
pub fn takes_gzip(accept: &[u8]) -> bool {
    if accept.starts_with(b"gzip,") {
        return true;
    }
    let mut from = 0;
    let rest = loop {
        let Some(at) = find(&accept[from..], b"gzip").map(|at| from + at) else { return false };
        if at == from || matches!(accept[at - 1], b',' | b' ') {
            break &accept[at + 4..];
        }
        from = at + 4;
    };
    match skip_spaces(rest) {
        [] | [b',', ..] => true,
        [b';', rest @ ..] => gzip_weight(skip_spaces(rest)),
        _ => false,
    }
}

/// Whether what follows `gzip;` leaves it wanted.
fn gzip_weight(parameter: &[u8]) -> bool {
    match parameter {
        [] => true,
        [b'q' | b'Q', b'=', weight @ ..] if !weight.is_empty() => quantity(weight) > 0,
        _ => false,
    }
}

/// A weight in hundreds and more (ngx_http_gzip_quantity): what counts is whether it is 0.
fn quantity(weight: &[u8]) -> u32 {
    let (whole, rest) = match weight {
        [digit @ (b'0' | b'1'), rest @ ..] => (u32::from(digit - b'0') * 100, rest),
        _ => return 0,
    };
    let fraction = match rest {
        [] | [b',' | b' ', ..] => return whole,
        [b'.', fraction @ ..] => fraction,
        _ => return 0,
    };
    let end = fraction.iter().position(|byte| matches!(byte, b',' | b' '));
    let fraction = &fraction[..end.unwrap_or(fraction.len())];
    if fraction.len() > 3 || !fraction.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    let sum = whole + fraction.iter().map(|digit| u32::from(digit - b'0')).sum::<u32>();
    if sum > 100 { 0 } else { sum }
}

/// Whether a client takes brotli (check_accept_encoding of ngx_brotli).
pub fn takes_brotli(accept: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = find(&accept[from..], b"br").map(|at| from + at) {
        from = at + 2;
        let before = if at == 0 { b' ' } else { accept[at - 1] };
        let after = accept.get(from).copied().unwrap_or(b' ');
        if matches!(before, b',' | b' ') && matches!(after, b',' | b' ' | b';') {
            return !weighs_nothing(&accept[from..]);
        }
    }
    false
}

/// Whether `;q=0`, `;q=0.0` and so on follow.
fn weighs_nothing(mut rest: &[u8]) -> bool {
    for expected in *b";q=0" {
        match skip_spaces(rest) {
            [byte, after @ ..] if *byte == expected => rest = after,
            _ => return false,
        }
    }
    let Some(fraction) = rest.strip_prefix(b".") else { return true };
    for at in 0..3 {
        match fraction.get(at) {
            Some(b'0') => {}
            Some(b'1'..=b'9') => return false,
            _ => return true,
        }
    }
    true
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| byte != b' ').unwrap_or(text.len());
    &text[start..]
}

/// Where `word` begins, in any case of letters.
fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::{takes_brotli, takes_gzip};

    #[test]
    fn gzip_is_taken_where_nginx_says_so() {
        let yes = [
            "gzip",
            "gzip, deflate, br",
            "deflate, gzip",
            "deflate,GZip",
            "gzip;q=1",
            "gzip;q=0.001",
            "gzip ; q=0.5",
            "br;q=1, gzip;Q=0.5",
            "gzip;q=0.5 , br",
            "gzip,;nonsense",
            "gzip;",
            "xgzip, gzip",
        ];
        for text in yes {
            assert!(takes_gzip(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn gzip_is_not_taken_where_it_weighs_nothing_or_is_malformed() {
        let no = [
            "",
            "*",
            "gz",
            "identity",
            "x-gzip",
            "gzipped",
            "gzip;q=0",
            "gzip;q=0.000",
            "gzip;q=",
            "gzip;q=2",
            "gzip;q=0.0001",
            "gzip;q=1.001",
            "gzip;q=a",
            "gzip;level=1",
            "gzip; q =1",
            "deflate;gzip",
        ];
        for text in no {
            assert!(!takes_gzip(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn brotli_is_taken_where_its_module_says_so() {
        for text in
            ["br", "gzip, br", "BR", "br;q=1", "br;q=0.01", "abr, br", "br;x", "gzip,br;q=0.5"]
        {
            assert!(takes_brotli(text.as_bytes()), "{text}");
        }
        for text in ["", "*", "gzip", "bro", "x-br", "br;q=0", "br; q=0.0", "br;q=0.000", "abr"] {
            assert!(!takes_brotli(text.as_bytes()), "{text}");
        }
    }
}
