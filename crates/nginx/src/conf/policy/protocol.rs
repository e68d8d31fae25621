//! `backend-protocol`, `proxy-http-version`: the last word of a location, where its requests go.

use super::super::location::At;
use super::super::tree::{lua, put, words};
use super::super::{Block, Word};
use super::raw;
use super::upstream_tls::To;
use model::Backend;
use model::policy::{HttpVersion, Protocol};

pub(in crate::conf) fn write(
    protocol: Protocol,
    version: HttpVersion,
    to: &To,
    at: &mut At<'_, '_>,
) {
    if *backend(at) == Backend::NotFound {
        // An error of nginx itself has the error_page of a snippet, an answer of the default backend has none.
        let nothing = if at.location.policy.errors.is_none() && leaves_answers(at) {
            "require(\"fairway.request\").nothing()"
        } else {
            "return ngx.exit(404)"
        };
        return at.block.open("content_by_lua_block", vec![], lua(nothing));
    }
    let block = &mut at.block;
    let http_version = match version {
        HttpVersion::Http10 => "1.0",
        HttpVersion::Http11 => "1.1",
    };
    match protocol {
        Protocol::Http => {
            put!(block, "proxy_http_version", http_version);
            put!(block, "proxy_pass", Word::from("http://").then(to.clear.clone()));
        }
        Protocol::Https => {
            put!(block, "proxy_http_version", http_version);
            put!(block, "proxy_pass", Word::from("https://").then(to.secure.clone()));
        }
        Protocol::AutoHttp => {
            put!(block, "proxy_http_version", http_version);
            let mut secure = Block::default();
            put!(secure, "set", "$fairway_to", to.secure.clone());
            put!(block, "set", "$fairway_to", to.clear.clone());
            block.open("if", words!["(", "$https", "=", "on", ")"], secure);
            put!(block, "proxy_pass", "$scheme://$fairway_to");
        }
        Protocol::Grpc => {
            put!(block, "grpc_pass", Word::from("grpc://").then(to.clear.clone()));
        }
        Protocol::Grpcs => {
            put!(block, "grpc_pass", Word::from("grpcs://").then(to.secure.clone()));
        }
        Protocol::Fcgi => put!(block, "fastcgi_pass", to.clear.clone()),
    }
}

/// Whether snippets have pages for errors, and none for answers of upstreams.
fn leaves_answers(at: &At<'_, '_>) -> bool {
    raw::has_word(at, "error_page") && !raw::has_word(at, "proxy_intercept_errors")
}

fn backend<'b>(at: &At<'_, 'b>) -> &'b Backend {
    &at.location.backend
}
