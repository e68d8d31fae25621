//! What nginx refuses is refused here, with its place; what takes nginx says so.

use snippet::{Context, Kind, understand};

fn said(place: Context, text: &str) -> Vec<String> {
    let mistakes = understand(place, text).expect_err(text);
    mistakes.iter().map(ToString::to_string).collect()
}

/// Snippets that nginx refuses too, and how what is said begins.
const REFUSED: &[(Context, &str, &str)] = &[
    (
        Context::Http,
        "server { listen 8080;\n listen 8080; }",
        "line 2, column 2: the server listens here already",
    ),
    (
        Context::Http,
        "server { listen 8080 default_server; }\nserver { listen 8080 default; }",
        "line 2, column 10: the port has a default_server already",
    ),
    (
        Context::Server,
        "location ~ ^/a {\nproxy_pass http://upstream_balancer/b; }",
        "line 2, column 1: proxy_pass has no path in a location with an expression",
    ),
    (
        Context::Server,
        "location @a { proxy_pass http://upstream_balancer/; }",
        "line 1, column 15: proxy_pass has no path",
    ),
    (
        Context::Location,
        "if ($uri) { proxy_pass http://upstream_balancer/b; }",
        "line 1, column 13: proxy_pass has no path",
    ),
    (
        Context::Location,
        "limit_except GET { proxy_pass http://upstream_balancer/b; }",
        "line 1, column 20: proxy_pass has no path",
    ),
    (Context::Server, "http2 perhaps;", "line 1, column 7"),
    (Context::Server, "send_timeout 1s;\nsend_timeout 2s;", "line 2, column 1"),
    (
        Context::Location,
        "more_set_header \"X: 1\";",
        "line 1, column 1: unknown directive \"more_set_header\", did you mean \"more_set_headers\"?",
    ),
    (Context::Location, "a_word b;", "line 1, column 1: unknown directive \"a_word\""),
    (
        Context::Location,
        "proxy_set_header X $hots;",
        "line 1, column 20: unknown variable $hots, did you mean \"host\"?",
    ),
    (Context::Location, "proxy_set_header X ${1};", "line 1, column 20: unknown variable $1"),
    (Context::Location, "set $x $;", "line 1, column 8: a \"$\" without the name of a variable"),
    (
        Context::Location,
        "set $x ${a-b};",
        "line 1, column 8: the \"}\" that closes the variable \"a\" is missing",
    ),
    (
        Context::Location,
        "set x 1;",
        "line 1, column 5: \"x\" is no variable: it must begin with \"$\"",
    ),
    (
        Context::Location,
        "set $host x;",
        "line 1, column 5: $host is a variable of nginx that nobody may set",
    ),
    (
        Context::Location,
        "if ($uri ~ \"(?<host>.)\") { }",
        "line 1, column 12: $host is a variable of nginx that nobody may set",
    ),
    (
        Context::Location,
        "\nadd_header X;",
        "line 2, column 1: \"add_header\" takes 2 to 3 arguments, not 1",
    ),
    (
        Context::Location,
        "add_header X y z;",
        "line 1, column 16: \"z\" is no \"always\"; a value with blanks stands in quotes",
    ),
    (
        Context::Location,
        "allow 10.0.0.0/8\ndeny all;",
        "line 1, column 1: \"allow\" takes 1 argument, not 3; does a \";\" lack before \"deny\"?",
    ),
    (
        Context::Location,
        "allow 10.0.0.0/40;",
        "line 1, column 7: \"10.0.0.0/40\" is no address or network",
    ),
    (
        Context::Location,
        "if ($host) { if ($uri) { } }",
        "line 1, column 14: \"if\" is not allowed here: it stands in server, location",
    ),
    (
        Context::Location,
        "if ($host) { deny all; }",
        "line 1, column 14: \"deny\" is not allowed here: it stands in http, server, location, limit_except",
    ),
    (
        Context::Server,
        "if ($host) { add_header X 1; }",
        "line 1, column 14: \"add_header\" is not allowed here: it stands in http, server, location, if in location",
    ),
    (Context::Location, "if $host { }", "line 1, column 1: invalid condition \"$host\""),
    (
        Context::Location,
        "if ($host == a) { }",
        "line 1, column 11: unexpected \"==\" in a condition",
    ),
    (
        Context::Location,
        "if ($host = a b) { }",
        "line 1, column 5: invalid condition \"$host with 4 words\"",
    ),
    (Context::Location, "if (host = a) { }", "line 1, column 5: invalid condition \"host\""),
    (Context::Location, "if ($host) return 403;", "line 1, column 1: \"if\" has no \"{\""),
    (
        Context::Location,
        "return 200 a { }",
        "line 1, column 1: \"return\" ends in \";\", not in a block",
    ),
    (Context::Location, "return 100;", "line 1, column 8: a status below 200 ends no request"),
    (
        Context::Location,
        "error_page 404 =103 /x;",
        "line 1, column 16: a status below 200 ends no request",
    ),
    (Context::Location, "return abc;", "line 1, column 8: \"abc\" is no status, nor a URL"),
    (Context::Location, "return 1000;", "line 1, column 8: \"1000\" is no status, nor a URL"),
    (
        Context::Location,
        "rewrite ^/(a /b;",
        "line 1, column 9: the regular expression \"^/(a\" cannot be read",
    ),
    (
        Context::Location,
        "rewrite a /b once;",
        "line 1, column 14: \"once\" is no flag of a rewrite; last, break, redirect and permanent are",
    ),
    (
        Context::Location,
        "rewrite \"^/(?:(a|a)\\1?)*z\" /;",
        "line 1, column 9: the regular expression \"^/(?:(a|a)\\1?)*z\" takes too many steps",
    ),
    (
        Context::Location,
        "proxy_read_timeout 5s;\nproxy_read_timeout 6s;",
        "line 2, column 1: \"proxy_read_timeout\" is said twice",
    ),
    (
        Context::Location,
        "proxy_read_timeout 5 s;",
        "line 1, column 1: \"proxy_read_timeout\" takes 1 argument, not 2",
    ),
    (Context::Location, "proxy_read_timeout 5x;", "line 1, column 20: \"5x\" is no time"),
    (Context::Location, "proxy_read_timeout 1s1h;", "line 1, column 20: \"1s1h\" is no time"),
    (Context::Location, "proxy_buffer_size 16g;", "line 1, column 19: \"16g\" is no size"),
    (
        Context::Location,
        "proxy_buffering yes;",
        "line 1, column 17: \"yes\" is no \"on\" or \"off\"",
    ),
    (
        Context::Location,
        "error_page 200 /x;",
        "line 1, column 12: \"200\" is no status from 300 to 599",
    ),
    (
        Context::Location,
        "more_set_headers \": 1\";",
        "line 1, column 18: \": 1\" is no header such as \"Name: value\"",
    ),
    (
        Context::Http,
        "geo $a { ranges; 10.0.0.0-10.0.0.9 a; 10.0.0.5-10.0.0.12 b; }",
        "line 1, column 39: range \"10.0.0.5-10.0.0.12\" overlaps \"10.0.0.0-10.0.0.9\"",
    ),
    (Context::Location, "charset 'a b';", "line 1, column 9: \"a b\" is no name of a charset"),
    (
        Context::Location,
        "override_charset yes;",
        "line 1, column 18: \"yes\" is no \"on\" or \"off\"",
    ),
    (Context::Location, "limit_req burst=1;", "line 1, column 1: limit_req without zone="),
    (Context::Server, "listen 8080;", "line 1, column 1: listen: The port of a server"),
    (
        Context::Server,
        "internal;",
        "line 1, column 1: \"internal\" is not allowed here: it stands in location",
    ),
    (Context::Location, "internal; internal;", "line 1, column 11: \"internal\" is said twice"),
    // The location that asks the authenticator is internal by itself.
    (Context::Auth, "internal;", "line 1, column 1: \"internal\" is said twice"),
    (
        Context::Server,
        "location = /a { location = /a/b { } }",
        "line 1, column 17: \"location\" is not allowed here: no location may stand within an exact one",
    ),
    (
        Context::Server,
        "location /a { location /b { } }",
        "line 1, column 15: \"location\" is not allowed here: its path does not begin with that of the location around it",
    ),
    (
        Context::Location,
        "location @a { }",
        "line 1, column 1: \"location\" is not allowed here: a named location stands in a server",
    ),
    (
        Context::Server,
        "location /a { } location /a { }",
        "line 1, column 17: this location is there already",
    ),
    (
        Context::Server,
        "location ? /a { }",
        "line 1, column 10: \"?\" is no modifier of a location; =, ^~, ~ and ~* are",
    ),
    (
        Context::Http,
        "map $uri $x { a b; a c; }",
        "line 1, column 20: the key \"a\" is there already",
    ),
    (
        Context::Http,
        "map $uri $x { default b; default c; }",
        "line 1, column 26: \"default\" is said twice",
    ),
    (
        Context::Http,
        "map $uri $x { a; }",
        "line 1, column 15: a line of a map is a key and a value",
    ),
    (
        Context::Http,
        "limit_req_zone $host zone=a:1k rate=1r/s;",
        "line 1, column 22: zone \"a\" is too small: 32k at least",
    ),
    (
        Context::Http,
        "limit_req_zone $host zone=a:1m rate=1;",
        "line 1, column 32: \"rate=1\" is no rate such as rate=10r/s",
    ),
    (
        Context::Http,
        "split_clients $host $x { 60% a; 50% b; }",
        "line 1, column 33: the shares are more than 100%",
    ),
    (Context::Http, "server { return 200; }", "line 1, column 1: a server without \"listen\""),
    (Context::Main, "daemon off;", "line 1, column 1: daemon: How nginx's processes run."),
];

#[test]
fn each_mistake_is_said_with_line_and_column() {
    for &(place, text, expected) in REFUSED {
        let said = said(place, text);
        assert!(said[0].starts_with(expected), "{text}\n  {}\n  {expected}", said[0]);
        let kind = understand(place, text).expect_err(text)[0].kind;
        assert_eq!(kind, Kind::Refused, "{text}");
    }
}

#[test]
fn what_takes_nginx_says_so_and_what_to_do() {
    let cases = [
        (Context::Location, "if (-f $request_filename) { }", "line 1, column 5"),
        (Context::Location, "if (!-e $uri) { return 404; }", "line 1, column 5"),
        (Context::Location, "auth_request /auth;", "line 1, column 14"),
        (Context::Location, "proxy_set_header X $request_body;", "line 1, column 20"),
        (Context::Location, "proxy_pass https://198.51.100.1;", "line 1, column 12"),
        (Context::Location, "proxy_pass http://$host;", "line 1, column 12"),
        (Context::Location, "proxy_pass $target;", "line 1, column 12"),
        (
            Context::Server,
            "location /x { proxy_pass http://localhost:10246; }",
            "line 1, column 26",
        ),
        (
            Context::Server,
            "location /x { proxy_pass http://a.b.svc.cluster.local.evil.test; }",
            "line 1, column 26",
        ),
        (Context::Location, "content_by_lua 'ngx.say(1)';", "line 1, column 1"),
        (Context::Location, "js_content m.f;", "line 1, column 1"),
        (Context::Server, "location / { alias /etc/; }", "line 1, column 14"),
        (Context::Http, "upstream x { server 10.0.0.1; }", "line 1, column 1"),
        (Context::Http, "map $uri $x { include /etc/passwd; }", "line 1, column 15"),
        (Context::Main, "load_module x.so;", "line 1, column 1"),
    ];
    for (place, text, at) in cases {
        let text = match text.contains("$target") {
            true => format!("set $target x; {text}"),
            false => text.to_owned(),
        };
        let at = if text.contains("$target") { "line 1, column 27" } else { at };
        let mistakes = understand(place, &text).expect_err(&text);
        assert_eq!(mistakes[0].kind, Kind::NeedsNginx, "{text}: {}", mistakes[0]);
        assert!(mistakes[0].to_string().starts_with(at), "{text}: {}", mistakes[0]);
    }
}

#[test]
fn all_mistakes_are_said_up_to_a_bound() {
    let said =
        said(Context::Location, "nope 1;\nset $host 1;\nroot /x;\nmore_set_headers \"A: 1\";");
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(understand(Context::Location, &"nope 1;".repeat(100)).expect_err("nope").len(), 20);
}

#[test]
fn expressions_are_counted() {
    let text = "rewrite ^/a /b;".repeat(501);
    assert!(said(Context::Location, &text)[0].contains("more regular expressions"));
}

#[test]
fn headers_are_counted() {
    let some = |count| format!("more_set_headers {};", "X-A:1 ".repeat(count));
    assert!(understand(Context::Location, &some(500)).is_ok());
    let many = some(300) + "add_header A 1;" + &some(200);
    assert!(said(Context::Location, &many)[0].contains("more headers"));
}

/// To compare two names takes time by the product of their lengths.
#[test]
fn long_names_get_no_hint() {
    let long = "x".repeat(4_000);
    let declared: String = (0..8).map(|at| format!("set ${long}{at} 1;")).collect();
    let unknown: String = (0..8).map(|at| format!("set $a ${long}_{at};{long} 1;")).collect();
    let said = said(Context::Location, &(declared + &unknown));
    assert!(said.iter().all(|said| !said.contains("did you mean")), "{said:?}");
}

#[test]
fn a_block_list_of_words_works_with_what_it_allows() {
    // What is left where { } ' location root proxy_pass and the like may not be written.
    let text = "more_set_headers \"X-Frame-Options: DENY\";\nrewrite ^/a$ /b permanent;\nset $x 1;\nexpires 1d;";
    assert!(understand(Context::Location, text).is_ok());
}
