//! Typed values of directives, and how levels inherit them.

use snippet::typed::{
    AccessRule, AuthBasic, ClientAddress, ErrorCode, ErrorTarget, Expires, HeaderPattern, Inherit,
    InputAction, LocationKind, MoreAction, PassTarget, Rate, RequestDelay, Scope, Settings, Task,
    Template,
};
use snippet::{Context, Meaning, Names, Snippet, understand};
use std::sync::Arc;
use std::time::Duration;

fn meaning(place: Context, text: &str) -> Meaning {
    understand(place, text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

fn settings(text: &str) -> Settings {
    meaning(Context::Location, text).scope.settings
}

fn server(text: &str) -> Scope {
    meaning(Context::Server, text).scope
}

fn literal(template: &Template) -> &str {
    template.literal().expect("text without variables")
}

#[test]
fn headers_more_has_options_and_patterns() {
    let more = settings(
        "more_set_headers -s '404 410' -t 'Text/HTML' 'X-A: b: c' X-Gone;
         more_set_headers -a 'Set-Cookie: x=1';
         more_clear_headers 'X-Hidden-*' Server;",
    );
    let more = more.headers.more.0;
    assert_eq!(more.len(), 5);
    assert!(
        matches!(&more[0].action, MoreAction::Set(name, value) if name == "X-A" && literal(value) == "b: c")
    );
    assert_eq!(
        (&*more[0].statuses, &*more[0].types),
        ([404, 410].as_slice(), ["text/html".to_owned()].as_slice())
    );
    // Held once, however many headers there are.
    assert!(Arc::ptr_eq(&more[0].types, &more[1].types));
    assert!(Arc::ptr_eq(&more[0].statuses, &more[1].statuses));
    assert!(matches!(&more[1].action, MoreAction::Clear(pattern) if pattern.name == "x-gone"));
    assert!(matches!(&more[2].action, MoreAction::Append(name, _) if name == "Set-Cookie"));
    let MoreAction::Clear(pattern) = &more[3].action else { panic!("{:?}", more[3]) };
    assert_eq!(*pattern, HeaderPattern { name: "x-hidden-".to_owned(), wildcard: true });
    assert!(pattern.matches("X-HIDDEN-b") && !pattern.matches("X-Hidde"));
    assert!(
        matches!(&more[4].action, MoreAction::Clear(pattern) if pattern.matches("server") && !pattern.matches("Server2"))
    );
    let input =
        settings("more_set_input_headers -r 'X-A: $host' 'X-B:'; more_clear_input_headers 'X-*';")
            .headers
            .input
            .0;
    assert!(matches!(&input[0].action, InputAction::Replace(name, _) if name == "X-A"));
    assert!(matches!(&input[1].action, InputAction::Clear(pattern) if pattern.name == "x-b"));
    assert!(matches!(&input[2].action, InputAction::Clear(pattern) if pattern.wildcard));
}

#[test]
fn a_header_that_nobody_takes_is_noted_and_left_out() {
    let meaning = meaning(
        Context::Location,
        "add_header X-A: 1; proxy_set_header \"X B\" 1; more_set_headers \"X C: 1\" \"X-D: 1\";",
    );
    let headers = meaning.scope.settings.headers;
    assert_eq!((headers.add.len(), headers.proxy_set.len(), headers.more.0.len()), (0, 0, 1));
    assert_eq!(meaning.notes.len(), 3);
}

#[test]
fn a_header_over_several_lines_is_one_line() {
    let headers = settings("add_header X-A \"\n  a;\n\n  b;\n\" always;").headers;
    assert_eq!((literal(&headers.add[0].value), headers.add[0].always), ("a; b;", true));
}

#[test]
fn times_and_sizes_have_nginxs_units() {
    let text = "proxy_read_timeout 1h30m; proxy_send_timeout 60; proxy_connect_timeout 500ms; proxy_buffer_size 16k;
        client_max_body_size 5g; proxy_buffers 8 32k; keepalive_timeout 1m 30s;";
    let found = settings(text);
    assert_eq!(found.proxy.read_timeout, Some(Duration::from_secs(5400)));
    assert_eq!(found.proxy.send_timeout, Some(Duration::from_secs(60)));
    assert_eq!(found.proxy.connect_timeout, Some(Duration::from_millis(500)));
    assert_eq!(found.proxy.buffer_size, Some(16 << 10));
    assert_eq!(found.client.max_body_size, Some(5 << 30));
    assert_eq!(found.proxy.buffers, Some((8, 32 << 10)));
    assert_eq!(found.client.keepalive_timeout, Some(Duration::from_secs(60)));
    assert_eq!(found.grpc.read_timeout, None, "protocols have settings of their own");
}

#[test]
fn expires_has_all_its_forms() {
    let cases = [
        ("30d", Expires::After(30 * 86_400)),
        ("-1", Expires::After(-1)),
        ("epoch", Expires::Epoch),
        ("max", Expires::Max),
        ("off", Expires::Off),
        ("@15h30m", Expires::Daily(Duration::from_secs(55_800))),
        ("modified +24h", Expires::Modified(86_400)),
    ];
    for (text, expected) in cases {
        assert_eq!(settings(&format!("expires {text};")).headers.expires, Some(expected), "{text}");
    }
    assert!(matches!(
        settings("expires $arg_e;").headers.expires,
        Some(Expires::Variable { modified: false, .. })
    ));
    assert!(understand(Context::Location, "expires modified @1h;").is_err());
}

#[test]
fn guards_are_values() {
    let text = "satisfy any; allow 10.1.2.3/8; allow unix:; deny all; auth_basic off; auth_request off;
        limit_req zone=a burst=5 nodelay; limit_req zone=b burst=9 delay=3; limit_conn c 7; limit_req_status 429;
        limit_except GET POST { deny all; }";
    let scope = meaning(Context::Location, text).scope;
    let found = &scope.settings;
    let network = |text: &str| ClientAddress::Network(text.parse().expect("a network"));
    let rule = |allow, whom| AccessRule { allow, whom };
    let expected = [
        rule(true, network("10.0.0.0/8")),
        rule(true, ClientAddress::Unix),
        rule(false, ClientAddress::All),
    ];
    assert_eq!(found.access.rules, expected);
    assert_eq!(
        (found.access.auth_basic.clone(), found.access.auth_request_off),
        (Some(AuthBasic::Off), Some(true))
    );
    assert_eq!(
        (found.limits.requests[0].burst, found.limits.requests[0].delay),
        (5, RequestDelay::Never)
    );
    assert_eq!(found.limits.requests[1].delay, RequestDelay::Beyond(3));
    assert_eq!((found.limits.connections[0].most, found.limits.request_status), (7, Some(429)));
    let except = scope.limit_except.first().expect("limit_except");
    assert_eq!(except.methods, ["GET", "POST", "HEAD"]);
    assert_eq!(except.settings.access.rules, [rule(false, ClientAddress::All)]);
}

#[test]
fn error_pages_have_codes_and_targets() {
    let pages = settings(
        "error_page 502 503 =200 /sorry?x=$uri; error_page 404 = @missing; error_page 401 https://a.test/;",
    );
    let pages = pages.answers.error_pages;
    assert_eq!(
        (pages[0].statuses.as_slice(), pages[0].code),
        ([502, 503].as_slice(), ErrorCode::Code(200))
    );
    assert!(matches!(&pages[0].target, ErrorTarget::Path(_)));
    assert_eq!(
        (pages[1].code, &pages[1].target),
        (ErrorCode::OfTarget, &ErrorTarget::Named("@missing".to_owned()))
    );
    assert!(matches!((&pages[2].code, &pages[2].target), (ErrorCode::Same, ErrorTarget::Url(_))));
}

#[test]
fn locations_are_of_every_kind() {
    let scope = server(
        "location = /a { } location /b { } location ^~ /c { internal; } location ~ \\.d$ { } location ~*\\.e$ { } location @f { }",
    );
    let prefix =
        |path: &str, final_prefix| LocationKind::Prefix { path: path.to_owned(), final_prefix };
    let kinds: Vec<&LocationKind> = scope.locations.iter().map(|location| &location.kind).collect();
    assert_eq!(kinds[0], &LocationKind::Exact("/a".to_owned()));
    assert_eq!((kinds[1], kinds[2]), (&prefix("/b", false), &prefix("/c", true)));
    assert!(matches!(kinds[3], LocationKind::Regex(regex) if !regex.pattern.ignores_case()));
    assert!(
        matches!(kinds[4], LocationKind::Regex(regex) if regex.pattern.ignores_case() && regex.pattern.source() == "\\.e$")
    );
    assert_eq!(kinds[5], &LocationKind::Named("@f".to_owned()));
    assert!(scope.locations[2].scope.internal && !scope.locations[1].scope.internal);
}

#[test]
fn requests_are_passed_to_kubernetes_only() {
    let pass = |text: &str| {
        let scope = server(&format!("location /x {{ {text} }}"));
        scope.locations[0].scope.settings.pass.clone().expect("a pass")
    };
    assert_eq!(pass("proxy_pass http://upstream_balancer;").target, PassTarget::Balancer);
    let service =
        |port| PassTarget::Service { namespace: "demo".to_owned(), name: "a-b".to_owned(), port };
    assert_eq!(pass("proxy_pass https://a-b.demo.svc;").target, service(443));
    let with_path = pass("proxy_pass http://a-b.demo.svc.cluster.local:8080/y/;");
    assert_eq!(
        (with_path.target, with_path.path.as_ref().map(literal)),
        (service(8080), Some("/y/"))
    );
    assert!(pass("grpc_pass grpcs://upstream_balancer;").tls);
}

#[test]
fn the_http_level_has_zones_tables_and_servers() {
    let http = meaning(
        Context::Http,
        "limit_req_zone $binary_remote_addr zone=a:10m rate=30r/m;
         limit_conn_zone $server_name zone=b:64k;
         server { listen 127.0.0.1:2443 default_server; listen [::]:2444; server_name a.test ~^b; return 308 https://$host$request_uri; }
         set_real_ip_from 10.0.0.0/8;",
    )
    .http;
    assert_eq!(
        (http.request_zones[0].rate, http.request_zones[0].size),
        (Rate { requests: 30, per_minute: true }, 10 << 20)
    );
    assert_eq!(
        (http.connection_zones[0].name.as_str(), http.connection_zones[0].size),
        ("b", 64 << 10)
    );
    let server = &http.servers[0];
    assert_eq!(
        (server.listens[0].port, server.listens[0].default_server, server.listens[1].address),
        (2443, true, Some(std::net::Ipv6Addr::UNSPECIFIED.into()))
    );
    assert_eq!((server.names.len(), server.scope.program.steps.len()), (2, 1));
    assert_eq!(http.settings.real_ip.trusted.len(), 1);
}

#[test]
fn an_inner_level_replaces_lists_and_values_and_stacks_headers_more() {
    let outer = settings(
        "add_header X-A 1; add_header X-B 1; more_set_headers \"X-M: outer\"; proxy_read_timeout 5s; allow all; proxy_hide_header X-H;",
    );
    let mut inner =
        settings("add_header X-C 1; more_set_headers \"X-M: inner\"; proxy_send_timeout 6s;");
    inner.inherit(&outer);
    assert_eq!(inner.headers.add.len(), 1, "one add_header hides those around");
    let values: Vec<String> = inner
        .headers
        .more
        .0
        .iter()
        .map(|header| match &header.action {
            MoreAction::Set(_, value) => value.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values, ["outer", "inner"], "the inner level has the last word");
    assert_eq!(inner.proxy.read_timeout, Some(Duration::from_secs(5)));
    assert_eq!(inner.proxy.send_timeout, Some(Duration::from_secs(6)));
    assert_eq!((inner.access.rules.len(), inner.proxy.hide_headers.len()), (1, 1));
}

#[test]
fn two_texts_for_one_level_are_one_level() {
    let mut global = meaning(
        Context::Location,
        "set $a 1; if ($a) { add_header X 1; } more_set_headers \"X-G: 1\";",
    )
    .scope;
    let own = meaning(
        Context::Location,
        "if ($host) { add_header X 2; } add_header Y 3; proxy_read_timeout 9s;",
    )
    .scope;
    global.join(&own);
    assert_eq!((global.program.steps.len(), global.branches.len()), (3, 2));
    let last = format!("{:?}", global.program.steps[2]);
    assert!(last.contains("branch: Some(1)"), "{last}");
    assert_eq!((global.settings.headers.add.len(), global.settings.headers.more.0.len()), (1, 1));
    assert_eq!(global.settings.proxy.read_timeout, Some(Duration::from_secs(9)));
}

#[test]
fn a_meaning_can_be_written_as_json_and_is_small() {
    let http =
        meaning(Context::Http, "map $host $x { hostnames; .a b; ~c d; } geo $y { 10.0.0.0/8 1; }")
            .http;
    let text = serde_json::to_string(&http).expect("JSON");
    assert!(text.contains("10.0.0.0/8"), "{text}");
    let scope = server("location ~ ^/(?<a>.) { if ($a) { expires 1d; } return 200 $a; }");
    assert!(serde_json::to_string(&scope).expect("JSON").contains("${a}"));
    assert!(size_of::<Settings>() < 4096, "{} bytes for each level", size_of::<Settings>());
}

#[test]
fn what_has_no_effect_is_said() {
    let notes =
        meaning(Context::Server, "tcp_nodelay on;\nserver_name _;\naccess_log /dev/stdout;").notes;
    let said: Vec<(u32, &str)> =
        notes.iter().map(|note| (note.at.line, note.directive.as_str())).collect();
    assert_eq!(said, [(1, "tcp_nodelay"), (2, "server_name"), (3, "access_log")]);
}

#[test]
fn what_takes_nginx_takes_none_where_it_is_switched_off() {
    let off = "proxy_buffering off; proxy_cache off; modsecurity off; opentelemetry off; mirror off; gunzip off;
        ssi off; userid off; slice 0; autoindex off; proxy_store off; index index.html;";
    assert_eq!(meaning(Context::Location, off).notes.len(), 11);
    assert_eq!(meaning(Context::Server, "ssl_verify_client off;").notes.len(), 1);
    for on in ["proxy_cache mine;", "modsecurity on;", "slice 1m;", "mirror /copy;"] {
        let mistakes = understand(Context::Location, on).expect_err(on);
        assert!(mistakes[0].to_string().contains("nginx"), "{}", mistakes[0]);
    }
}

#[test]
fn what_is_read_and_means_nothing_is_said_too() {
    let silent = "etag off; server_tokens off; chunked_transfer_encoding off; send_timeout 5s; http2 off; \
                  proxy_limit_rate 1k; proxy_ignore_client_abort on; proxy_force_ranges on; \
                  grpc_socket_keepalive on; proxy_ssl_session_reuse off; merge_slashes off;";
    assert_eq!(meaning(Context::Server, silent).notes.len(), 11);
    let heard =
        "keepalive_timeout 5s; client_body_timeout 3s; gzip_proxied any; fastcgi_index a.php;";
    assert!(meaning(Context::Server, heard).notes.is_empty());
}

#[test]
fn what_nginx_heeds_is_told_apart_from_what_it_does_anyway() {
    let heeded = |place, text| -> Vec<(String, bool)> {
        let notes = meaning(place, text).notes;
        notes.into_iter().map(|note| (note.directive, note.is_heeded_there)).collect()
    };
    let there = "server_name a.test; merge_slashes off; send_timeout 5m; ssl_ciphers HIGH;
        ssl_reject_handshake on; proxy_ignore_client_abort on; proxy_set_header Content-Length 5;";
    let told = heeded(Context::Server, there);
    assert!(told.len() == 7 && told.iter().all(|(_, is_heeded)| *is_heeded), "{told:?}");
    let alike = "merge_slashes on; send_timeout 60s; ssl_reject_handshake off; tcp_nodelay on; \
        ssl_protocols TLSv1.3; etag off; proxy_ignore_client_abort OFF;";
    let told = heeded(Context::Server, alike);
    assert!(told.len() == 7 && told.iter().all(|(_, is_heeded)| !is_heeded), "{told:?}");
    assert_eq!(heeded(Context::Http, "ssl_protocols TLSv1.3;"), [("ssl_protocols".into(), true)]);
    let asked = heeded(Context::Auth, "proxy_method POST; limit_rate 1k;");
    assert_eq!(asked, [("proxy_method".into(), true), ("limit_rate".into(), false)]);
}

#[test]
fn what_an_authenticator_is_asked_without_is_said() {
    let silent =
        "proxy_method POST; proxy_set_body x; more_set_input_headers 'X-K: v'; error_page 500 /x;
        limit_except GET { deny all; } if ($arg_a) { set $b 1; limit_rate 1k; } etag off;";
    let notes = meaning(Context::Auth, silent).notes;
    let mut said: Vec<_> = notes.iter().map(|note| note.directive.as_str()).collect();
    said.sort_unstable();
    let expected = [
        "error_page",
        "etag",
        "limit_except",
        "limit_rate",
        "more_set_input_headers",
        "proxy_method",
        "proxy_set_body",
    ];
    assert_eq!(said, expected);
    let heard = "proxy_set_header X-A 1; proxy_pass_request_headers off; proxy_read_timeout 1s;
        if ($arg_a) { return 200; } set $b 1;";
    assert_eq!(meaning(Context::Auth, heard).notes, []);
    assert_eq!(meaning(Context::Location, "proxy_method POST;").notes, []);
}

#[test]
fn headers_that_are_never_a_snippets_to_say_are_noted() {
    let notes = |text| meaning(Context::Location, text).notes.len();
    for text in [
        "proxy_set_header Content-Length 5;",
        "proxy_set_header Transfer-Encoding chunked;",
        "proxy_set_header Upgrade h2c;",
        "proxy_set_header Connection 'x-mine';",
        "add_header Content-Length 0;",
        "more_set_headers 'Connection: close';",
        "more_clear_headers Transfer-Encoding;",
        "more_set_input_headers 'Content-Length: 0';",
    ] {
        assert_eq!(notes(text), 1, "{text}");
    }
    for text in [
        "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection 'upgrade';",
        "proxy_set_header Connection $connection_upgrade; proxy_set_header Connection '';",
        "proxy_set_header Host a.test; proxy_set_header Content-Length '';",
        "more_set_input_headers 'Host: a.test'; more_clear_input_headers Upgrade;",
    ] {
        assert_eq!(notes(text), 0, "{text}");
    }
}

#[test]
fn a_port_is_one_of_the_addresses_that_nginx_takes_for_it() {
    let text =
        "server { listen 81; listen *:82; listen [::]:83; listen [::1]:84; listen 127.0.0.1:85; }";
    let http = meaning(Context::Http, text).http;
    let addresses: Vec<_> = http.servers[0]
        .listens
        .iter()
        .map(|listen| listen.address.map(|address| address.to_string()))
        .collect();
    let own = |text: &str| Some(text.to_owned());
    assert_eq!(addresses, [None, None, own("::"), own("::1"), own("127.0.0.1")]);
}

#[test]
fn a_variable_right_behind_the_host_of_a_proxy_pass_is_its_path() {
    let pass =
        settings("proxy_pass http://upstream_balancer$request_uri;").pass.expect("it is said");
    assert_eq!(pass.target, PassTarget::Balancer);
    assert_eq!(pass.path.expect("it has one").to_string(), "${request_uri}");
}

#[test]
fn variables_have_no_case_and_own_ones_come_first() {
    let scope =
        meaning(Context::Location, "set $Mine 1; proxy_set_header X \"$mine $HOST ${MINE}s\";")
            .scope;
    assert_eq!(scope.settings.headers.proxy_set[0].value.to_string(), "${mine} ${host} ${mine}s");
    let template = &settings("proxy_set_header X $host;").headers.proxy_set[0].value;
    assert_eq!(
        template.without_own().map(|template| template.to_string()),
        Some("${host}".to_owned())
    );
    let own = &settings("set $a 1; proxy_set_header X $a;").headers.proxy_set[0].value;
    assert_eq!(own.without_own(), None);
}

#[test]
fn what_a_snippet_takes_for_granted_is_said_with_its_place() {
    let text = "location /a { limit_req zone=r; }\nlimit_conn c 1;\nauth_basic staff;\nset $proxy_upstream_name a-b-80;\n\
                proxy_pass http://s.n.svc;";
    let needs = meaning(Context::Location, text).needs;
    let said = |need: &snippet::Need| (need.at.line, need.directive.clone());
    let expected = [
        (1, "limit_req"),
        (1, "location"),
        (2, "limit_conn"),
        (3, "auth_basic"),
        (4, "set"),
        (5, "proxy_pass"),
    ];
    let mut found: Vec<_> = needs.iter().map(said).collect();
    found.sort();
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())));
    let listens = meaning(Context::Http, "server { listen 2443; }").needs;
    let what: Vec<_> = listens.into_iter().map(|need| need.what).collect();
    assert_eq!(what, [snippet::Needed::Port(2443)]);
}

#[test]
fn variables_of_tenants_are_told_apart_and_those_of_requests_stay() {
    let all = Snippet::parse(Context::Server, "set $shared 1;").expect("it has the form");
    let own =
        Snippet::parse(Context::Location, "set $own $shared; set $args $own;").expect("the same");
    let mut names = Names::default();
    all.declare(&mut names);
    let of = |tenant: &str| {
        let mut names = names.of_tenant(tenant);
        own.declare(&mut names);
        own.understand(&names).expect("it is understood").scope
    };
    assert_ne!(of("a"), of("b"));
    assert_eq!(of("a"), of("a"));
    let names: Vec<String> = of("a")
        .program
        .steps
        .iter()
        .map(|step| match &step.task {
            Task::Set(name, value) => format!("{} {name} {value}", name.0),
            _ => String::new(),
        })
        .collect();
    assert_eq!(names, ["a/own $own ${shared}", "args $args ${own}"]);
}

#[test]
fn what_is_said_of_hosts_counts_for_each_of_them() {
    let said = |place, places| {
        Snippet::parse(place, "add_header A 1; if ($host) { expires 1d; }")
            .expect("it is read")
            .said(places)
    };
    let (server, location) = (Context::Server, Context::Location);
    // Two levels at each place are 100; five words are said outside, and inside them and two more.
    assert_eq!([said(location, 1), said(location, 10)], [112, 1_012]);
    assert_eq!(said(server, 10), 10 * (12 + 100));
}

#[test]
fn a_table_of_what_each_location_sets_is_told_and_makes_nothing() {
    let text = "map $host $proxy_upstream_name { default a; } geo $namespace { default b; }
        split_clients $host $pass_port { * c; } map $host $loggable { default 0; }";
    let Meaning { http, notes, .. } = meaning(Context::Http, text);
    let told: Vec<&str> = notes.iter().map(|note| note.directive.as_str()).collect();
    assert_eq!(told, ["map", "geo", "split_clients"]);
    let made: Vec<&str> = http.maps.iter().map(|map| &*map.name.0).collect();
    assert_eq!((made, http.geos.len(), http.splits.len()), (vec!["loggable"], 0, 0));
}
