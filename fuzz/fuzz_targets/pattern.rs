//! Whatever is written, a pattern keeps no more memory than it may and takes no more steps than there are; whether it
//! matches is the same if its groups are asked for; and what is checked as an alias is read as one, if it is small.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Alias;
use proxy::parsers::pattern;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let Ok(source) = str::from_utf8(parts.next().unwrap_or_default()) else { return };
    let text = parts.next().unwrap_or_default();
    if Alias::check(source).is_err() {
        assert!(Alias::parse(source).is_err());
    }
    let Some((size, matches, has_groups)) = pattern(source, text) else { return };
    assert!(size <= 192 << 10, "{size}");
    if let (Some(matches), Some(has_groups)) = (matches, has_groups) {
        assert_eq!(matches, has_groups);
    }
});
