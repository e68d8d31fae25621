//! What the strict reader takes and what it refuses.

use super::{Read, read_request, read_response};

fn request(text: &str) -> Read<super::Request> {
    read_request(text.as_bytes())
}

#[test]
fn a_canonical_request_has_no_blemish() {
    let text = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\nGET";
    let Read::Whole(request, used) = request(text) else { panic!("{:?}", request(text)) };
    assert_eq!((request.body.as_slice(), used), (b"abc".as_slice(), text.len() - 3));
    assert_eq!(request.blemishes, Vec::<String>::new());
    assert_eq!(request.trailers.len(), 1);
}

#[test]
fn legal_but_odd_requests_have_blemishes() {
    for text in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 03\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n000\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n",
    ] {
        let Read::Whole(request, used) = request(text) else {
            panic!("{text}: {:?}", request(text))
        };
        assert_eq!((request.blemishes.len(), used), (1, text.len()), "{text}");
    }
}

#[test]
fn what_two_readers_could_understand_differently_is_illegal() {
    for text in [
        "GET / HTTP/1.1\n",
        "GET / HTTP/1.1\r\nHost: a\n",
        "GET /a b HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\nx\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\nx\r\n0\r\n\r\n",
    ] {
        assert!(matches!(request(text), Read::Illegal(_)), "{text}: {:?}", request(text));
    }
}

#[test]
fn a_beginning_is_neither_whole_nor_illegal() {
    let text =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n";
    for end in 0..text.len() {
        assert!(matches!(request(&text[..end]), Read::More { .. }), "{end} bytes");
    }
}

#[test]
fn responses_are_read_by_the_rules_for_their_status() {
    let read = |text: &str, closed| read_response(text.as_bytes(), "GET", closed);
    let Read::Whole(found, _) =
        read("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false)
    else {
        panic!("a 304 has no body")
    };
    assert_eq!(found.body, b"");
    let until_close = "HTTP/1.0 200 OK\r\n\r\nabc";
    assert_eq!(read(until_close, false), Read::More { head: true });
    assert!(matches!(read(until_close, true), Read::Whole(..)));
    for text in [
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 20000 Big\r\n\r\n",
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n",
    ] {
        assert!(matches!(read(text, false), Read::Illegal(_)), "{text}");
    }
}
