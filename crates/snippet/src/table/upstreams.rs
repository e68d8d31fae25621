//! How upstreams are spoken to.

use super::row::{Fate, HSL, L, LIF, LMT, MANY, Row, fate, rows};
use crate::level::Levels;
use crate::read::client::upstream_tls_versions;
use crate::read::upstreams::{
    buffers, cookie_domain, cookie_flags, cookie_path, fastcgi_param, grpc_pass, hidden, ignored,
    next_upstream, pass_header, proxy_pass, proxy_redirect, set_header, split_path, template,
};

/// What all protocols have, under the beginning of their names.
macro_rules! transfer {
    ($module:literal, $start:literal, $part:ident) => {
        rows! { $module;
            concat!($start, "_connect_timeout"), HSL, 1, 1, once($part.connect_timeout, duration), "How long a connection may take.";
            concat!($start, "_read_timeout"), HSL, 1, 1, once($part.read_timeout, duration), "How long an answer may pause.";
            concat!($start, "_send_timeout"), HSL, 1, 1, once($part.send_timeout, duration), "How long a request may pause.";
            concat!($start, "_next_upstream"), HSL, 1, MANY, whole($part.next_upstream, next_upstream), "When another endpoint is tried.";
            concat!($start, "_next_upstream_tries"), HSL, 1, 1, once($part.next_upstream_tries, number), "How many are tried.";
            concat!($start, "_next_upstream_timeout"), HSL, 1, 1, once($part.next_upstream_timeout, duration), "How long others are tried.";
            concat!($start, "_buffer_size"), HSL, 1, 1, once($part.buffer_size, size), "How large the head of an answer may be.";
            concat!($start, "_intercept_errors"), HSL, 1, 1, once($part.intercept_errors, flag), "Whether `error_page` counts for answers of upstreams.";
            concat!($start, "_hide_header"), HSL, 1, 1, add($part.hide_headers, hidden), "A header of the upstream that clients do not see.";
            concat!($start, "_pass_header"), HSL, 1, 1, add($part.pass_headers, pass_header), "A header that they see although it is hidden.";
            concat!($start, "_ignore_headers"), HSL, 1, MANY, whole($part.ignore_headers, ignored), "X-Accel-… and others that are not obeyed.";
            concat!($start, "_socket_keepalive"), HSL, 1, 1, idle($part.socket_keepalive, flag), "Idle connections are watched here.";
            concat!($start, "_bind"), HSL, 1, 2, no_effect(), "The kernel chooses the address.";
        }
    };
}

/// What HTTP and gRPC have.
macro_rules! tls {
    ($module:literal, $start:literal, $part:ident; $($more:tt)*) => {
        rows! { $module;
            concat!($start, "_ssl_server_name"), HSL, 1, 1, once($part.tls.server_name, flag), "Whether the upstream is told a name.";
            concat!($start, "_ssl_name"), HSL, 1, 1, whole($part.tls.name, template), "Which.";
            concat!($start, "_ssl_verify"), HSL, 1, 1, once($part.tls.verify, flag), "Whether its certificate must be good; the authorities are those of `proxy-ssl-secret`.";
            concat!($start, "_ssl_verify_depth"), HSL, 1, 1, once($part.tls.verify_depth, number), "How many authorities deep.";
            concat!($start, "_ssl_protocols"), HSL, 1, MANY, whole($part.tls.protocols, upstream_tls_versions), "Versions of TLS; TLSv1.2 or TLSv1.3 must be among them.";
            concat!($start, "_ssl_ciphers"), HSL, 1, 1, once($part.tls.ciphers, text), "Suites.";
            concat!($start, "_ssl_session_reuse"), HSL, 1, 1, idle($part.tls.session_reuse, flag), "Sessions are resumed where the upstream does.";
            concat!($start, "_ssl_certificate"), HSL, 1, 1, needs_nginx(), "There are no files: use `proxy-ssl-secret`.";
            concat!($start, "_ssl_certificate_key"), HSL, 1, 1, needs_nginx(), "There are no files: use `proxy-ssl-secret`.";
            concat!($start, "_ssl_trusted_certificate"), HSL, 1, 1, needs_nginx(), "There are no files: use `proxy-ssl-secret`.";
            concat!($start, "_ssl_crl"), HSL, 1, 1, needs_nginx(), "There are no files.";
            concat!($start, "_ssl_password_file"), HSL, 1, 1, needs_nginx(), "There are no files.";
            concat!($start, "_ssl_conf_command"), HSL, 2, 2, needs_nginx(), "Commands of OpenSSL.";
            $($more)*
        }
    };
}

/// What HTTP and FastCGI have, whose answers are buffered.
macro_rules! buffered {
    ($module:literal, $start:literal, $part:ident; $($more:tt)*) => {
        rows! { $module;
            concat!($start, "_buffering"), HSL, 1, 1, once($part.buffering, flag), "Whether answers are read ahead of slow clients.";
            concat!($start, "_request_buffering"), HSL, 1, 1, once($part.request_buffering, flag), "Whether bodies are read whole before the upstream gets them.";
            concat!($start, "_buffers"), HSL, 2, 2, whole($part.buffers, buffers), "How much of an answer is read ahead.";
            concat!($start, "_busy_buffers_size"), HSL, 1, 1, no_effect(), "One buffer serves both sides.";
            concat!($start, "_limit_rate"), HSL, 1, 1, idle($part.limit_rate, size), "Upstreams are read as fast as clients take it: `limit_rate`.";
            concat!($start, "_pass_request_body"), HSL, 1, 1, once($part.pass_request_body, flag), "Whether the upstream gets the body.";
            concat!($start, "_pass_request_headers"), HSL, 1, 1, once($part.pass_request_headers, flag), "Whether it gets the client's headers.";
            concat!($start, "_ignore_client_abort"), HSL, 1, 1, idle($part.ignore_client_abort, flag), "Upstreams are let go of when the client is gone.";
            concat!($start, "_force_ranges"), HSL, 1, 1, idle($part.force_ranges, flag), "Ranges are the upstream's business.";
            concat!($start, "_max_temp_file_size"), HSL, 1, 1, no_effect(), "Answers are not written to files.";
            concat!($start, "_temp_file_write_size"), HSL, 1, 1, no_effect(), "Answers are not written to files.";
            concat!($start, "_temp_path"), HSL, 1, 4, no_effect(), "Answers are not written to files.";
            concat!($start, "_store"), HSL, 1, 1, off_only(), "There are no files.";
            concat!($start, "_store_access"), HSL, 1, 3, needs_nginx(), "There are no files.";
            $($more)*
        }
    };
}

pub(super) static PROXY: &[Row] = transfer!("ngx_http_proxy_module", "proxy", proxy);
pub(super) static GRPC: &[Row] = transfer!("ngx_http_grpc_module", "grpc", grpc);
pub(super) static FASTCGI: &[Row] = transfer!("ngx_http_fastcgi_module", "fastcgi", fastcgi);

pub(super) static PROXY_BUFFERS: &[Row] = buffered! { "ngx_http_proxy_module", "proxy", proxy;
    "proxy_pass", L | LIF | LMT, 1, 1, with(proxy_pass), "http://upstream_balancer, or a Service by its name in the cluster. Any other address needs nginx: whoever writes a snippet could reach what only the controller reaches.";
    "proxy_set_header", HSL, 2, 2, some(headers.proxy_set, set_header), "A header for upstreams, in place of the controller's own of that name; empty takes it away.";
    "proxy_method", HSL, 1, 1, whole(proxy.method, template), "The method that upstreams see; the client's where the text is none.";
    "proxy_set_body", HSL, 1, 1, whole(proxy.set_body, template), "The body that upstreams see.";
    "proxy_http_version", HSL, 1, 1, once(proxy.http_1_1, http_version), "1.0 or 1.1.";
    "proxy_redirect", HSL, 1, 2, with(proxy_redirect), "Location and Refresh of upstreams: off, default, from and to.";
    "proxy_cookie_domain", HSL, 1, 2, with(cookie_domain), "The Domain of cookies.";
    "proxy_cookie_path", HSL, 1, 2, with(cookie_path), "The Path of cookies.";
    "proxy_cookie_flags", HSL, 1, 4, with(cookie_flags), "Secure, HttpOnly, SameSite of cookies.";
    "proxy_headers_hash_max_size", HSL, 1, 1, no_effect(), "Tables grow as needed.";
    "proxy_headers_hash_bucket_size", HSL, 1, 1, no_effect(), "Tables grow as needed.";
    "proxy_send_lowat", HSL, 1, 1, no_effect(), "The kernel decides.";
};

pub(super) static PROXY_TLS: &[Row] = tls! { "ngx_http_proxy_module", "proxy", proxy; };

pub(super) static GRPC_ONLY: &[Row] = tls! { "ngx_http_grpc_module", "grpc", grpc;
    "grpc_pass", L | LIF, 1, 1, with(grpc_pass), "grpc://upstream_balancer, or a Service by its name in the cluster; see proxy_pass.";
    "grpc_set_header", HSL, 2, 2, some(headers.grpc_set, set_header), "A header for gRPC upstreams; empty takes it away.";
};

pub(super) static FASTCGI_ONLY: &[Row] = buffered! { "ngx_http_fastcgi_module", "fastcgi", fastcgi;
    "fastcgi_pass", L | LIF, 1, 1, needs_nginx(), "Use `backend-protocol: FCGI`.";
    "fastcgi_param", HSL, 2, 3, add(headers.fastcgi_params, fastcgi_param), "A parameter for FastCGI upstreams.";
    "fastcgi_index", HSL, 1, 1, once(fastcgi.index, text), "The name that paths with a slash at the end get.";
    "fastcgi_split_path_info", HSL, 1, 1, whole(fastcgi.split_path_info, split_path), "Divides the path in script and rest.";
    "fastcgi_keep_conn", HSL, 1, 1, no_effect(), "A connection serves one request.";
    "fastcgi_catch_stderr", HSL, 1, 1, no_effect(), "What responders say on stderr is logged.";
    "fastcgi_send_lowat", HSL, 1, 1, no_effect(), "The kernel decides.";
};
