//! `fastcgi-index` and `fastcgi-params-configmap`, and what every responder is told (nginx's `fastcgi_params`).

use super::super::Word;
use super::super::location::At;
use super::super::tree::put;
use super::client_certificate;
use model::policy::{FastCgi, Protocol};

/// nginx's `fastcgi_params`, in its order.
const PARAMS: [(&str, &str); 19] = [
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    // What the original was built with: nothing lies there, but applications were told.
    ("DOCUMENT_ROOT", "/usr/local/nginx/html"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/1.27.1"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
    ("REDIRECT_STATUS", "200"),
    // It would name a proxy to CGI programs (httpoxy).
    ("HTTP_PROXY", ""),
];

pub(in crate::conf) fn write(policy: &FastCgi, protocol: Protocol, at: &mut At<'_, '_>) {
    let FastCgi { index, params } = policy;
    if protocol != Protocol::Fcgi {
        return;
    }
    if let Some(index) = index {
        put!(at.block, "fastcgi_index", Word::literal(index));
    }
    for (name, value) in PARAMS {
        put!(at.block, "fastcgi_param", Word::from(name), Word::from(value));
    }
    put!(at.block, "fastcgi_param", "HTTPS", "$https", "if_not_empty");
    for (name, _) in client_certificate::told(at.server) {
        let name = format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
        put!(at.block, "fastcgi_param", Word::plain(name), "");
    }
    for (name, value) in params.iter() {
        put!(at.block, "fastcgi_param", Word::plain(name), Word::template(value));
    }
}
