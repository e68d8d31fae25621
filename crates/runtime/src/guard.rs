//! Who may read a page that is not for everybody: this machine, asked for by an address of its own, or whoever shows
//! the token.

use http::{HeaderMap, Method, Uri, header};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use system::sockets::party;

/// Bytes of a token at least: what is shorter can be guessed.
const SHORTEST: usize = 16;
/// Bytes of its file at most.
const LONGEST: usize = 4096;
/// Wrong tokens of one address in one `SPAN`. Whoever shows more of them waits for as long before each answer; the
/// right one passes at once, whoever showed wrong ones before.
const TRIES: u32 = 20;
pub(crate) const SPAN: Duration = Duration::from_secs(1);
/// Addresses whose wrong tokens are counted; the ones that came first are forgotten beyond that.
const ADDRESSES: usize = 1024;

/// The header field of a token where the way to here keeps `Authorization` for itself, as the API server's proxy does.
pub const TOKEN: &str = "fairway-token";

/// What others than this machine are told.
const NEAR_ONLY: &str = "this page is for the machine itself: kubectl port-forward reaches it from there, others need \
                         the token of --admin-token-file\n";
const WRONG_HOST: &str = "this page is for the machine itself: ask for it by localhost or by an address, such as \
                          http://localhost:10254/\n";
const OTHER_SITE: &str = "another site's page asked for this one: open it in a window of its own\n";
const WRONG_TOKEN: &str = "that is not the token of --admin-token-file\n";
const TOO_MANY: &str =
    "that is not the token of --admin-token-file, and too many were wrong: look it up\n";

/// The file of a token.
#[derive(Debug)]
pub struct Token {
    file: PathBuf,
    /// By address, when its span began, and the wrong ones in it.
    wrong: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

/// Why a token's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("cannot read {file} (--admin-token-file): {source}", file = file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It can be guessed, or is no token.
    #[error(
        "{file} (--admin-token-file) holds no token: write 16 to 4096 visible characters into it, such as those of \
         `openssl rand -hex 32`", file = file.display()
    )]
    Unfit {
        /// The file.
        file: PathBuf,
    },
}

impl Token {
    /// The token in this file, which is read anew for each request that shows one, so that it can be changed.
    pub fn new(file: PathBuf) -> Result<Self, TokenError> {
        let token = Self { file, wrong: Mutex::default() };
        token.read().map(|_| token)
    }

    fn read(&self) -> Result<Vec<u8>, TokenError> {
        let file = || self.file.clone();
        let bytes = std::fs::read(&self.file)
            .map_err(|source| TokenError::Unreadable { file: file(), source })?;
        let bytes = bytes.trim_ascii();
        let fits = (SHORTEST..=LONGEST).contains(&bytes.len());
        if fits && bytes.iter().all(u8::is_ascii_graphic) {
            Ok(bytes.to_vec())
        } else {
            Err(TokenError::Unfit { file: file() })
        }
    }

    /// Whether this is it.
    fn is(&self, shown: &[u8]) -> bool {
        self.read().is_ok_and(|token| equal(&token, shown))
    }

    /// Counts a wrong one; whether its address showed too many.
    fn count(&self, peer: IpAddr) -> bool {
        let (peer, now) = (party(peer), Instant::now());
        let mut wrong = self.wrong.lock();
        if wrong.len() >= ADDRESSES && !wrong.contains_key(&peer) {
            wrong.retain(|_, (began, _)| now.duration_since(*began) < SPAN);
            if wrong.len() >= ADDRESSES
                && let Some(first) = wrong.iter().min_by_key(|(_, (began, _))| *began)
            {
                let first = *first.0;
                wrong.remove(&first);
            }
        }
        let (began, count) = wrong.entry(peer).or_insert((now, 0));
        if now.duration_since(*began) >= SPAN {
            (*began, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count > TRIES
    }
}

/// Takes as long wherever they differ.
fn equal(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b)));
    a.len() == b.len() && differ == 0
}

/// Whether a request may read what is for this machine; else what it is told, and whether it came too often.
pub(crate) fn may_read(
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
    peer: IpAddr,
    token: Option<&Token>,
) -> Result<(), (http::StatusCode, &'static str)> {
    use http::StatusCode;
    if let Some((token, shown)) = token.zip(shown(headers)) {
        return if token.is(shown) {
            Ok(())
        } else if token.count(peer) {
            Err((StatusCode::TOO_MANY_REQUESTS, TOO_MANY))
        } else {
            Err((StatusCode::UNAUTHORIZED, WRONG_TOKEN))
        };
    }
    if !peer.to_canonical().is_loopback() {
        return Err((StatusCode::FORBIDDEN, NEAR_ONLY));
    }
    is_for_here(method, uri, headers)
}

/// Whether no page of somebody else asks through a browser; else what it is told.
pub(crate) fn is_for_here(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), (http::StatusCode, &'static str)> {
    use http::StatusCode;
    // A name that somebody else's DNS leads here makes their page one of this origin for a browser.
    if !is_own(uri, headers) {
        return Err((StatusCode::FORBIDDEN, WRONG_HOST));
    }
    if is_from_other_site(method, headers) {
        return Err((StatusCode::FORBIDDEN, OTHER_SITE));
    }
    Ok(())
}

/// The token that a request shows.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let bearer = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
    headers.get(TOKEN).map(http::HeaderValue::as_bytes).or(bearer).map(<[u8]>::trim_ascii)
}

/// Whether a request names this machine by an address or as localhost; HTTP/1.0 may name nobody, browsers always do.
fn is_own(uri: &Uri, headers: &HeaderMap) -> bool {
    let named = uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut all =
        headers.get_all(header::HOST).iter().map(http::HeaderValue::as_bytes).chain(named);
    all.all(|name| std::str::from_utf8(name).is_ok_and(is_own_name))
}

fn is_own_name(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok()
        || bare.is_some_and(|bare| bare.parse::<Ipv6Addr>().is_ok())
}

/// Whether a browser says that another site's page wants this, other than by a link that is followed.
fn is_from_other_site(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name: &str, values: &[&str]| {
        headers.get(name).is_some_and(|value| values.iter().any(|one| value == one))
    };
    let follows = method == Method::GET
        && says("sec-fetch-mode", &["navigate"])
        && says("sec-fetch-dest", &["document"]);
    says("sec-fetch-site", &["cross-site", "same-site"]) && !follows
}

#[cfg(test)]
mod tests {
    use super::{TOKEN, TRIES, Token, may_read};
    use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
    use std::io::Write;
    use std::net::IpAddr;

    const NEAR: &str = "127.0.0.1";

    fn status(peer: &str, token: Option<&Token>, fields: &[(&str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::try_from(*name).expect("a name");
            headers.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        let peer: IpAddr = peer.parse().expect("an address");
        let uri = Uri::from_static("/api/v1/overview");
        may_read((&Method::GET, &uri, &headers), peer, token)
            .map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn a_name_that_somebody_lets_lead_here_is_refused() {
        let own =
            ["localhost", "LOCALHOST:10254", "127.0.0.1:1", "[::1]:10254", "10.0.0.1", "[::1]"];
        for host in own {
            assert_eq!(status(NEAR, None, &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.test",
            "evil.test:10254",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "",
            "[x]",
            "a:b:1",
        ] {
            assert_eq!(status(NEAR, None, &[("host", host)]), 403, "{host:?}");
        }
        assert_eq!(status(NEAR, None, &[("host", "localhost"), ("host", "evil.test")]), 403);
    }

    #[test]
    fn pages_of_other_sites_get_nothing_but_a_link_may_be_followed() {
        let with = |site, mode, dest| {
            let fetch =
                [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
            status(NEAR, None, &fetch)
        };
        assert_eq!(with("same-origin", "cors", "empty"), 200);
        assert_eq!(with("none", "navigate", "document"), 200);
        assert_eq!(with("cross-site", "navigate", "document"), 200);
        assert_eq!(with("cross-site", "navigate", "iframe"), 403);
        assert_eq!(with("cross-site", "no-cors", "script"), 403);
        assert_eq!(with("same-site", "cors", "empty"), 403);
    }

    #[test]
    fn who_shows_the_token_may_read_from_anywhere_and_guessing_is_slow() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        assert!(Token::new(file.path().to_owned()).is_err(), "an empty one");
        writeln!(file, "0123456789abcdef").expect("it is written");
        let token = Token::new(file.path().to_owned()).expect("a token");
        let ask = |field: &str, value: &str| {
            status("10.0.0.1", Some(&token), &[(field, value), ("host", "a")])
        };
        assert_eq!(status("10.0.0.1", Some(&token), &[]), 403);
        assert_eq!(ask("authorization", "Bearer 0123456789abcdef"), 200);
        assert_eq!(ask(TOKEN, "0123456789abcdef"), 200);
        let wrong: Vec<u16> = (0..=TRIES).map(|_| ask(TOKEN, "0123456789abcdee")).collect();
        assert_eq!((wrong[0], wrong.last()), (401, Some(&429)));
        assert_eq!(ask(TOKEN, "0123456789abcdef"), 200, "the right one passes, whoever guesses");
        let other = status("10.0.0.2", Some(&token), &[(TOKEN, "0123456789abcdee"), ("host", "a")]);
        assert_eq!(other, 401, "others' wrong ones do not count");
        for number in 0..2000_u32 {
            let peer = std::net::Ipv4Addr::from(number).to_string();
            status(&peer, Some(&token), &[(TOKEN, "0123456789abcdee"), ("host", "a")]);
        }
        assert!(token.wrong.lock().len() <= super::ADDRESSES);
        assert_eq!(status(NEAR, Some(&token), &[("host", "localhost")]), 200, "needs none");
    }
}
