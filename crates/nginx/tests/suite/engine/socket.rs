//! What the ConfigMap says for all of `http` is for clients: the controller is heard at its socket whatever that is.

use crate::engine::bed::{PATIENCE, apply, backend, configuration, folder, free_port, get, start};
use engine::Engine;
use model::policy::{ModSecurity, RawGlobal};
use model::{Changes, Configuration, Global, Kind, Origin};
use std::sync::Arc;

fn with(mut next: Configuration, raw: RawGlobal) -> Configuration {
    let origin = Some(Origin::new(Kind::ConfigMap, "fairway", "settings"));
    let raw = Some(RawGlobal { origin, ..raw }.into());
    next.global = Arc::new(Global { raw, ..Global::clone(&next.global) });
    next
}

fn of_http(text: &str) -> RawGlobal {
    RawGlobal { http: Some(text.to_owned().into()), ..RawGlobal::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_guards_all_of_http_lets_the_controller_in() {
    let (folder, port, one, two) = (folder(), free_port(), backend("one"), backend("two"));
    let engine = start(&folder, port);
    let hosts = |to| [("a.test", to, None)];
    let ok = |name: &str| Some((200, name.to_owned()));
    for text in [
        "allow 127.0.0.1; deny all;",
        "satisfy any; allow 127.0.0.1; deny all; auth_basic x; auth_basic_user_file /nobody;",
        "limit_req_zone $server_addr zone=r:1m rate=1r/m; limit_req zone=r;\n\
         map $remote_addr $once { default \"\"; unix: 1; }\n\
         limit_req_zone $once zone=o:1m rate=1r/m; limit_req zone=o;",
        "limit_conn_zone $remote_addr zone=c:1m; limit_conn c 9;",
        "rewrite_by_lua_block { if ngx.var.remote_addr == \"unix:\" then ngx.exit(403) end }",
        "server_rewrite_by_lua_block { if ngx.var.remote_addr == \"unix:\" then ngx.exit(403) end }",
        "header_filter_by_lua_block { ngx.header[\"X-Generation\"] = nil }",
        "auth_request /nowhere;",
        "client_body_in_file_only on;",
        "client_body_in_file_only clean;",
        "more_clear_input_headers \"X-*\";",
        "more_set_input_headers \"X-After: 1\" \"X-Fairway-Secret: x\";",
        "more_set_input_headers \"Content-Length: 0\";",
        "more_clear_input_headers \"Content-*\" \"Transfer-*\";",
        "more_clear_headers \"X-*\" \"Content-*\";",
        "more_set_headers \"X-Generation: 1\";",
        "limit_rate 1;",
        "sub_filter_types *; sub_filter_once off; sub_filter 1 2; sub_filter 3 three; sub_filter 5 8;\n\
         sub_filter 7 9; sub_filter 0 zero;",
        "more_set_headers \"Content-Type: text/html\"; sub_filter_once off; sub_filter 1 2; sub_filter 2 3;\n\
         sub_filter 3 4; sub_filter 5 8; sub_filter 7 9; sub_filter 0 zero;",
        "charset_map a b { 31 32; 32 33; 33 34; 35 38; 37 39; 30 31; } source_charset a; charset b;\n\
         more_set_headers \"Content-Type: text/html\";",
        "more_set_headers \"Content-Length: 1\";",
    ] {
        let next = |to| with(configuration(&hosts(to)), of_http(text));
        assert!(apply(&engine, &next(one)).await.is_empty(), "{text}");
        // Endpoints come in by the socket, which all of it counted for.
        for to in [two, one] {
            assert!(apply(&engine, &next(to)).await.is_empty(), "{text}");
        }
        // All answers are cut by that, those to clients as well.
        let is_cut = text.contains("Content-Length: 1");
        assert_eq!(engine.connections().await.is_some(), !is_cut, "{text}");
        assert_eq!(engine.starts(), 1, "{text}");
    }
    assert!(apply(&engine, &configuration(&hosts(two))).await.is_empty());
    assert_eq!(get(port, "a.test"), ok("two"));
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_keeps_the_controller_out_is_gone_once_it_is_taken_away() {
    let (folder, port, one, two) = (folder(), free_port(), backend("one"), backend("two"));
    let engine = start(&folder, port);
    let hosts = |to| configuration(&[("a.test", to, None)]);
    // Answers that are longer than they are never end.
    let deaf = |to| with(hosts(to), of_http("more_set_headers \"Content-Length: 100\";"));
    assert!(apply(&engine, &deaf(one)).await.is_empty());
    let error = engine.apply(&deaf(two), &Changes::default()).await.expect_err("it is not heard");
    assert!(error.to_string().contains("was not answered"), "{error}");
    assert!(apply(&engine, &hosts(two)).await.is_empty());
    assert_eq!(get(port, "a.test"), Some((200, "two".to_owned())));
    assert_eq!(engine.starts(), 1);
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn core_rules_for_everybody_do_not_judge_the_controller() {
    let (folder, port, one, two) = (folder(), free_port(), backend("one"), backend("two"));
    let engine = start(&folder, port);
    let rules = "Include /etc/nginx/modsecurity.conf\nSecRuleEngine On\nSecAuditEngine Off";
    let modsecurity = ModSecurity {
        enabled: Some(true),
        core_rules: true,
        rules: Some(rules.to_owned().into()),
        transaction_id: None,
    };
    let raw = RawGlobal { modsecurity, ..RawGlobal::default() };
    let next = |to| with(configuration(&[("a.test", to, None)]), raw.clone());
    for to in [one, two, one] {
        assert!(apply(&engine, &next(to)).await.is_empty());
    }
    assert_eq!(engine.reloads(), 1, "endpoints need no reload");
    engine.drain(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_for_all_has_the_module_that_it_needs_whichever_ingresses_there_are() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    for (text, is_there) in [("# modsecurity is off", false), ("modsecurity off;", true)] {
        let next = with(configuration(&[("a.test", one, None)]), of_http(text));
        assert!(apply(&engine, &next).await.is_empty(), "{text}");
        let conf = std::fs::read_to_string(engine.environment().conf()).expect("nginx.conf");
        assert_eq!(conf.contains("ngx_http_modsecurity_module.so"), is_there, "{text}");
    }
    engine.drain(PATIENCE).await;
}
