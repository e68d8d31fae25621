//! What is read of `auth-cache-duration` has statuses and means the same when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(durations) = translate::cache_durations(text) else { return };
    assert!(!durations.is_empty());
    let written: Vec<String> = durations
        .iter()
        .map(|duration| {
            let statuses: Vec<String> = duration.statuses.iter().map(u16::to_string).collect();
            format!("{} {}ms", statuses.join(" "), duration.time.as_millis())
        })
        .collect();
    assert_eq!(translate::cache_durations(&written.join(",")), Ok(durations));
});
