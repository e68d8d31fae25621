//! `custom-http-errors`, `default-backend`: who answers in place of errors (ngx_http_core_module, error_page).

use super::super::location::{At, LEAVE};
use super::super::tree::{lua, put, words};
use super::super::{Block, Word};
use super::client_certificate;
use model::DEFAULT_BACKEND;
use model::policy::Errors;

/// What an error backend is told about the error: name, value, and the variable of the client's own field.
const ABOUT: [(&str, &str, &str); 7] = [
    ("X-Code", "503", "$http_x_code"),
    ("X-Format", "$http_accept", "$http_x_format"),
    ("X-Namespace", "$namespace", "$http_x_namespace"),
    ("X-Ingress-Name", "$ingress_name", "$http_x_ingress_name"),
    ("X-Service-Name", "$service_name", "$http_x_service_name"),
    ("X-Service-Port", "$service_port", "$http_x_service_port"),
    // Told twice where somebody stands in, as the original does.
    ("X-Request-ID", "$req_id", ""),
];

pub(in crate::conf) fn write(policy: Option<&Errors>, at: &mut At<'_, '_>) {
    let Some(Errors { statuses, intercept, backend, of_all: _ }) = policy else { return };
    if *intercept {
        put!(at.block, "proxy_intercept_errors", true);
    }
    let backend = backend.as_ref().map_or(DEFAULT_BACKEND, |id| id.as_str());
    for status in statuses {
        let name = at.scope.environment.named(&match at.location.policy.cors {
            None => format!("{backend}_{status}"),
            Some(_) => format!("{backend}_{status}_{}", at.index),
        });
        put!(at.block, "error_page", *status, "=", Word::plain(&name));
        if at.beside.is_new(&name) {
            let page = page(backend, *status, at);
            at.beside.block.open("location", words![Word::plain(name)], page);
        }
    }
}

/// The same request, to `/` of the error backend; nginx speaks HTTP/1.0 here, as ingress-nginx sets no other version.
fn page(backend: &str, status: u16, at: &At<'_, '_>) -> Block {
    let mut page = Block::default();
    put!(page, "set", "$fairway_upstream", Word::literal(backend));
    put!(page, "set", "$fairway_error_fallback", DEFAULT_BACKEND);
    if let Some(cors) = &at.location.policy.cors {
        page.append(super::cors::of_answer(cors));
    }
    put!(page, "rewrite", "^", "/", "break");
    page.open("rewrite_by_lua_block", vec![], lua("require(\"fairway.error_page\").enter()"));
    if at.scope.environment.measures {
        page.open("log_by_lua_block", vec![], lua(LEAVE));
    }
    put!(page, "proxy_intercept_errors", false);
    put!(page, "client_max_body_size", 0_u8);
    for (name, value, _) in ABOUT {
        let value = if name == "X-Code" { Word::from(status) } else { Word::from(value) };
        put!(page, "proxy_set_header", name, value);
    }
    put!(page, "proxy_set_header", "X-Original-URI", "$request_uri");
    put!(page, "proxy_set_header", "X-Forwarded-For", "$remote_addr");
    put!(page, "proxy_set_header", "Host", "$fairway_host_of_client");
    put!(page, "proxy_set_header", "Proxy", "");
    for (name, _) in client_certificate::told(at.server) {
        put!(page, "proxy_set_header", name, "");
    }
    put!(page, "proxy_redirect", false);
    put!(page, "proxy_pass", "http://fairway");
    page
}

/// Where a `default-backend` stands in for an upstream without endpoints, it is told so; else a client's own fields of
/// these names travel as they are.
pub(in crate::conf) fn stand_in(at: &mut At<'_, '_>) {
    let mut maps = Block::default();
    for (name, value, own) in ABOUT {
        let variable = format!("$fairway_about_{}", name.to_ascii_lowercase().replace('-', "_"));
        let mut map = Block::default();
        map.entry("default".into(), words![own]);
        map.entry("1".into(), words![value]);
        maps.open("map", words!["$fairway_stands_in", Word::plain(&variable)], map);
        put!(at.block, "proxy_set_header", name, Word::plain(variable));
    }
    at.scope.declared.insert("what stands in".to_owned(), maps);
}
