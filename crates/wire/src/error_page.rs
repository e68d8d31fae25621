//! The pages that answer where no upstream does: those of nginx with `server_tokens off`.

use bytes::Bytes;
use http::StatusCode;

/// What nginx calls a header that is longer than allowed: its page is one of its own, and says 400.
const HEADER_TOO_LARGE: u16 = 494;

/// The status that stands for a header that is longer than allowed, until its page is made.
pub fn header_too_large() -> StatusCode {
    StatusCode::from_u16(HEADER_TOO_LARGE).expect("it has three digits")
}

/// The status that clients and logs are told.
pub fn shown_status(status: StatusCode) -> StatusCode {
    if status.as_u16() == HEADER_TOO_LARGE { StatusCode::BAD_REQUEST } else { status }
}

/// The page for `status`, byte for byte nginx's (ngx_http_special_response.c).
pub fn error_page(status: StatusCode) -> Bytes {
    if status.as_u16() == HEADER_TOO_LARGE {
        return Bytes::from_static(TOO_LARGE);
    }
    // As one copy: formatting took a tenth of what a 404 costs.
    let (code, reason) = (status.as_str(), title(status));
    let page = [
        "<html>\r\n<head><title>",
        code,
        " ",
        reason,
        "</title></head>\r\n<body>\r\n<center><h1>",
        code,
        " ",
        reason,
        "</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
    ];
    Bytes::from(page.concat())
}

/// nginx's page for HTTP in clear on a port for TLS (its status 497).
pub(super) fn plain_to_tls() -> Bytes {
    Bytes::from_static(
        b"<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>\r\n<body>\r\n\
          <center><h1>400 Bad Request</h1></center>\r\n\
          <center>The plain HTTP request was sent to HTTPS port</center>\r\n\
          <hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
    )
}

/// nginx's page for a header that is longer than allowed.
const TOO_LARGE: &[u8] =
    b"<html>\r\n<head><title>400 Request Header Or Cookie Too Large</title></head>\r\n<body>\r\n\
      <center><h1>400 Bad Request</h1></center>\r\n\
      <center>Request Header Or Cookie Too Large</center>\r\n\
      <hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";

/// What nginx's pages say beside the code.
fn title(status: StatusCode) -> &'static str {
    match status.as_u16() {
        302 => "Found",
        401 => "Authorization Required",
        405 => "Not Allowed",
        408 => "Request Time-out",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Large",
        416 => "Requested Range Not Satisfiable",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        _ => status.canonical_reason().unwrap_or_default(),
    }
}

/// The reason phrase nginx writes into status lines.
pub fn reason(status: StatusCode) -> &'static str {
    match status.as_u16() {
        302 => "Moved Temporarily",
        405 => "Not Allowed",
        408 => "Request Time-out",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Large",
        416 => "Requested Range Not Satisfiable",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        _ => status.canonical_reason().unwrap_or_default(),
    }
}
