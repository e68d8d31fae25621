//! Headers of answers, and of requests as upstreams see them.

use super::row::{Fate, HSL, LIF, MANY, Row, fate, rows};
use crate::level::Levels;
use crate::read::headers::{add_header, clear, clear_input, expires, set, set_input};

pub(super) static HEADERS: &[Row] = rows! { "ngx_http_headers_module";
    "add_header", HSL | LIF, 2, 3, some(headers.add, add_header), "Adds a header to answers with 200, 201, 204, 206, 301-304, 307, 308, or `always`. One of an inner level hides those of the outer one.";
    "add_trailer", HSL | LIF, 2, 3, some(headers.add_trailer, add_header), "Adds a trailer, for clients that take some (TE: trailers).";
    "expires", HSL | LIF, 1, 2, whole(headers.expires, expires), "Expires and Cache-Control: off, epoch, max, a time, modified, @daily, a variable.";
};

pub(super) static MORE: &[Row] = rows! { "ngx_http_headers_more_filter_module";
    "more_set_headers", HSL | LIF, 1, MANY, more(headers.more, set), "Sets headers of any answer; -s status, -t types, -a adds. Outer levels count too.";
    "more_clear_headers", HSL | LIF, 1, MANY, more(headers.more, clear), "Takes headers away, `X-*` by their beginning; -s, -t.";
    "more_set_input_headers", HSL | LIF, 1, MANY, more(headers.input, set_input), "Sets headers of the request; -r only those that are there, -t types.";
    "more_clear_input_headers", HSL | LIF, 1, MANY, more(headers.input, clear_input), "Takes headers of the request away.";
};
