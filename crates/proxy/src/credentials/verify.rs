//! Whether a password is the one that a file knows.

use super::des_crypt::des_crypt;
use super::md5_crypt::md5_crypt;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::policy::Password;
use sha_crypt::{PasswordVerifier, ShaCrypt};

/// Bytes of a password beyond which hashes whose work grows with them say no: SHA-crypt as the original's libc does,
/// MD5 since nobody has such a password, and 6 kB of it cost 30 times as much as is counted.
const LONGEST: usize = 256;

/// Microseconds that finding out takes, about: what hashes cost one another. 0: so little that nobody waits.
pub(super) fn cost(known: &Password) -> u64 {
    match known {
        Password::Plain(_)
        | Password::Sha1(_)
        | Password::SaltedSha1 { .. }
        | Password::Digest(_) => 0,
        Password::Md5 { .. } | Password::Des(_) => 500,
        Password::Bcrypt(hash) => {
            let cost = hash.get(4..6).and_then(|cost| cost.parse().ok()).unwrap_or(31);
            50 << cost.min(31u64)
        }
        Password::ShaCrypt(hash) => {
            let rounds = hash[3..].strip_prefix("rounds=").and_then(|rest| rest.split('$').next());
            rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(5000)
        }
    }
}

/// Whether `password` is the known one. Takes up to seconds; the time does not depend on how much of it is right.
pub(crate) fn verify(known: &Password, password: &[u8]) -> bool {
    match known {
        Password::Plain(plain) => same(plain, password),
        Password::Sha1(hash) => same(hash.as_bytes(), STANDARD.encode(sha1(password)).as_bytes()),
        Password::SaltedSha1 { hash, salt } => same(hash, &sha1(&[password, salt].concat())),
        Password::Md5 { magic, salt, hash } => {
            password.len() <= LONGEST
                && same(hash.as_bytes(), md5_crypt(magic, salt, password).as_bytes())
        }
        Password::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
        Password::ShaCrypt(hash) => {
            password.len() <= LONGEST
                && ShaCrypt::default().verify_password(password, &**hash).is_ok()
        }
        Password::Des(hash) => {
            des_crypt(hash, password).is_some_and(|found| same(hash.as_bytes(), found.as_bytes()))
        }
        Password::Digest(_) => false,
    }
}

fn sha1(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec()
}

fn same(known: &[u8], found: &[u8]) -> bool {
    verify_slices_are_equal(known, found).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, md5_crypt, verify};
    use model::policy::Password;

    #[test]
    fn a_password_that_would_take_more_than_is_counted_is_none() {
        let known = |password: &[u8]| Password::Md5 {
            magic: "$apr1$",
            salt: "fairway1".into(),
            hash: md5_crypt("$apr1$", "fairway1", password).into(),
        };
        let long = [b'x'; LONGEST + 1];
        assert!(verify(&known(&long[1..]), &long[1..]));
        assert!(!verify(&known(&long), &long));
    }

    #[test]
    fn each_kind_of_hash_knows_its_password_and_no_other() {
        let known = [
            Password::Plain(b"secret".as_slice().into()),
            Password::Sha1("5en6G6MezRroT3XKqkdPOmY/BfQ=".into()),
            Password::Md5 {
                magic: "$apr1$",
                salt: "fairway1".into(),
                hash: "Hp4mVnZZE7Yw6IBbc9rNM0".into(),
            },
            Password::Bcrypt("$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a".into()),
            Password::ShaCrypt(
                "$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2".into(),
            ),
            Password::ShaCrypt("$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA".into()),
            Password::Des("abNANd1rDfiNc".into()),
        ];
        for password in &known {
            assert!(verify(password, b"secret"));
            for wrong in [&b"secres"[..], b"", b"secret!", b"secre"] {
                assert!(!verify(password, wrong));
            }
        }
    }
}
