//! Variables that every server has: what ingress-nginx computes of a request, and who is believed about it
//! (compat/behaviour.md sections 12, 14 and 15).

use super::policy;
use super::tree::words;
use super::{Block, Scope, Word, one_line};
use ipnet::IpNet;
use model::RealIp;

/// Variables that are set in locations, and what they are elsewhere. A `set` in the server would not do: subrequests
/// pass there, too, and share their variables with the request.
const SET: [(&str, &str); 18] = [
    ("$proxy_upstream_name", "-"),
    ("$proxy_alternative_upstream_name", ""),
    ("$namespace", ""),
    ("$ingress_name", ""),
    ("$service_name", ""),
    ("$service_port", ""),
    ("$location_path", ""),
    // Names of wildcard hosts set it.
    ("$subdomain", ""),
    ("$cors", ""),
    ("$auth_cookie", ""),
    ("$escaped_request_uri", ""),
    ("$fairway_upstream", ""),
    ("$fairway_route", ""),
    ("$fairway_tls_redirect_slash", "cut"),
    ("$fairway_tls_redirect_port", ""),
    ("$fairway_stands_in", ""),
    ("$fairway_challenges", ""),
    ("$fairway_error_fallback", ""),
];

/// Declares them. A pattern costs each request something, so what proxies in front say is looked for only where
/// somebody may be believed.
pub(super) fn write(scope: &Scope<'_>, http: &mut Block) {
    let global = &scope.configuration.global;
    for (name, otherwise) in SET {
        map(http, "", name, &[("default".into(), otherwise.into())]);
    }
    one_line::write(&scope.of_snippets, http);
    map(http, "", "$fairway_no_certificate", &[("default".into(), "".into())]);
    // Whose address a request has may not be known yet, and what is asked for too early stays.
    geo(http, "$realip_remote_addr", "$fairway_dollar", &[(Word::from("default"), "$".into())]);
    trust(&global.real_ip, http);
    let believes = global.real_ip.forwarded_headers;
    host(believes, http);
    scheme(believes, global.proxy_protocol, http);
    port(scope, http);
    let default = Word::from("default");
    let id = if global.generate_request_id { "$request_id" } else { "" };
    map(
        http,
        "$http_x_request_id",
        "$req_id",
        &[(default.clone(), "$http_x_request_id".into()), ("".into(), id.into())],
    );
    forwarded_for(&global.real_ip, global.proxy_protocol, http);
    // An upgrade to HTTP/2 in clear is never passed on (RFC 9113 section 3.1), nor what some servers may read as one.
    map(
        http,
        "$http_upgrade",
        "$fairway_upgrade",
        &[
            (default.clone(), "$http_upgrade".into()),
            ("~*(^|,)\\s*h2".into(), "".into()),
            ("~[^-A-Za-z0-9./_+, ]".into(), "".into()),
        ],
    );
    let kept = if global.upstream_keep_alive.connections > 0 { "" } else { "close" };
    map(
        http,
        "$fairway_upgrade",
        "$connection_upgrade",
        &[(default.clone(), "upgrade".into()), ("".into(), kept.into())],
    );
    map(
        http,
        "$request_uri",
        "$fairway_uri_without_slash",
        &[
            (default.clone(), "$request_uri".into()),
            ("~^(?<fairway_cut>.*)/$".into(), "$fairway_cut".into()),
        ],
    );
    // In clear, what is there stays.
    let hsts = policy::hsts::value(global).unwrap_or_default();
    map(
        http,
        "$https",
        "$fairway_hsts",
        &[
            (default, "$sent_http_strict_transport_security".into()),
            ("on".into(), Word::literal(hsts)),
        ],
    );
}

/// Whether the peer is believed.
fn trust(real: &RealIp, http: &mut Block) {
    let networks = || {
        let nets = beside_default(real.trusted.iter().copied());
        nets.map(|net| (net, Word::from("1"))).filter(|_| real.forwarded_headers)
    };
    let everybody = real.forwarded_headers && real.by_default;
    let mut trusted = vec![("default".into(), if everybody { "1" } else { "0" }.into())];
    trusted.extend(networks().filter(|_| !everybody));
    // Behind passthrough the peer is this process, which says who its own peer is.
    map(
        http,
        "$realip_remote_addr",
        "$fairway_peer",
        &[
            ("default".into(), "$realip_remote_addr".into()),
            ("unix:".into(), "$proxy_protocol_addr".into()),
        ],
    );
    geo(http, "$fairway_peer", "$fairway_trusted", &trusted);
    let mut announced = vec![("default".into(), "0".into())];
    announced.extend(networks());
    geo(http, "$proxy_protocol_addr", "$fairway_trusted_source", &announced);
}

/// Networks as `geo` takes them beside its `default`. That is all of both families, so another word for one of them is
/// a duplicate, of which nginx warns: halves are none.
pub(super) fn beside_default(nets: impl Iterator<Item = IpNet>) -> impl Iterator<Item = Word> {
    let halves = |net: IpNet| match net.prefix_len() {
        0 => net.subnets(1).map(Iterator::collect).unwrap_or_default(),
        _ => vec![net],
    };
    nets.flat_map(halves).map(|net| Word::plain(net.to_string()))
}

fn host(believes: bool, http: &mut Block) {
    let name = if believes { "$fairway_own_host" } else { "$fairway_host_of_client" };
    let own = [(Word::from("default"), "$http_host".into()), ("".into(), "$host".into())];
    map(http, "$http_host", name, &own);
    if believes {
        map(
            http,
            "$fairway_trusted$http_x_forwarded_host",
            "$fairway_host_of_client",
            &[
                (Word::from("default"), "$fairway_own_host".into()),
                ("~^1(?<fairway_host>[^,\\s]+)".into(), "$fairway_host".into()),
            ],
        );
    }
    shown(http, "$best_http_host", "$fairway_host_of_client");
}

/// What snippets know under the name that ingress-nginx gives it. A `set` of theirs changes that alone, and neither
/// redirects nor what upstreams hear: ingress-nginx sets it anew behind them (lua_ingress.lua).
fn shown(http: &mut Block, name: &'static str, value: &'static str) {
    map(http, "", name, &[("default".into(), value.into())]);
}

fn scheme(believes: bool, proxy_protocol: bool, http: &mut Block) {
    shown(http, "$pass_access_scheme", "$fairway_scheme");
    if !believes && !proxy_protocol {
        return shown(http, "$fairway_scheme", "$scheme");
    }
    let mut entries = vec![(Word::from("default"), Word::from("$scheme"))];
    // Of the two that tell, the PROXY protocol is heard last (lua_ingress.lua).
    if proxy_protocol {
        entries.push(("~^443:".into(), "https".into()));
    }
    entries.push(("~^[0-9]*:1(?<fairway_proto>.+)$".into(), "$fairway_proto".into()));
    map(
        http,
        "$proxy_protocol_server_port:$fairway_trusted$http_x_forwarded_proto",
        "$fairway_scheme",
        &entries,
    );
}

fn port(scope: &Scope<'_>, http: &mut Block) {
    let global = &scope.configuration.global;
    let source = if global.proxy_protocol { "$proxy_protocol_server_port" } else { "$server_port" };
    // A `set` of a snippet changes the first one, and counts for the second one unless a header tells.
    let otherwise = |otherwise: &'static str| (Word::from("default"), Word::from(otherwise));
    let believes = global.real_ip.forwarded_headers;
    if believes {
        let told = "$fairway_trusted$http_x_forwarded_port";
        let of_header = || ("~^1(?<fairway_port>.+)$".into(), "$fairway_port".into());
        map(http, told, "$pass_server_port", &[otherwise(source), of_header()]);
        map(http, told, "$fairway_server_port", &[otherwise("$pass_server_port"), of_header()]);
    } else {
        map(http, "", "$pass_server_port", &[otherwise(source)]);
    }
    let port = if believes { "$fairway_server_port" } else { "$pass_server_port" };
    let mut known = vec![
        (Word::from("default"), Word::from(port)),
        (Word::from(scope.environment.https_port), Word::from(443_u16)),
    ];
    // Behind passthrough there is a socket without a port.
    if scope.environment.passthrough {
        known.push(("".into(), 443_u16.into()));
    }
    map(http, port, "$fairway_pass_port", &known);
    shown(http, "$pass_port", "$fairway_pass_port");
}

/// X-Forwarded-For towards upstreams: that of this name with one more, whichever is believed.
fn forwarded_for(real: &RealIp, proxy_protocol: bool, http: &mut Block) {
    let received = Word::from("$http_x_forwarded_for");
    let direct = if proxy_protocol { "$proxy_protocol_addr" } else { "$fairway_peer" };
    let mut all = Block::default();
    all.entry("default".into(), vec![received.clone().then(", ").then(direct)]);
    all.entry("".into(), words![direct]);
    http.open("map", vec![received.clone(), "$fairway_full_forwarded_for".into()], all);
    if real.forwarded_headers && real.full_forwarded_for {
        // What snippets know it by, and may make anew.
        shown(http, "$full_x_forwarded_for", "$fairway_full_forwarded_for");
    }
    // What came through a trusted proxy about the client, which may be nothing, or who is announced.
    let mut told = Block::default();
    told.entry("default".into(), words!["$proxy_protocol_addr"]);
    told.entry("~^1(?<fairway_told>.*)$".into(), words!["$fairway_told"]);
    let source =
        Word::from("$fairway_trusted_source").then(variable_of(&real.forwarded_for_header));
    http.open("map", vec![source, "$fairway_told_by_proxy_protocol".into()], told);
}

/// The variable of a request header.
pub(super) fn variable_of(header: &str) -> Word {
    let name = header.to_ascii_lowercase().replace('-', "_");
    Word::plain(format!("$http_{name}"))
}

/// A block `map`; the keys are those of nginx: `~` for a pattern, `default` for the rest.
pub(super) fn map(
    http: &mut Block,
    source: &'static str,
    variable: &'static str,
    entries: &[(Word, Word)],
) {
    table(http, "map", words![source, variable], entries);
}

/// A block `geo`.
pub(super) fn geo(
    http: &mut Block,
    source: &'static str,
    variable: &'static str,
    entries: &[(Word, Word)],
) {
    table(http, "geo", words![source, variable], entries);
}

fn table(http: &mut Block, name: &'static str, of: Vec<Word>, entries: &[(Word, Word)]) {
    let mut block = Block::default();
    for (key, value) in entries {
        block.entry(key.clone(), vec![value.clone()]);
    }
    http.open(name, of, block);
}

#[cfg(test)]
mod tests {
    use super::{Word, beside_default};

    #[test]
    fn all_addresses_of_a_family_are_said_in_halves() {
        let nets = ["0.0.0.0/0", "::/0", "10.0.0.0/8"].map(|net| net.parse().expect("a network"));
        let words: Vec<_> = beside_default(nets.into_iter()).collect();
        let said = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1", "10.0.0.0/8"];
        assert_eq!(words, said.map(Word::plain));
    }
}
