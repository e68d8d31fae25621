//! `auth-type`, `auth-secret`, `auth-realm` (ngx_http_auth_basic_module; digests are checked by Lua).

use super::super::Word;
use super::super::location::At;
use super::super::tree::{lua, put};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::policy::{AuthBasic, AuthScheme, Password, Users};

pub(in crate::conf) fn write(policy: Option<&AuthBasic>, at: &mut At<'_, '_>) {
    let Some(AuthBasic { scheme, realm, users }) = policy else { return };
    if *scheme == AuthScheme::Digest {
        return digest(realm, users, at);
    }
    let file = at.scope.file("htpasswd", file(users));
    // To nginx `off` is no realm but the absence of one (compat/decisions.md row 2).
    if realm == "off" {
        put!(at.block, "auth_basic", "off ");
        let header = "WWW-Authenticate: Basic realm=\"off\"";
        put!(at.block, "more_set_headers", "-s", "401", header);
    } else {
        put!(at.block, "auth_basic", Word::literal(realm));
    }
    put!(at.block, "auth_basic_user_file", file);
}

fn digest(realm: &str, Users(users): &Users, at: &mut At<'_, '_>) {
    let mut lines = Vec::new();
    for (name, password) in users {
        if let Password::Digest(secret) = password {
            let secret = format!("{:032x}\n", u128::from_be_bytes(*secret));
            lines.extend_from_slice(&[name, &b":"[..], secret.as_bytes()].concat());
        }
    }
    let file = at.scope.file("htdigest", lines);
    put!(at.block, "set", "$fairway_digest_realm", Word::literal(realm));
    put!(at.block, "set", "$fairway_digest_users", file);
    let check = lua("require(\"fairway.digest\").check()");
    at.block.open("access_by_lua_block", vec![], check);
}

/// A password file as nginx reads it. Names that it could not tell from something else were left out by whoever read
/// the Secret: none has a colon or a line's end.
fn file(Users(users): &Users) -> Vec<u8> {
    let mut file = Vec::new();
    for (name, password) in users {
        file.extend_from_slice(name);
        file.push(b':');
        file.extend_from_slice(&text(password));
        file.push(b'\n');
    }
    file
}

fn text(password: &Password) -> Vec<u8> {
    match password {
        Password::Plain(text) => [b"{PLAIN}", &text[..]].concat(),
        Password::Sha1(hash) => format!("{{SHA}}{hash}").into_bytes(),
        Password::SaltedSha1 { hash, salt } => {
            let both = [&hash[..], &salt[..]].concat();
            format!("{{SSHA}}{}", BASE64_STANDARD.encode(both)).into_bytes()
        }
        Password::Md5 { magic, salt, hash } => format!("{magic}{salt}${hash}").into_bytes(),
        Password::Bcrypt(text) | Password::ShaCrypt(text) | Password::Des(text) => {
            text.as_bytes().to_vec()
        }
        // Nobody has it here; a text that no password becomes.
        Password::Digest(_) => b"*".to_vec(),
    }
}
