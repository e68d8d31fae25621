//! Answers on their way to the client.

use super::row::{Fate, H, HSL, L, LIF, LMT, M, MANY, Row, S, fate, rows};
use crate::level::Levels;
use crate::read::answers::{
    access_log, charset, empty_gif, error_page, gzip_disable, gzip_proxied, status, stub_status,
    sub_filter,
};
use crate::read::words;

pub(super) static CORE: &[Row] = rows! { "ngx_http_core_module";
    "error_page", HSL | LIF, 2, MANY, add(answers.error_pages, error_page), "What is answered in place of an error: a path, @name, a URL; =code.";
    "recursive_error_pages", HSL, 1, 1, once(answers.recursive_error_pages, flag), "Whether errors of an error page have one too.";
    "default_type", HSL, 1, 1, once(answers.default_type, text), "The type of texts that are made here.";
    "etag", HSL, 1, 1, idle(answers.etag, flag), "There are no files; ETags of upstreams pass.";
    "absolute_redirect", HSL, 1, 1, once(answers.absolute_redirect, flag), "Whether redirects to paths name scheme and host.";
    "server_name_in_redirect", HSL, 1, 1, once(answers.server_name_in_redirect, flag), "Whether they name the server's first name in place of the Host.";
    "port_in_redirect", HSL, 1, 1, once(answers.port_in_redirect, flag), "Whether they name the port.";
    "chunked_transfer_encoding", HSL, 1, 1, idle(answers.chunked, flag), "HTTP/1.1 answers of unknown length are chunked.";
    "server_tokens", HSL, 1, 1, idle_whole(answers.server_tokens, status), "No page names a version; Server is a key of the ConfigMap: `server-tokens`.";
    "if_modified_since", HSL, 1, 1, no_effect(), "Conditions are the upstream's business.";
    "log_not_found", HSL, 1, 1, no_effect(), "There are no files.";
    "log_subrequest", HSL, 1, 1, no_effect(), "Questions to authenticators and mirrors are not in the access log.";
};

pub(super) static LOG: &[Row] = rows! { "ngx_http_log_module";
    "access_log", HSL | LIF | LMT, 1, MANY, with(access_log), "off: no line for these requests. Where lines go and what they say are keys of the ConfigMap.";
    "log_format", H, 2, MANY, no_effect(), "A key of the ConfigMap: `log-format-upstream`.";
    "open_log_file_cache", HSL, 1, 4, no_effect(), "There are no files.";
    "error_log", M | HSL, 1, MANY, no_effect(), "A key of the ConfigMap: `error-log-level`.";
};

pub(super) static SUB: &[Row] = rows! { "ngx_http_sub_module";
    "sub_filter", HSL, 2, 2, add(answers.sub_filters, sub_filter), "Replaces text in bodies.";
    "sub_filter_once", HSL, 1, 1, once(answers.sub_filter_once, flag), "Whether only the first time; on unless said.";
    "sub_filter_types", HSL, 1, MANY, whole(answers.sub_filter_types, words), "In which types, beside text/html.";
    "sub_filter_last_modified", HSL, 1, 1, once(answers.sub_filter_last_modified, flag), "Whether Last-Modified stays.";
};

pub(super) static GZIP: &[Row] = rows! { "ngx_http_gzip_module";
    "gzip", HSL | LIF, 1, 1, once(answers.gzip.enabled, flag), "Whether answers are compressed.";
    "gzip_types", HSL, 1, MANY, whole(answers.gzip.types, words), "Which types, beside text/html.";
    "gzip_min_length", HSL, 1, 1, once(answers.gzip.min_length, size), "From which length on.";
    "gzip_comp_level", HSL, 1, 1, once(answers.gzip.level, level), "How hard.";
    "gzip_vary", HSL, 1, 1, once(answers.gzip.vary, flag), "Whether Vary says so.";
    "gzip_proxied", HSL, 1, MANY, whole(answers.gzip.proxied, gzip_proxied), "Which requests with Via.";
    "gzip_disable", HSL, 1, MANY, whole(answers.gzip.disable, gzip_disable), "For which clients not.";
    "gzip_http_version", HSL, 1, 1, once(answers.gzip.http_1_1, http_version), "From which version on.";
    "gzip_buffers", HSL, 2, 2, no_effect(), "Memory of nginx.";
    "gzip_window", HSL, 1, 1, no_effect(), "Memory of nginx.";
    "gzip_hash", HSL, 1, 1, no_effect(), "Memory of nginx.";
    "gzip_no_buffer", HSL, 1, 1, no_effect(), "Answers stream.";
    "gzip_static", HSL, 1, 1, no_effect(), "There are no files.";
    "gunzip", HSL, 1, 1, off_only(), "Compressed answers are not unpacked.";
    "gunzip_buffers", HSL, 2, 2, no_effect(), "Memory of nginx.";
};

pub(super) static BROTLI: &[Row] = rows! { "ngx_http_brotli_filter_module";
    "brotli", HSL | LIF, 1, 1, once(answers.brotli.enabled, flag), "Whether answers are compressed.";
    "brotli_types", HSL, 1, MANY, whole(answers.brotli.types, words), "Which types, beside text/html.";
    "brotli_min_length", HSL, 1, 1, once(answers.brotli.min_length, size), "From which length on.";
    "brotli_comp_level", HSL, 1, 1, once(answers.brotli.level, level), "How hard; above 6 counts as 6.";
    "brotli_window", HSL, 1, 1, no_effect(), "Memory of nginx.";
    "brotli_buffers", HSL, 2, 2, no_effect(), "Memory of nginx.";
    "brotli_static", HSL, 1, 1, no_effect(), "There are no files.";
};

pub(super) static CHARSET: &[Row] = rows! { "ngx_http_charset_module";
    "charset", HSL | LIF, 1, 1, whole(answers.charset, charset), "Names the charset of texts in Content-Type, where they name none. `off`: none.";
    "source_charset", HSL | LIF, 1, 1, needs_nginx(), "Bodies are not recoded.";
    "override_charset", HSL | LIF, 1, 1, idle(answers.override_charset, flag), "An answer that names another charset keeps it, as in nginx without `charset_map`.";
    "charset_types", HSL, 1, MANY, whole(answers.charset_types, words), "Which types, beside text/html; `*` is any. Else plain text, XML, WML, RSS and application/javascript.";
    "charset_map", H, 2, 2, needs_nginx(), "Bodies are not recoded.";
};

pub(super) static SMALL: &[Row] = rows! { "ngx_http_stub_status_module, _empty_gif_";
    "stub_status", S | L, 0, 1, with(stub_status), "Counts of connections and requests, as text: from the start with `--enable-metrics`, else from when a snippet asks.";
    "empty_gif", L, 0, 0, with(empty_gif), "A transparent picture of one pixel.";
};
