//! A FastCGI answer means the same in whatever pieces it arrives, and a status that it has is one of an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::parsers::fastcgi_answer;

fuzz_target!(|bytes: &[u8]| {
    let [step, answer @ ..] = bytes else { return };
    let whole = fastcgi_answer(answer, answer.len());
    assert_eq!(fastcgi_answer(answer, 1), whole);
    assert_eq!(fastcgi_answer(answer, usize::from(*step)), whole);
    if let Some((Some(status), _)) = whole {
        assert!((200..1000).contains(&status), "{status}");
    }
});
