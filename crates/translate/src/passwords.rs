//! From the text of a password file to users: htpasswd as nginx and its libc read it, htdigest, and Secrets whose keys
//! are the users.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::policy::{Password, Users};
use model::{Message, Why};
use std::collections::BTreeMap;

/// The rest of a sentence.
const TOO_COSTLY: &str = "has a bcrypt hash whose cost is above 14, so that each guess takes seconds: hash it \
    with 10 to 12 (ingress-nginx took it)";
/// The rest of a sentence.
const SPACE: &str = "has a space around the user, which is a part of the name: without it nobody gets in, take it out";
/// The costliest bcrypt that is computed: it takes about a second, as long as the most rounds of SHA-crypt.
const COSTLIEST: u32 = 14;
/// The most rounds of SHA-crypt that are computed.
const MOST_ROUNDS: u32 = 1_000_000;
/// Wrong lines of a file that are told one by one: each Ingress that names it is told of them.
const TOLD: usize = 20;

/// Users, and what is wrong with lines that let nobody in.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PasswordFile {
    /// Who may come in.
    pub users: Users,
    /// What is wrong with the other lines; no password is ever part of it.
    pub wrong: Vec<Message>,
    /// What is odd about lines of those who may.
    pub odd: Vec<String>,
    /// How many further lines there are with something wrong.
    pub untold: usize,
}

impl PasswordFile {
    /// Reads `user:hash` lines. Of several for one user the first counts (ngx_http_auth_basic_module).
    pub fn htpasswd(text: &[u8]) -> Self {
        let mut file = Self::default();
        for (number, line) in lines(text) {
            file.add_line(&format!("line {number}"), line);
        }
        file
    }

    /// Reads one `user:hash`; what follows another colon is a comment.
    fn add_line(&mut self, place: &str, line: &[u8]) {
        let mut fields = line.split(|&byte| byte == b':');
        let user = fields.next().unwrap_or_default();
        self.add(place, user, fields.next(), |hash| password(&value(hash)));
    }

    /// Reads a Secret whose keys are the users (`auth-secret-type: auth-map`).
    pub fn map(data: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut file = Self::default();
        for (user, value) in data {
            // As in the file that ingress-nginx makes of it, each further line is one for another user.
            let text = [user.as_bytes(), b":", value].concat();
            for (number, line) in lines(&text) {
                let place = match number {
                    1 => format!("key {user}"),
                    _ => format!("key {user}, line {number}"),
                };
                file.add_line(&place, line);
            }
        }
        file
    }

    /// Reads the `user:realm:hash` lines of one realm (htdigest).
    pub fn htdigest(text: &[u8], realm: &str) -> Self {
        let mut file = Self::default();
        for (number, line) in lines(text) {
            let fields: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
            let place = format!("line {number}");
            match fields[..] {
                [user, of, hash] if of == realm.as_bytes() => {
                    file.add(&place, user, Some(hash), digest);
                }
                [_, _, _] => file.tell(format!("{place} is for another realm").into()),
                _ => {
                    file.tell(format!("{place} is not user:realm:hash, as htdigest writes").into())
                }
            }
        }
        file
    }

    fn add(
        &mut self,
        place: &str,
        user: &[u8],
        hash: Option<&[u8]>,
        read: impl FnOnce(&[u8]) -> Result<Password, &'static str>,
    ) {
        if self.users.0.contains_key(user) {
            return self.tell(format!("{place} repeats a user, the first one counts").into());
        }
        let read = match hash {
            None => Err("has no colon: write user:hash"),
            Some(_) if user.is_empty() => Err("has no user"),
            Some(b"") => Err("has no hash"),
            Some(hash) => read(hash),
        };
        match read {
            Ok(password) => {
                self.users.0.insert(user.into(), password);
                let is_space = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
                if is_space(user.first()) || is_space(user.last()) {
                    self.wonder(format!("{place} {SPACE}"));
                }
            }
            Err(wrong) => {
                let why = (wrong == TOO_COSTLY).then_some(Why::TookIt);
                self.tell(Message::from(format!("{place} {wrong}")).because(why));
            }
        }
    }

    fn wonder(&mut self, odd: String) {
        if self.odd.len() < TOLD {
            self.odd.push(odd);
        }
    }

    fn tell(&mut self, wrong: Message) {
        if self.wrong.len() < TOLD {
            self.wrong.push(wrong);
        } else {
            self.untold += 1;
        }
    }
}

/// Numbered lines without their ends; empty ones and comments are left out.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    lines.filter_map(|(index, line)| {
        let line = line.split(|&byte| byte == b'\r').next().unwrap_or_default();
        (!line.is_empty() && line[0] != b'#').then_some((index + 1, line))
    })
}

/// The value of a Secret's line; a zero byte ends it for crypt(3).
fn value(hash: &[u8]) -> Vec<u8> {
    hash.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
}

/// Tells the kind of a hash (ngx_crypt, and crypt(3) of the original's libc).
fn password(hash: &[u8]) -> Result<Password, &'static str> {
    if let Some(plain) = hash.strip_prefix(b"{PLAIN}") {
        return Ok(Password::Plain(plain.into()));
    }
    let text = std::str::from_utf8(hash).map_err(|_| UNKNOWN)?;
    if let Some(encoded) = text.strip_prefix("{SSHA}") {
        return salted(encoded);
    }
    if let Some(encoded) = text.strip_prefix("{SHA}") {
        let valid = STANDARD.decode(encoded).is_ok_and(|hash| hash.len() == 20);
        return valid.then(|| Password::Sha1(encoded.into())).ok_or("has no SHA-1 in {SHA}");
    }
    for magic in ["$apr1$", "$1$"] {
        if let Some(rest) = text.strip_prefix(magic) {
            return md5(magic, rest);
        }
    }
    match text.as_bytes() {
        [b'$', b'2', b'a' | b'b' | b'x' | b'y', b'$', rest @ ..] => bcrypt(text, rest),
        [b'$', b'5' | b'6', b'$', ..] => sha_crypt(text),
        bytes if bytes.len() == 13 && bytes.iter().all(|byte| is_digit(*byte)) => {
            Ok(Password::Des(text.into()))
        }
        _ => Err(UNKNOWN),
    }
}

const UNKNOWN: &str = "has a hash of no known kind: write one with htpasswd or openssl passwd";

fn salted(encoded: &str) -> Result<Password, &'static str> {
    let bytes = STANDARD.decode(encoded).map_err(|_| "has no Base64 in {SSHA}")?;
    match bytes.split_at_checked(20) {
        Some((hash, salt)) => Ok(Password::SaltedSha1 { hash: hash.into(), salt: salt.into() }),
        None => Err("has no SHA-1 in {SSHA}"),
    }
}

fn md5(magic: &'static str, rest: &str) -> Result<Password, &'static str> {
    match rest.split_once('$') {
        Some((salt, hash)) if salt.len() <= 8 && hash.len() == 22 && all_digits(hash) => {
            Ok(Password::Md5 { magic, salt: salt.into(), hash: hash.into() })
        }
        _ => Err("has an MD5 hash that is not whole"),
    }
}

fn bcrypt(text: &str, rest: &[u8]) -> Result<Password, &'static str> {
    let [tens, ones, b'$', hash @ ..] = rest else { return Err("has a bcrypt hash without cost") };
    if hash.len() != 53 || !hash.iter().all(|byte| is_digit(*byte)) {
        return Err("has a bcrypt hash that is not whole");
    }
    match std::str::from_utf8(&[*tens, *ones]).ok().and_then(|cost| cost.parse::<u32>().ok()) {
        Some(4..=COSTLIEST) => Ok(Password::Bcrypt(text.into())),
        Some(15..=31) => Err(TOO_COSTLY),
        _ => Err("has a bcrypt hash whose cost is not between 4 and 31"),
    }
}

fn sha_crypt(text: &str) -> Result<Password, &'static str> {
    let length = if text.starts_with("$5") { 43 } else { 86 };
    let mut fields = text[3..].split('$');
    let mut salt = fields.next().unwrap_or_default();
    if let Some(rounds) = salt.strip_prefix("rounds=") {
        if !rounds.parse().is_ok_and(|rounds: u32| (1000..=MOST_ROUNDS).contains(&rounds)) {
            return Err("has a SHA hash whose rounds are not between 1000 and 1000000");
        }
        salt = fields.next().unwrap_or_default();
    }
    match (fields.next(), fields.next()) {
        (Some(hash), None) if salt.len() <= 16 && hash.len() == length && all_digits(hash) => {
            Ok(Password::ShaCrypt(text.into()))
        }
        _ => Err("has a SHA hash that is not whole"),
    }
}

fn digest(hash: &[u8]) -> Result<Password, &'static str> {
    let wrong = "has a hash that is not 32 hexadecimal digits";
    if hash.len() != 32 || !hash.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong);
    }
    let text = std::str::from_utf8(hash).map_err(|_| wrong)?;
    let number = u128::from_str_radix(text, 16).map_err(|_| wrong)?;
    Ok(Password::Digest(number.to_be_bytes()))
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'/'
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::PasswordFile;
    use model::policy::Password;

    fn names(file: &PasswordFile) -> Vec<String> {
        file.users.0.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    fn told(file: &PasswordFile) -> Vec<&str> {
        file.wrong.iter().map(|wrong| &**wrong).collect()
    }

    #[test]
    fn lines_are_read_as_nginx_reads_them() {
        let text = b"# a comment\n\nnocolon\nempty:\ncarol:{PLAIN}a:b\r\n frank:{PLAIN}x\nerin:{PLAIN}first\n\
            erin:{PLAIN}second\n#gail:{PLAIN}x\nlast:{PLAIN}line";
        let file = PasswordFile::htpasswd(text);
        assert_eq!(names(&file), [" frank", "carol", "erin", "last"]);
        let plain = |user: &str| file.users.0[user.as_bytes()].clone();
        assert_eq!(file.odd, [format!("line 6 {}", super::SPACE)]);
        assert!(plain("carol") == Password::Plain(b"a".as_slice().into()));
        assert!(plain("erin") == Password::Plain(b"first".as_slice().into()));
        assert_eq!(
            told(&file),
            [
                "line 3 has no colon: write user:hash",
                "line 4 has no hash",
                "line 8 repeats a user, the first one counts"
            ]
        );
    }

    #[test]
    fn hashes_of_unknown_kinds_and_those_that_would_take_forever_let_nobody_in() {
        for hash in [
            "secret",
            "$y$j9T$x$y",
            "{MD5}x",
            "{SHA}AAAA",
            "{SSHA}!",
            "$apr1$salt$short",
            "$2y$31$abc",
            "$2y$15$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
            "$5$rounds=99999999$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
            "$6$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
            "ab$Nd1rDfiNcx",
        ] {
            let file = PasswordFile::htpasswd(format!("alice:{hash}").as_bytes());
            assert_eq!((names(&file).len(), file.wrong.len()), (0, 1), "{hash}");
            assert!(!file.wrong[0].contains(hash), "{}", file.wrong[0]);
        }
    }

    #[test]
    fn further_lines_of_a_user_in_a_map_are_further_users() {
        let value = |text: &str| text.as_bytes().to_vec();
        let data = [
            ("alice", value("{PLAIN}a\r\nbob:{PLAIN}b:comment\n\nnocolon\n")),
            ("carol", value("\n")),
        ];
        let data = data.map(|(user, value)| (user.to_owned(), value)).into();
        let file = PasswordFile::map(&data);
        assert_eq!(names(&file), ["alice", "bob"]);
        assert!(file.users.0[&b"bob"[..]] == Password::Plain(b"b".as_slice().into()));
        let wrong = ["key alice, line 4 has no colon: write user:hash", "key carol has no hash"];
        assert_eq!(told(&file), wrong);
    }

    #[test]
    fn of_many_wrong_lines_the_first_are_told() {
        let file = PasswordFile::htpasswd("nocolon\n".repeat(1000).as_bytes());
        assert_eq!((file.wrong.len(), file.untold), (super::TOLD, 1000 - super::TOLD));
        assert_eq!(&*file.wrong[19], "line 20 has no colon: write user:hash");
    }

    #[test]
    fn a_digest_file_has_users_by_realm() {
        let hash = "190677b5fa7f7f2f307ed961595b06d8";
        let text = format!("alice:R:{hash}\nbob:Other:{hash}\ncarol:R:short\ndave:{hash}\n");
        let file = PasswordFile::htdigest(text.as_bytes(), "R");
        assert_eq!((names(&file), file.wrong.len()), (vec!["alice".to_owned()], 3));
    }
}
