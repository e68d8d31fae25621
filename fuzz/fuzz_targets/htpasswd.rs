//! A password file has users that its lines name, never more than it has lines; and every hash that is taken can be
//! compared with a password.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::policy::Password;
use translate::PasswordFile;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    for file in [PasswordFile::htpasswd(bytes), PasswordFile::htdigest(bytes, "R")] {
        assert!(file.users.0.len() + file.wrong.len() <= lines);
        for (user, known) in &file.users.0 {
            assert!(!user.is_empty() && !user.contains(&b':') && !user.contains(&b'\n'));
            match known {
                // They take long on purpose: far too long, and at most one of those that can be borne.
                Password::Bcrypt(_) | Password::ShaCrypt(_) => {}
                Password::Md5 { .. } | Password::Des(_) if lines > 1 => {}
                Password::Plain(plain) => assert!(proxy::parsers::is_password(known, plain)),
                known => {
                    proxy::parsers::is_password(known, user);
                }
            }
        }
    }
    let map = PasswordFile::map(&[("user".to_owned(), bytes.to_vec())].into());
    // Each further line of a value is one for another user.
    assert!((1..=lines).contains(&(map.users.0.len() + map.wrong.len())));
});
