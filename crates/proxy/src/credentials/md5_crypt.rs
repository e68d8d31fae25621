//! `$1$` and `$apr1$`: a thousand rounds of MD5, as FreeBSD's crypt(3) and Apache's htpasswd have them.

use md5::{Digest, Md5};

/// Digits of all crypt(3) texts, six bits each.
pub(super) const DIGITS: &[u8; 64] =
    b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const ROUNDS: u32 = 1000;

/// The 22 characters that follow the salt.
pub(super) fn md5_crypt(magic: &str, salt: &str, password: &[u8]) -> String {
    let (magic, salt) = (magic.as_bytes(), salt.as_bytes());
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let inner: [u8; 16] = inner.finalize().into();
    let mut first = Md5::new().chain_update(password).chain_update(magic).chain_update(salt);
    for piece in password.chunks(inner.len()) {
        first.update(&inner[..piece.len()]);
    }
    let mut length = password.len();
    while length > 0 {
        // Since its first implementation a zero byte stands where the inner hash was meant.
        first.update(if length & 1 == 1 { &[0] } else { &password[..1] });
        length >>= 1;
    }
    let mut sum: [u8; 16] = first.finalize().into();
    for round in 0..ROUNDS {
        let odd = round & 1 == 1;
        let mut next = Md5::new().chain_update(if odd { password } else { &sum });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if odd { &sum } else { password });
        sum = next.finalize().into();
    }
    text(&sum)
}

fn text(sum: &[u8; 16]) -> String {
    let groups = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut out = String::with_capacity(22);
    for [high, middle, low] in groups {
        let bits = u32::from(sum[high]) << 16 | u32::from(sum[middle]) << 8 | u32::from(sum[low]);
        push(&mut out, bits, 4);
    }
    push(&mut out, u32::from(sum[11]), 2);
    out
}

fn push(out: &mut String, mut bits: u32, digits: u32) {
    for _ in 0..digits {
        out.push(char::from(DIGITS[(bits & 63) as usize]));
        bits >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::md5_crypt;

    #[test]
    fn hashes_are_those_of_openssl_passwd() {
        for (magic, salt, password, hash) in [
            ("$apr1$", "fairway1", "secret", "Hp4mVnZZE7Yw6IBbc9rNM0"),
            ("$1$", "saltsalt", "secret", "9xy1btjgzLYfb7hivXtC//"),
            ("$apr1$", "s", "", "e2aCb9PLCjZ2t55SoAxXn."),
            (
                "$1$",
                "abcd",
                "a much longer password than one block of MD5 holds",
                "HvKV3J/T4LiK7o4YOXeyP0",
            ),
        ] {
            assert_eq!(md5_crypt(magic, salt, password.as_bytes()), hash, "{password}");
        }
    }
}
