//! Requests.

use super::{Field, Framing, Read, body, head, show, values};

/// A request as a strict reader understands it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method as written.
    pub method: String,
    /// The target as written.
    pub target: Vec<u8>,
    /// 0 or 1, after `HTTP/1.`.
    pub minor: u8,
    /// The fields in order.
    pub fields: Vec<Field>,
    /// The content.
    pub body: Vec<u8>,
    /// Fields after the content.
    pub trailers: Vec<Field>,
    /// What is legal but not written in the canonical way.
    pub blemishes: Vec<String>,
    /// Lines with white space around their value that no proxy would write by itself.
    pub padded: Vec<String>,
}

impl Request {
    /// Who the request is for: the target's authority, else Host.
    pub fn authority(&self) -> Vec<u8> {
        let target = self.target.as_slice();
        let absolute = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
        match absolute {
            Some(rest) => {
                rest.split(|byte| b"/?".contains(byte)).next().unwrap_or_default().to_vec()
            }
            None => {
                values(&self.fields, "host").first().map(|host| host.to_vec()).unwrap_or_default()
            }
        }
    }

    /// Whether a field has this name.
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(n, _)| n == name)
    }
}

/// The request at the start of these bytes.
pub fn read_request(bytes: &[u8]) -> Read<Request> {
    match attempt(bytes) {
        Ok(read) => read,
        Err(why) => Read::Illegal(why),
    }
}

fn attempt(bytes: &[u8]) -> Result<Read<Request>, String> {
    let Some((lines, used)) = head::lines(bytes)? else {
        // A start line is judged as soon as it is there: nothing that follows can mend it.
        if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            start_line(bytes[..end].strip_suffix(b"\r").unwrap_or_default())?;
        }
        return Ok(Read::More { head: false });
    };
    let Some((first, rest)) = lines.split_first() else {
        return Err("an empty line instead of a request".to_owned());
    };
    let (method, target, minor) = start_line(first)?;
    let fields = head::fields(rest)?;
    let mut blemishes = twins(&fields);
    check_target(&method, &target)?;
    check_host(&fields, minor)?;
    let framing = head::framing(&fields, minor, &mut blemishes)?.unwrap_or(Framing::Length(0));
    let Some((body, length)) = body::read(&bytes[used..], framing, false)? else {
        return Ok(Read::More { head: true });
    };
    blemishes.extend(body.blemishes);
    let (bytes, trailers) = (body.bytes, body.trailers);
    let padded = head::padded(rest);
    let request =
        Request { method, target, minor, fields, body: bytes, trailers, blemishes, padded };
    Ok(Read::Whole(request, used + length))
}

fn start_line(line: &[u8]) -> Result<(String, Vec<u8>, u8), String> {
    let bad = || format!("the request line {:?}", show(line));
    let parts: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = parts.as_slice() else { return Err(bad()) };
    if method.is_empty() || !method.iter().all(|byte| head::is_token(*byte)) {
        return Err(bad());
    }
    if target.is_empty()
        || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f || *byte == b'#')
    {
        return Err(bad());
    }
    let minor = match *version {
        b"HTTP/1.1" => 1,
        b"HTTP/1.0" => 0,
        _ => return Err(bad()),
    };
    Ok((String::from_utf8_lossy(method).into_owned(), target.to_vec(), minor))
}

fn check_target(method: &str, target: &[u8]) -> Result<(), String> {
    let bad = || format!("the target {:?}", show(target));
    let absolute = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
    match (target, absolute) {
        _ if method == "CONNECT" => check_authority(target).map_err(|_| bad()),
        ([b'/', ..], _) => Ok(()),
        (b"*", _) if method == "OPTIONS" => Ok(()),
        (_, Some(rest)) => {
            let authority = rest.split(|byte| b"/?".contains(byte)).next().unwrap_or_default();
            check_authority(authority).map_err(|_| bad())
        }
        _ => Err(bad()),
    }
}

fn check_host(fields: &[Field], minor: u8) -> Result<(), String> {
    match values(fields, "host").as_slice() {
        [] if minor == 0 => Ok(()),
        [] => Err("no Host".to_owned()),
        [host] => check_authority(host),
        several => Err(format!("{} lines of Host", several.len())),
    }
}

/// RFC 3986 3.2 without userinfo.
fn check_authority(text: &[u8]) -> Result<(), String> {
    let bad = || Err(format!("the host {:?}", show(text)));
    let (host, port) = match text.strip_prefix(b"[") {
        Some(inner) => {
            let Some(close) = inner.iter().position(|byte| *byte == b']') else { return bad() };
            if !inner[..close].iter().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)) {
                return bad();
            }
            (&inner[..close], &inner[close + 1..])
        }
        None => text.split_at(text.iter().position(|byte| *byte == b':').unwrap_or(text.len())),
    };
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:".contains(byte);
    if host.is_empty() || !host.iter().all(in_name) {
        return bad();
    }
    let port = port.strip_prefix(b":").or(port.is_empty().then_some(b"0"));
    let number = port.and_then(|port| str::from_utf8(port).ok()).unwrap_or_default();
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    if digits && (number.is_empty() && text.ends_with(b":") || number.parse::<u16>().is_ok()) {
        return Ok(());
    }
    bad()
}

/// Some upstreams read `Transfer_Encoding` as `Transfer-Encoding`.
fn twins(fields: &[Field]) -> Vec<String> {
    let framing = ["content-length", "transfer-encoding", "host", "connection"];
    let twin =
        |name: &str| name.contains('_') && framing.contains(&name.replace('_', "-").as_str());
    fields
        .iter()
        .filter(|(name, _)| twin(name))
        .map(|(name, _)| format!("the field {name}"))
        .collect()
}
