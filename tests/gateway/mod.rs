//! Gateways and HTTPRoutes beside Ingresses: the binary with a folder of objects, asked over real sockets.

mod bed;
mod certificates;
mod grpc;
mod guards;
mod listeners_of_others;
mod origins_and_copies;
mod own_addresses;
mod sessions;
mod streams;

use bed::{Bed, header};
use futures_util::future::join_all;
use http::StatusCode;

#[tokio::test(flavor = "multi_thread")]
async fn matches_are_asked_in_the_order_of_the_specification() {
    let bed = Bed::start(include_str!("matches.yaml")).await;
    for (path, headers, method, expected) in [
        ("/v2", &[][..], "GET", "b"),
        ("/v2/x", &[], "GET", "b"),
        ("/v2example", &[], "GET", "a"),
        ("/exact", &[], "GET", "b"),
        ("/exact/", &[], "GET", "a"),
        ("/anything", &[("Version", "two")], "GET", "b"),
        ("/anything", &[("version", "two"), ("Color", "blue")], "GET", "c"),
        ("/v2", &[("version", "two"), ("color", "blue")], "GET", "b"),
        ("/anything", &[("version", "twofold")], "GET", "a"),
        ("/anything?animal=whale", &[], "GET", "b"),
        ("/anything?animal=Whale", &[], "GET", "a"),
        ("/anything", &[("version", "two"), ("color", "blue")], "DELETE", "b"),
        ("/%76%32", &[], "GET", "b"),
    ] {
        let answer = bed.send(method, "a.test", path, headers).await;
        assert_eq!(
            (answer.status, answer.pod.as_str()),
            (200, expected),
            "{method} {path} {headers:?}"
        );
    }
    // A route that names the host more specially goes first, whatever the paths; another one has the rest.
    for (path, expected) in [("/long/path", "b"), ("/else", "a")] {
        assert_eq!(bed.get("narrow.test", path).await.pod, expected, "{path}");
    }
    for (host, expected) in
        [("x.wild.test", 200), ("y.x.wild.test", 200), ("wild.test", 404), ("b.test", 404)]
    {
        assert_eq!(bed.get(host, "/").await.status, expected, "{host}");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_match_whole_values_and_stand_between_exact_paths_and_prefixes() {
    let bed = Bed::start(include_str!("expressions.yaml")).await;
    for (path, headers, expected) in [
        ("/api/v12/users", &[][..], "b"),
        ("/api/v12/users/1", &[], "a"),
        ("/more/api/v12/users", &[], "a"),
        ("/api/v1/users", &[], "c"),
        ("/x", &[("version", "three")], "b"),
        ("/x", &[("version", "threefold")], "a"),
        ("/y?animal=whale", &[], "c"),
        ("/y?animal=cow", &[], "c"),
        ("/y?animal=cows", &[], "a"),
        ("/bad(", &[], "a"),
    ] {
        let answer = bed.send("GET", "a.test", path, headers).await;
        assert_eq!((answer.status, answer.pod.as_str()), (200, expected), "{path} {headers:?}");
    }
    assert_eq!(bed.get("hard.test", "/aa").await.pod, "a");
    let hard = format!("/{}", "a".repeat(400));
    assert_eq!(bed.get("hard.test", &hard).await.status, 500, "nobody knows whose it is");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_end_in_time_and_are_repeated_by_code() {
    let bed = Bed::start(include_str!("tries.yaml")).await;
    let mut id = 0;
    for (path, silent, fails, code, expected, times) in [
        ("/request", "9", "0", "200", 504, None),
        ("/try", "9", "0", "200", 504, None),
        ("/try", "1", "0", "200", 504, None),
        ("/unbounded", "0", "0", "200", 200, Some("1")),
        ("/codes", "0", "3", "503", 200, Some("4")),
        ("/codes", "0", "4", "503", 503, Some("4")),
        ("/codes", "0", "4", "502", 502, Some("1")),
        ("/one", "0", "1", "500", 200, Some("2")),
        ("/one", "0", "2", "500", 500, Some("2")),
        ("/off", "0", "1", "500", 500, Some("1")),
        ("/again", "1", "0", "200", 200, Some("2")),
        ("/all", "9", "0", "200", 504, None),
        ("/all", "0", "99", "500", 504, None),
    ] {
        for method in ["GET", "POST"] {
            id += 1;
            let id = id.to_string();
            let asks =
                [("X-Id", id.as_str()), ("X-Silent", silent), ("X-Fails", fails), ("X-Code", code)];
            let answer = bed.send(method, "a.test", path, &asks).await;
            let seen = header(&answer.head, "x-times").first().copied();
            let what = format!("{method} {path} {silent} {fails} {code}");
            assert_eq!((answer.status, seen), (expected, times), "{what}");
        }
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_time_of_a_route_is_over_nothing_more_is_sent() {
    let bed = Bed::start(include_str!("tries.yaml")).await;
    // Connections that are kept: over those a request is on its way before anything has to be waited for.
    join_all((0..32).map(|_| bed.get("a.test", "/codes"))).await;
    for (id, method, path) in
        [("1", "GET", "/request"), ("2", "GET", "/paused"), ("3", "POST", "/paused")]
    {
        let asks = [("X-Id", id), ("X-Silent", "9")];
        let answer = bed.send(method, "a.test", path, &asks).await;
        assert_eq!(answer.status, 504, "{method} {path}");
        // Whatever was sent before this one is there before it.
        let seen = bed.send("GET", "a.test", "/codes", &[("X-Of", id)]).await;
        assert_eq!(header(&seen.head, "x-times"), ["1"], "{method} {path}");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_requests_fail_multiplies_nobodys_load_and_leaves_others_their_tries() {
    let bed = Bed::start(include_str!("retries.yaml")).await;
    let tries = async |host: &str, id: u32, fails: &str| {
        let id = id.to_string();
        let asks = [("X-Id", id.as_str()), ("X-Fails", fails), ("X-Code", "500")];
        let answer = bed.send("GET", host, "/", &asks).await;
        let times = header(&answer.head, "x-times").first().and_then(|times| times.parse().ok());
        (answer.status, times.unwrap_or(0))
    };
    let started = std::time::Instant::now();
    assert_eq!(
        tries("much.test", 0, "99").await,
        (500, 91),
        "one request may have all that it asks for"
    );
    let mut sent = 91;
    for id in 1..20 {
        let (status, times) = tries("much.test", id, "99").await;
        assert_eq!(status, 500, "the last answer is passed on");
        sent += times;
    }
    // 100 at once, 4 for 20 requests, 10 a second; without a budget there were 1,820.
    let most = 20 + 100 + 4 + 10 * (started.elapsed().as_secs() + 1);
    assert!(sent <= most, "{sent} tries, {most} are allowed");
    assert_eq!(tries("few.test", 20, "3").await, (200, 4), "another namespace has its own");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_are_drawn_by_weight_and_what_is_broken_answers_500() {
    let bed = Bed::start(include_str!("shares.yaml")).await;
    let mut counts = [0_u32; 3];
    for _ in 0..400 {
        let answer = bed.get("a.test", "/shares").await;
        let at = match (answer.status, answer.pod.as_str()) {
            (200, "a") => 0,
            (200, "b") => 1,
            (500, _) => 2,
            other => panic!("{other:?}"),
        };
        counts[at] += 1;
    }
    // 60, 20 and 20 % of them; a share is off by a third once in a million runs.
    let near = |count: u32, expected: u32| count.abs_diff(expected) <= 50;
    assert!(near(counts[0], 240) && near(counts[1], 80) && near(counts[2], 80), "{counts:?}");
    for path in ["/missing", "/none", "/weightless", "/forbidden"] {
        assert_eq!(bed.get("a.test", path).await.status, 500, "{path}");
    }
    assert_eq!(bed.get("a.test", "/whole").await.pod, "b", "a weight of 0 is no share");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_edit_headers_redirect_and_rewrite() {
    let bed = Bed::start(include_str!("filters.yaml")).await;
    let sent = [("X-Set", "client"), ("x-add", "client"), ("X-Gone", "client")];
    let answer = bed.send("GET", "a.test", "/edits", &sent).await;
    assert_eq!(header(&answer.seen, "x-set"), ["mine"]);
    assert_eq!(header(&answer.seen, "x-add"), ["client", "two"]);
    assert_eq!(header(&answer.seen, "x-gone"), [""; 0]);
    assert_eq!(header(&answer.head, "x-answer"), ["yes"]);
    for (path, status, location) in [
        ("/old/x?y=z", StatusCode::MOVED_PERMANENTLY, "https://new.example/new/x?y=z"),
        ("/old", StatusCode::MOVED_PERMANENTLY, "https://new.example/new"),
        ("/port", StatusCode::FOUND, "http://a.test:8080/port"),
        ("/full?q", StatusCode::SEE_OTHER, "http://a.test/elsewhere?q"),
        ("/old/a%2Fb%3Fq//", StatusCode::MOVED_PERMANENTLY, "https://new.example/new/a%2Fb%3Fq//"),
    ] {
        let answer = bed.get("a.test", path).await;
        assert_eq!(answer.status, status.as_u16(), "{path}");
        assert_eq!(header(&answer.head, "location"), [location], "{path}");
    }
    for (path, seen) in [
        ("/strip/one?a=b", "/one?a=b"),
        ("/strip", "/"),
        ("/whole/x", "/all"),
        ("/strip/group%2Fname//x%20y", "/group%2Fname//x%20y"),
        ("/strip//x", "/x"),
        ("/strip/a%2F../b%2Fc", "/b/c"),
    ] {
        let answer = bed.get("a.test", path).await;
        assert!(answer.seen.starts_with(&format!("GET {seen} HTTP/1.1\r\n")), "{}", answer.seen);
    }
    assert_eq!(header(&bed.get("a.test", "/whole").await.seen, "host"), ["inner.example"]);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_said_of_ingresses_counts_for_a_route_and_the_other_way_round() {
    let bed = Bed::start(include_str!("beside.yaml")).await;
    // The Ingress has a certificate, so it redirects to HTTPS; the route of the same host does not.
    assert_eq!(bed.get("both.test", "/").await.status, 308);
    let answer = bed.get("both.test", "/new").await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "b"));
    assert_eq!(
        bed.get("both.test", "/same").await.status,
        308,
        "of the same path it is the Ingress's"
    );
    assert_eq!(bed.get("both.test", "/other").await.status, 308);
    let secure = |host, path| bed.get_tls(host, path);
    let (status, hsts) = secure("both.test", "/").await;
    assert_eq!((status, hsts), (200, true));
    assert_eq!(
        secure("both.test", "/new").await,
        (200, true),
        "the route is on the HTTP listener alone, so the Ingress has it"
    );
    assert_eq!(
        secure("tls.test", "/").await,
        (200, false),
        "the listener has a certificate, and no HSTS"
    );
    assert_eq!(
        bed.get("tls.test", "/").await.status,
        404,
        "the route is on the HTTPS listener alone"
    );
    // A large body is an Ingress's to refuse.
    let large = "b".repeat(2 << 20);
    assert_eq!(bed.post("both.test", "/new", &large).await, 200);
    bed.remove("gateway").await;
    assert_eq!(bed.status_until("both.test", "/new", 308).await, 308);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_has_of_a_host_what_it_names_and_an_expression_takes_no_path_from_it() {
    let bed = Bed::start(include_str!("parts.yaml")).await;
    for (host, path, expected) in [
        ("part.test", "/part", "a"),
        ("part.test", "/part/x", "a"),
        ("part.test", "/part/of/c", "c"),
        ("part.test", "/", "c"),
        ("part.test", "/else", "c"),
        ("other.test", "/alias", "a"),
        ("other.test", "/", "b"),
        ("alias.test", "/alias", "a"),
        ("only.test", "/any", "b"),
        // Nor does an Ingress's take one from a route.
        ("regex.test", "/shop/basket", "b"),
        ("regex.test", "/shop/x", "a"),
        ("regex.test", "/x/y", "b"),
        ("regex.test", "/else", "a"),
        ("regex.test", "/tea", "a"),
    ] {
        let answer = bed.get(host, path).await;
        assert_eq!((answer.status, answer.pod.as_str()), (200, expected), "{host}{path}");
    }
    assert_eq!(bed.get("alias.test", "/").await.status, 404);
    assert_eq!(bed.get("alone.test", "/").await.status, 308, "nobody else has it");
    bed.remove("gateway").await;
    assert_eq!(bed.status_until("part.test", "/else", 404).await, 404);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_routes_a_path_is_looked_up_once_among_ingresses() {
    let bed = Bed::start(include_str!("lookups.yaml")).await;
    assert_eq!(bed.get("beside.test", "/new").await.pod, "b");
    let path = |length: usize| format!("/{}", "a".repeat(length));
    // The longest path that a request's steps are enough for, where nothing else asks for them.
    let (mut known, mut too_hard) = (1, 7000);
    assert_eq!(bed.get("alone.test", &path(too_hard)).await.status, 500);
    while too_hard - known > known / 50 + 1 {
        let middle = usize::midpoint(known, too_hard);
        match bed.get("alone.test", &path(middle)).await.status {
            200 => known = middle,
            status => {
                assert_eq!(status, 500, "{middle}");
                too_hard = middle;
            }
        }
    }
    // Steps grow with the square of the length: twice as many as this takes would be too many.
    let answer = bed.get("beside.test", &path(known * 19 / 20)).await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "a"), "of {known}");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_takes_nothing_of_hosts_that_others_have_and_nothing_of_the_controller() {
    let bed = Bed::start(include_str!("hostile.yaml")).await;
    assert_eq!(bed.get("any.test", "/").await.pod, "b");
    // Load balancers ask for this path of hosts that nobody has.
    let health = bed.get("any.test", "/healthz").await;
    assert_eq!((health.status, health.pod.as_str()), (200, ""));
    assert_eq!(bed.get("i.test", "/forbidden").await.status, 403, "what a snippet says stays");
    for host in ["i.test", "al.test"] {
        let answer = bed.get(host, "/admin").await;
        assert_eq!(
            answer.pod, "a",
            "{host}: of the same path it is the Ingress's, however written"
        );
    }
    // A filter that hides where a request comes from does not hide its turns.
    assert_eq!(header(&bed.get("any.test", "/turns").await.seen, "cdn-loop"), ["fairway"]);
    assert_eq!(header(&bed.get("any.test", "/").await.seen, "cdn-loop"), [""; 0]);
    // No two requests, and no request of nobody's: the route is refused as a whole, and its place goes to nobody else.
    let refused = bed.get("smuggler.test", "/").await;
    assert_eq!((refused.status, refused.pod.as_str()), (500, ""), "the catch-all has it not");
    // What is too hard to tell of a route costs nobody who goes before it.
    let costly = [("costly", "a".repeat(120))];
    let costly = costly.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(bed.send("GET", "any.test", "/", &costly).await.status, 500);
    let answer = bed.send("GET", "i.test", "/admin", &costly).await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "a"));
    let location = header(&bed.get_of_nobody("/elsewhere").await.head, "location").concat();
    assert!(location.starts_with("http://127.0.0.1"), "{location}");
    bed.stop().await;
}
