//! Programs as the real controller ran them, and their bounds.

use snippet::run::{Machine, Next, Outcome, Owner, Reply, Request, State, Tables, run};
use snippet::typed::{GlobalScope, Piece, Scope};
use snippet::{Context, Other, Snippet};
use std::borrow::Cow;
use std::collections::HashMap;

/// A request made of its variables.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    variables: HashMap<String, String>,
}

impl Asked {
    pub(crate) fn new(variables: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { variables: variables.iter().map(own).collect() }
    }

    fn value(&self, name: &str) -> Cow<'_, str> {
        Cow::Borrowed(self.variables.get(name).map_or("", String::as_str))
    }
}

impl Request for Asked {
    fn variable(&self, variable: &model::Variable) -> Cow<'_, str> {
        self.value(&variable.name())
    }

    fn other(&self, variable: &Other) -> Cow<'_, str> {
        self.value(&variable.name())
    }

    fn looked_through(&self, _: &Piece) -> usize {
        0
    }
}

/// What a snippet means, beside an `http-snippet`.
fn scopes(place: Context, text: &str, http: &str) -> (Scope, GlobalScope) {
    let snippets = [(place, text), (Context::Http, http)].map(|(place, text)| {
        Snippet::parse(place, text).unwrap_or_else(|mistake| panic!("{mistake}: {text}"))
    });
    let mut names = snippet::Names::default();
    snippets.iter().for_each(|snippet| snippet.declare(&mut names));
    let [own, http] = snippets.map(|snippet| {
        snippet.understand(&names).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
    });
    (own.scope, http.http)
}

/// Runs `text` for a request with this path, query and variables.
struct Ran {
    outcome: Outcome,
    path: String,
    query: String,
    variables: HashMap<String, String>,
    story: Vec<String>,
}

fn ran(text: &str, target: &str, variables: &[(&str, &str)]) -> Ran {
    ran_with(text, "", target, variables)
}

fn ran_with(text: &str, http: &str, target: &str, variables: &[(&str, &str)]) -> Ran {
    let (scope, http) = scopes(Context::Location, text, http);
    let tables = Tables::new(&[&http]);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let decoded = path.replace("%20", " ").replace("%3F", "?").replace("%C3%BC", "ü");
    let mut state = State::new(&decoded, query, path.contains(['%', '+']));
    state.story = Some(Vec::new());
    let mut known = vec![("request_uri", target)];
    known.extend(variables);
    let asked = Asked::new(&known);
    let mut machine = Machine::new(&asked, state, &tables);
    let outcome = run(&scope.program, Owner::Location, &mut machine);
    let state = machine.state;
    let read = |name: &&str| state.own(name).map(|value| ((*name).to_owned(), value.to_owned()));
    let names = [
        "a",
        "b",
        "s",
        "m",
        "r",
        "flag",
        "who",
        "user",
        "tenant",
        "rest",
        "cors",
        "v",
        "limit_rate",
    ];
    let variables = names.iter().filter_map(read).collect();
    let story = state.story.clone().unwrap_or_default();
    let story = story.into_iter().map(|line| format!("{}: {}", line.at, line.text)).collect();
    Ran { outcome, path: state.path.clone(), query: state.query.clone(), variables, story }
}

fn answer(text: &str, target: &str, variables: &[(&str, &str)]) -> Next {
    ran(text, target, variables).outcome.next
}

fn value(text: &str, target: &str, variables: &[(&str, &str)], name: &str) -> String {
    ran(text, target, variables).variables.remove(name).unwrap_or_default()
}

fn status(code: u16) -> Next {
    Next::Answer(Reply::Status(code))
}

fn to(code: u16, location: &str) -> Next {
    Next::Answer(Reply::Redirect(code, location.to_owned()))
}

fn text(code: u16, body: &str) -> Next {
    Next::Answer(Reply::Text(code, body.to_owned()))
}

#[test]
fn each_condition_holds_when_nginx_says_so() {
    type Case = (&'static str, &'static [(&'static str, &'static str)], bool);
    let cases: &[Case] = &[
        ("$arg_v", &[], false),
        ("$http_v", &[("http_v", "")], false),
        ("$http_v", &[("http_v", "0")], false),
        ("$http_v", &[("http_v", "00")], true),
        ("$http_v", &[("http_v", "no")], true),
        ("$https = on", &[("https", "on")], true),
        ("$https = on", &[("https", "On")], false),
        ("$https != on", &[], true),
        ("$https != on", &[("https", "on")], false),
        ("$http_user_agent ~ Mobile", &[("http_user_agent", "a Mobile b")], true),
        ("$http_user_agent ~ Mobile", &[("http_user_agent", "a mobile b")], false),
        ("$http_user_agent ~* Mobile", &[("http_user_agent", "a mobile b")], true),
        ("$http_user_agent !~ Mobile", &[("http_user_agent", "a mobile b")], true),
        ("$http_user_agent !~* Mobile", &[("http_user_agent", "a mobile b")], false),
        ("$request_method !~ ^(GET|HEAD|POST)$ ", &[("request_method", "GET")], false),
        ("$request_method !~ ^(GET|HEAD|POST)$ ", &[("request_method", "PUT")], true),
        (" $request_uri ~ \"^/x\" ", &[("request_uri", "/x")], true),
        ("$host = \"$http_host\"", &[("host", "a"), ("http_host", "a")], true),
    ];
    for (condition, variables, holds) in cases {
        let next = answer(&format!("if ({condition}) {{ return 403; }}"), "/", variables);
        assert_eq!(next == status(403), *holds, "{condition} {variables:?}");
    }
}

#[test]
fn variables_are_set_in_order() {
    let forms = r#"set $m "";
        if ($http_user_agent ~ "Mobile") { set $m "${m}1"; }
        if ($http_user_agent ~* "mobile") { set $m "${m}2"; }
        if ($http_user_agent !~ "Mobile") { set $m "${m}3"; }
        if ($http_user_agent !~* "mobile") { set $m "${m}4"; }"#;
    for (agent, expected) in [("Mobile", "12"), ("mobile", "23"), ("curl", "34")] {
        assert_eq!(value(forms, "/", &[("http_user_agent", agent)], "m"), expected);
    }
    let stop = "set $a 1; if ($arg_stop) { break; } set $a 2;";
    assert_eq!(value(stop, "/", &[], "a"), "2");
    assert_eq!(value(stop, "/?stop=1", &[], "a"), "1");
    let not =
        r#"set $a no; if ($arg_x = 1) { set $a yes; } if ($arg_y != 1) { set $a "${a}-noty"; }"#;
    assert_eq!(value(not, "/?x=1&y=1", &[], "a"), "yes");
    assert_eq!(value(not, "/", &[], "a"), "no-noty");
    let flag = r#"set $flag ""; if ($scheme = http) { set $flag "H"; }
        if ($http_x_forwarded_proto != https) { set $flag "${flag}P"; }
        if ($flag = "HP") { return 301 https://$host$request_uri; }"#;
    assert_eq!(
        answer(flag, "/a?b", &[("scheme", "http"), ("host", "h.test")]),
        to(301, "https://h.test/a?b")
    );
    assert_eq!(answer(flag, "/a?b", &[("scheme", "https"), ("host", "h.test")]), Next::Continue);
}

#[test]
fn groups_are_those_of_the_last_match() {
    let tenant = r#"if ($uri ~ "^/t/([^/]+)/(.*)$") { set $tenant $1; set $rest $2; } rewrite ^/t/ /$rest break;"#;
    let found = ran(tenant, "/t/acme/a/b?c=d", &[]);
    assert_eq!((found.path.as_str(), found.query.as_str()), ("/a/b", "c=d"));
    assert_eq!((found.variables["tenant"].as_str(), found.outcome.next), ("acme", Next::Continue));
    let named = r#"if ($uri ~ "^/u/(?<user>[a-z]+)") { set $who $user; }"#;
    assert_eq!(value(named, "/u/alice/x", &[], "who"), "alice");
    assert_eq!(value(named, "/u/1", &[], "who"), "");
    let returned = "if ($host ~* ^([a-z]+)\\.) { return 302 https://$1.example.com/; }";
    assert_eq!(
        answer(returned, "/", &[("host", "Shop.test")]),
        to(302, "https://Shop.example.com/")
    );
    let forgotten =
        "if ($uri ~ ^/(a)) { set $a $1; } if ($uri ~ ^/(z)) { set $b x; } set $b \"$1\";";
    assert_eq!(value(forgotten, "/a", &[], "b"), "", "a failed match forgets the groups");
}

#[test]
fn groups_are_escaped_in_values_until_a_rewrite_has_changed_the_path() {
    let before = "if ($uri ~ ^/a/(.*)) { set $a $1; }";
    assert_eq!(value(before, "/a/x%20y", &[], "a"), "x%20y");
    assert_eq!(value(before, "/a/x", &[], "a"), "x");
    let after = "rewrite ^/a/(.*)$ /b/$1; set $a $1;";
    assert_eq!(value(after, "/a/x%20y", &[], "a"), "x y");
    assert_eq!(
        answer("if ($uri ~ ^/a/(.*)) { return 200 $1; }", "/a/x%20y", &[]),
        text(200, "x y")
    );
}

#[test]
fn classes_of_characters_are_those_of_ascii() {
    let word = "rewrite ^/(\\w+)$ /word; if ($uri ~ [\\d]) { return 404; }";
    assert_eq!(ran(word, "/%C3%BC", &[]).path, "/ü");
    assert_eq!(ran(word, "/abc", &[]).path, "/word");
}

#[test]
fn return_answers_as_nginx_does() {
    let cases: &[(&str, &str, Next)] = &[
        ("return 403;", "/", status(403)),
        ("return 444;", "/", Next::Answer(Reply::Close)),
        ("return 204;", "/", text(204, "")),
        ("return 200 \"open $uri\\n\";", "/x", text(200, "open /x\n")),
        (
            "return 503 '{\"error\":\"maintenance\"}';",
            "/",
            text(503, "{\"error\":\"maintenance\"}"),
        ),
        ("return https://new.example.com/;", "/a", to(302, "https://new.example.com/")),
        (
            "return 301 https://new.example.com$request_uri;",
            "/a?b",
            to(301, "https://new.example.com/a?b"),
        ),
        ("return 302 /login?next=$request_uri;", "/a?b=c", to(302, "/login?next=/a?b=c")),
        ("return 301;", "/", to(301, "")),
        (
            "if ($host != 'main.test') { return 301 $scheme://main.test$uri; }",
            "/a",
            to(301, "://main.test/a"),
        ),
    ];
    for (snippet, target, expected) in cases {
        assert_eq!(answer(snippet, target, &[]), *expected, "{snippet}");
    }
    let split =
        answer("return 301 https://x.test$http_y;", "/", &[("http_y", "/\r\nSet-Cookie: a=b")]);
    assert_eq!(
        split,
        to(301, "https://x.test/%0D%0ASet-Cookie: a=b"),
        "no line ends within a header"
    );
}

#[test]
fn rewrites_change_the_path_and_keep_the_query() {
    let cases: &[(&str, &str, &str, &str, Next)] = &[
        ("rewrite ^/old/(.*)$ /new/$1 break;", "/old/a?b=c", "/new/a", "b=c", Next::Continue),
        ("rewrite ^/old/(.*)$ /new/$1 break;", "/other", "/other", "", Next::Continue),
        ("rewrite ^/a/(.*)$ /b/$1 last;", "/a/x?y", "/b/x", "y", Next::Search),
        (
            "rewrite ^/one/(.*)$ /two/$1; rewrite ^/two/(.*)$ /three/$1 break;",
            "/one/x",
            "/three/x",
            "",
            Next::Continue,
        ),
        ("rewrite ^/one/(.*)$ /two/$1;", "/one/x", "/two/x", "", Next::Search),
        ("rewrite ^/one/(.*)$ /two/$1; break;", "/one/x", "/two/x", "", Next::Continue),
        ("rewrite ^/p/(.+)$ /find?q=$1 break;", "/p/x?y=1", "/find", "q=x&y=1", Next::Continue),
        ("rewrite ^/p/(.+)$ /find?q=$1? break;", "/p/x?y=1", "/find", "q=x", Next::Continue),
        ("rewrite ^/p/(.+)$ /f?q=$1 break;", "/p/a%20b", "/f", "q=a%20b", Next::Continue),
        ("rewrite ^/p/(.+)$ /f/$1 break;", "/p/a%3Fb", "/f/a?b", "", Next::Continue),
        ("rewrite ^/p/(.+)$ /f/$1 break;", "/p/%C3%BC", "/f/ü", "", Next::Continue),
        ("rewrite ^ /same? break;", "/x?y=1", "/same", "", Next::Continue),
        ("rewrite (?i)^/About$ /about last;", "/ABOUT", "/about", "", Next::Search),
        ("set $args \"x=1\";", "/a?y=1", "/a", "x=1", Next::Continue),
        ("rewrite ^/(.*)$ $2 break;", "/a", "/a", "", status(500)),
    ];
    for (snippet, target, path, query, next) in cases {
        let found = ran(snippet, target, &[]);
        assert_eq!(
            (found.path.as_str(), found.query.as_str()),
            (*path, *query),
            "{snippet} {target}"
        );
        assert_eq!(found.outcome.next, *next, "{snippet} {target}");
    }
}

#[test]
fn rewrites_redirect() {
    let cases: &[(&str, &str, Next)] = &[
        (
            "rewrite ^/(.*)$ https://new.example.com/$1 permanent;",
            "/a?c=d",
            to(301, "https://new.example.com/a?c=d"),
        ),
        (
            "rewrite ^/(.*)$ https://new.example.com/$1? permanent;",
            "/a?c=d",
            to(301, "https://new.example.com/a"),
        ),
        ("rewrite ^/(.*)$ https://new.example.com/$1;", "/a", to(302, "https://new.example.com/a")),
        ("rewrite ^(/dashboard)$ $1/ redirect;", "/dashboard", to(302, "/dashboard/")),
        ("rewrite ^(/dashboard)$ $1/ redirect;", "/dashboard/", Next::Continue),
        ("rewrite ^/(.+)/$ /$1 permanent;", "/a/b/?x=1", to(301, "/a/b?x=1")),
        ("rewrite ^/(.*)$ /n?p=$1 redirect;", "/a?x=1", to(302, "/n?p=a&x=1")),
        ("rewrite ^/(.*)$ /n/$1 redirect;", "/a%20b/%C3%BC", to(302, "/n/a%20b/%C3%BC")),
        ("rewrite ^/(.*)$ $scheme://x.test/$1;", "/a", to(302, "://x.test/a")),
    ];
    for (snippet, target, expected) in cases {
        assert_eq!(answer(snippet, target, &[]), *expected, "{snippet} {target}");
    }
}

#[test]
fn no_line_ends_within_a_header() {
    let split = [("http_y", "/\r\nSet-Cookie: a=b")];
    let expected = to(302, "https://x.test/%0D%0ASet-Cookie: a=b");
    assert_eq!(answer("rewrite ^ https://x.test$http_y redirect;", "/", &split), expected);
    assert_eq!(answer("return https://x.test$http_y;", "/", &split), expected);
    let (scope, _) = scopes(Context::Location, "add_header X-A $http_y;", "");
    let (asked, tables) = (Asked::new(&split), Tables::default());
    let mut machine = Machine::new(&asked, State::default(), &tables);
    let value = machine.expand_header(&scope.settings.headers.add[0].value);
    assert_eq!(value.as_deref(), Ok("/%0D%0ASet-Cookie: a=b"));
}

#[test]
fn the_settings_of_the_last_if_count() {
    let headers =
        "if ($arg_a) { add_header X-R a; } if ($arg_b) { add_header X-R b; } add_header X-R none;";
    assert_eq!(ran(headers, "/", &[]).outcome.branch, None);
    assert_eq!(ran(headers, "/?a=1", &[]).outcome.branch, Some(0));
    assert_eq!(ran(headers, "/?a=1&b=1", &[]).outcome.branch, Some(1));
    let (scope, _) = scopes(Context::Location, headers, "");
    let added = |settings: &snippet::typed::Settings| {
        settings.headers.add.iter().map(|header| header.value.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(added(&scope.branches[1]), ["b"]);
    assert_eq!(added(&scope.settings), ["none"]);
}

#[test]
fn a_server_is_searched_in_any_case() {
    let (scope, _) =
        scopes(Context::Server, "rewrite ^/p/(.*)$ /q/$1; if ($arg_x) { return 410; }", "");
    let (asked, tables) = (Asked::default(), Tables::default());
    let mut machine = Machine::new(&asked, State::new("/p/x", "y=1", false), &tables);
    let outcome = run(&scope.program, Owner::Server, &mut machine);
    assert_eq!(outcome, Outcome { next: Next::Continue, branch: None, ended: false });
    assert_eq!((machine.state.path.as_str(), machine.state.rewritten), ("/q/x", true));
}

#[test]
fn searches_steps_and_texts_are_bounded() {
    let (scope, _) = scopes(Context::Location, "rewrite ^/(.*)$ /x/$1 last;", "");
    let (asked, tables) = (Asked::default(), Tables::default());
    let mut machine = Machine::new(&asked, State::new("/a", "", false), &tables);
    for _ in 0..10 {
        assert_eq!(run(&scope.program, Owner::Location, &mut machine).next, Next::Search);
    }
    assert_eq!(run(&scope.program, Owner::Location, &mut machine).next, status(500));
    let doubled = format!("set $a 0123456789; {}", "set $a $a$a;".repeat(40));
    assert_eq!(answer(&doubled, "/", &[]), status(500));
    let many: String = (0..10).map(|index| format!("set $v{index} $a;")).collect();
    let full = format!("set $a 0123456789; {} {many}", "set $a $a$a;".repeat(12));
    assert_eq!(answer(&full, "/", &[]), status(500), "all variables together");
    let again =
        format!("set $a 0123456789; {} {}", "set $a $a$a;".repeat(12), "set $b $a;".repeat(20));
    assert_eq!(answer(&again, "/", &[]), Next::Continue, "a variable that is set anew counts once");
    let (scope, _) = scopes(Context::Location, &"set $a b;".repeat(900), "");
    let mut machine = Machine::new(&asked, State::new("/a", "", false), &tables);
    for _ in 0..5 {
        assert_eq!(run(&scope.program, Owner::Location, &mut machine).next, Next::Continue);
    }
    let next = run(&scope.program, Owner::Location, &mut machine).next;
    assert_eq!(next, status(500), "all programs together");
}

#[test]
fn an_empty_value_is_none_for_expressions_of_a_map() {
    let http = "map $http_x_token $denied { default 1; ~^[0-9a-f]*$ 0; }
        map $http_who $closed { default 1; ~^(?!root) 0; }
        map $http_x_none $none { default 1; ~.* 0; '' 2; }
        map $http_host $inner { hostnames; default 0; ~^internal\\.test$ 1; ~^$ 2; }";
    let ran = |variables: &[_]| {
        let program = "set $a $denied$closed$none$inner;";
        ran_with(program, http, "/", variables).variables["a"].clone()
    };
    assert_eq!(ran(&[]), "1120");
    assert_eq!(ran(&[("http_x_token", "abc"), ("http_x_none", "x")]), "0100");
    assert_eq!(ran(&[("http_who", "me"), ("http_host", "internal.test.")]), "1021");
    assert_eq!(ran(&[("http_who", "root"), ("http_host", ".")]), "1120");
}

#[test]
fn maps_are_looked_up_as_in_nginx() {
    let http = "map $http_user_agent $class { default other; ~*iphone phone; \"~^curl\" tool; exact Exact; }
        map $host $kind { hostnames; default none; .a.test a; *.b.test b; *.x.b.test xb; c.* c; }
        map $uri $new { ~^/blog/(?<slug>[a-z]+)$ /articles/$slug; ~^/n/(.)(.) $2$1; }
        map $new $again { default \"[$new]\"; }
        map $cycle_a $cycle_b { default $cycle_a; } map $cycle_b $cycle_a { default $cycle_b; }";
    let class = |agent| {
        ran_with("set $a $class;", http, "/", &[("http_user_agent", agent)]).variables["a"].clone()
    };
    let cases = [
        ("my iPhone", "phone"),
        ("curl/8", "tool"),
        ("a curl", "other"),
        ("EXACT", "Exact"),
        ("", "other"),
    ];
    for (agent, expected) in cases {
        assert_eq!(class(agent), expected, "{agent}");
    }
    let kind =
        |host| ran_with("set $a $kind;", http, "/", &[("host", host)]).variables["a"].clone();
    let cases = [
        ("a.test", "a"),
        ("w.a.test", "a"),
        ("b.test", "none"),
        ("w.b.test", "b"),
        ("w.x.b.test", "xb"),
        ("c.org", "c"),
        ("W.B.test", "b"),
    ];
    for (host, expected) in cases {
        assert_eq!(kind(host), expected, "{host}");
    }
    let new = |path| ran_with("set $a $again;", http, path, &[]).variables["a"].clone();
    assert_eq!(new("/blog/hello"), "[/articles/hello]");
    assert_eq!(new("/n/ab"), "[ba]");
    assert_eq!(ran_with("set $a $cycle_a;", http, "/", &[]).outcome.next, status(500));
    let order =
        ran_with("set $a $kind; set $kind mine; set $b $kind;", http, "/", &[("host", "a.test")]);
    assert_eq!((order.variables["a"].as_str(), order.variables["b"].as_str()), ("a", "mine"));
}

/// What is looked through for a value is paid for, however short the value is.
#[test]
fn what_is_looked_through_again_and_again_is_counted() {
    let reads = |count: usize| "set $a $arg_z;".repeat(count);
    let query = format!("/?{}", "&".repeat(64 << 10));
    assert_eq!(answer(&reads(30), &query, &[]), Next::Continue);
    assert_eq!(answer(&reads(60), &query, &[]), status(500));
    assert_eq!(answer(&reads(900), "/?z=1&y=2", &[]), Next::Continue);
    let grows = format!("set $a {}; {}", "x".repeat(4_000), "rewrite ^ /b?$a;".repeat(80));
    assert_eq!(answer(&grows, "/", &[]), status(500), "each adds to the query");
    assert_eq!(answer("rewrite ^ /b?c=1;", "/?a=1", &[]), Next::Search);
}

/// A group of an expression is a variable, whether or not anything is in it.
#[test]
fn variables_without_a_value_are_held_and_counted() {
    let expression = |number: usize| -> String {
        let groups: String = (0..10).map(|at| format!("(?<v{number}_{at}>)")).collect();
        format!("if ($uri ~ \"^/{groups}\") {{ set $s 1; }}")
    };
    let names = |count: usize| -> String { (0..count).map(expression).collect() };
    let (scope, _) = scopes(Context::Location, &names(20), "");
    let (asked, tables) = (Asked::default(), Tables::default());
    let mut machine = Machine::new(&asked, State::new("/", "", false), &tables);
    assert_eq!(run(&scope.program, Owner::Location, &mut machine).next, Next::Continue);
    assert!(machine.state.held() > 200 * 50, "{}", machine.state.held());
    assert_eq!(answer(&names(470), "/", &[]), status(500));
}

#[test]
fn a_map_is_remembered_unless_it_is_volatile() {
    let http = "map $uri $once { default $uri; } map $uri $anew { volatile; default $uri; }";
    let text = "set $a \"$once $anew\"; rewrite ^ /y; set $b \"$once $anew\";";
    let found = ran_with(text, http, "/x", &[]);
    assert_eq!((found.variables["a"].as_str(), found.variables["b"].as_str()), ("/x /x", "/x /y"));
}

/// Whoever lets long texts be copied again and again pays for their length.
#[test]
fn a_long_text_is_as_many_steps_as_it_has_kilobytes() {
    let long = "x".repeat(60_000);
    let copies = |count: usize, value: &str| {
        let text = format!("set $a $http_x; {}", "set $b $a;".repeat(count));
        ran_with(&text, "", "/", &[("http_x", value)]).outcome.next
    };
    assert_eq!(copies(100, &long), Next::Continue);
    assert_eq!(copies(200, &long), status(500));
    assert_eq!(copies(900, "short"), Next::Continue);
    let compared = "set $a $http_x; ".to_owned() + &"if ($a ~ ^y) { break; }".repeat(200);
    assert_eq!(ran_with(&compared, "", "/", &[("http_x", &long)]).outcome.next, status(500));
}

#[test]
fn what_return_says_knows_its_status() {
    let said = |text: &str| ran_with(text, "", "/", &[("status", "000")]).outcome.next;
    assert_eq!(said("return 201 $status;"), Next::Answer(Reply::Text(201, "201".to_owned())));
    let to = Next::Answer(Reply::Redirect(302, "/302".to_owned()));
    assert_eq!(said("return 302 /$status;"), to);
    assert_eq!(
        said("set $a $status; return 200 $a;"),
        Next::Answer(Reply::Text(200, "000".to_owned()))
    );
    let paged = ran_with("return 200 $status;", "", "/", &[("status", "404")]).outcome.next;
    assert_eq!(paged, Next::Answer(Reply::Text(200, "404".to_owned())));
}

#[test]
fn geo_takes_the_narrowest_network() {
    let http = "geo $in { default 0; 10.0.0.0/8 8; 10.1.0.0/16 16; 10.1.2.3 32; 2001:db8::/32 six; delete 10.9.0.0/16; }
        geo $ranged { ranges; default none; 10.0.0.0-10.0.0.9 low; 10.0.0.10-10.0.0.19 mid; 10.0.0.12-10.0.0.13 in;
            10.0.1.0-10.0.1.9 gone; delete 10.0.1.0-10.0.1.9; }
        geo $nobody { 255.255.255.255 nobody; }
        geo $hop { proxy 10.0.0.0/8; proxy_recursive; default out; 192.0.2.0/24 office; }";
    let look = |name: &str, address: &str, forwarded: &str| {
        let variables = [("remote_addr", address), ("http_x_forwarded_for", forwarded)];
        ran_with(&format!("set $a ${name};"), http, "/", &variables).variables["a"].clone()
    };
    let cases = [
        ("in", "10.2.0.1", "8"),
        ("in", "10.1.0.1", "16"),
        ("in", "10.1.2.3", "32"),
        ("in", "11.0.0.1", "0"),
        ("in", "2001:db8::1", "six"),
        ("in", "::ffff:10.1.2.3", "32"),
        ("in", "nonsense", "0"),
        ("ranged", "10.0.0.9", "low"),
        ("ranged", "10.0.0.10", "mid"),
        ("ranged", "10.0.0.12", "in"),
        ("ranged", "10.0.0.20", "none"),
        ("ranged", "10.0.1.1", "none"),
        ("nobody", "nonsense", "nobody"),
    ];
    for (name, address, expected) in cases {
        assert_eq!(look(name, address, ""), expected, "{name} {address}");
    }
    assert_eq!(look("hop", "10.0.0.1", "192.0.2.9, 10.0.0.2"), "office");
    assert_eq!(look("hop", "11.0.0.1", "192.0.2.9"), "out");
}

#[test]
fn clients_are_split_by_nginxs_hash() {
    let http = "split_clients $remote_addr $all { 100% a; * b; } split_clients $remote_addr $none { 0.01% a; * b; }
        split_clients $remote_addr $half { 50% a; 50% b; }";
    let literal = "split_clients $remote_addr $text { * \"$host $unheard\"; }";
    let text = ran_with("set $a $text;", literal, "/", &[]).variables["a"].clone();
    assert_eq!(text, "$host $unheard", "no variables are in a share, as in nginx");
    let share = |name: &str, address: &str| {
        ran_with(&format!("set $a ${name};"), http, "/", &[("remote_addr", address)]).variables["a"]
            .clone()
    };
    assert_eq!(share("all", "10.77.0.50"), "a");
    assert_eq!(share("none", "10.77.0.50"), "b");
    let halves = (0..200).filter(|index| share("half", &format!("10.0.0.{index}")) == "a").count();
    assert!((70..130).contains(&halves), "{halves} of 200");
}

#[test]
fn the_story_says_what_was_done_where() {
    let text = "set $a 1;\nif ($a = 1) {\n  rewrite ^/x /y;\n}\nreturn 204;";
    let expected = [
        "line 1, column 1: set $a to \"…\"",
        "line 2, column 1: if: entered",
        "line 3, column 3: rewrite: now at \"/y\"",
        "line 5, column 1: return: 204 with 0 bytes",
    ];
    assert_eq!(ran(text, "/x", &[]).story, expected);
}

#[test]
fn referers_are_valid_or_not() {
    let text = "valid_referers blocked server_names *.example.com example.* www.example.org/galleries/ .good.test
        bare.test/ ~\\.google\\.;
        if ($invalid_referer) { return 403; }";
    let (scope, _) = scopes(Context::Location, text, "");
    let referers = scope.settings.access.valid_referers.expect("valid_referers");
    let invalid = |referer: Option<&str>| {
        let mut state = State::default();
        let is_own = |host: &str, _: &mut State| Ok(host == "own.test");
        snippet::run::is_invalid_referer(&referers, referer, is_own, &mut state).expect("few steps")
    };
    let valid = [
        "https://a.example.com/x",
        "http://example.org/",
        "http://www.example.org/galleries/1",
        "https://own.test:8443/",
        "https://www.google.com/",
        "http://good.test",
        "http://a.b.good.test/",
        "http://bare.test/",
        "no scheme",
    ];
    for referer in valid {
        assert!(!invalid(Some(referer)), "{referer}");
    }
    for referer in [
        Some("https://evil.test/?example.com"),
        Some("http://www.other.org/galleries/"),
        Some("http://notgood.test/"),
        Some("http://bare.test"),
        None,
    ] {
        assert!(invalid(referer), "{referer:?}");
    }
}
