//! A chunked body means the same in whatever pieces it arrives, and the same as to another strict reader.
#![no_main]

use hostile::message::{Read, read_request};
use libfuzzer_sys::fuzz_target;

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fuzz_target!(|bytes: &[u8]| {
    let [step, body @ ..] = bytes else { return };
    let whole = proxy::parsers::chunked(body, body.len());
    assert_eq!(proxy::parsers::chunked(body, 1), whole);
    assert_eq!(proxy::parsers::chunked(body, usize::from(*step)), whole);
    let message = [HEAD, body].concat();
    match (whole, read_request(&message)) {
        (Some((data, rest)), Read::Whole(request, used)) => {
            assert_eq!((data, rest.as_slice()), (request.body, &message[used..]));
        }
        // The other reader takes only plain extensions, and only trailers with a colon and clean bytes; those are
        // never forwarded as they are.
        (Some(_), Read::Illegal(why)) => {
            let extension = why.contains("chunk size line") && body.contains(&b';');
            assert!(
                extension || why.contains("field") || why.contains("control character"),
                "{why}"
            );
        }
        (Some((data, _)), Read::More { .. }) => panic!("{data:?} is whole for one reader only"),
        (None, _) => {}
    }
});
