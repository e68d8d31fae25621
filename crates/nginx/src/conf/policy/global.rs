//! Settings of the process as a whole (`model::Global`), as far as they belong to `http`.

use super::super::log_target;
use super::super::pattern::pattern_of_all;
use super::super::tree::{put, words};
use super::super::{Block, Scope, Word};
use model::snippet::OtherRow;
use model::{
    Block as Blocked, BlockList, Compression, Configuration, Global, Hashes, LogFormat, LogTarget,
    MEDIA_TYPES, Part, Template, TlsSettings, TlsVersion, Tuning, Unwanted, Variable,
};
use std::collections::BTreeSet;

/// Writes them.
pub(in crate::conf) fn write(scope: &mut Scope<'_>, http: &mut Block) {
    let global = scope.configuration.global.clone();
    let tuning = global.tuning();
    let [bucket, most] = names(scope.configuration);
    put!(http, "server_names_hash_bucket_size", bucket);
    put!(http, "server_names_hash_max_size", most);
    hashes(&tuning.hashes, http);
    connections(&global, tuning, http);
    super::real_ip::write(scope.environment, &global, http);
    headers(&global, http);
    tls(scope, &global.tls, http);
    compression(&global.compression, http);
    logs(&global, http);
    blocked(&global.block, http);
    geoip2(scope, http);
}

/// An entry of the hash of server names: a pointer, and the name with its length, aligned.
pub(crate) fn entry(name: &str) -> usize {
    const WORD: usize = size_of::<usize>();
    WORD + (name.len() + 2).next_multiple_of(WORD)
}

/// Sizes of the hash of server names, as ingress-nginx computes them as far as that is small: of a bucket, and how many
/// there are at most. nginx tries all numbers of buckets up to that where names of one hash find none, and clears that
/// many for each.
pub(crate) fn names(configuration: &Configuration) -> [usize; 2] {
    let hashes = &configuration.global.tuning().hashes;
    let (mut longest, mut total, mut number) = (0, 0_usize, 0_usize);
    for server in configuration.servers.values() {
        let names = server.other_names().into_iter().map(|alias| alias.to_string());
        for name in names.chain([server.name.as_str().to_owned()]) {
            longest = longest.max(entry(&name));
            total += name.len();
            number += 1;
        }
    }
    let at_least = |asked: Option<u32>, least: usize| {
        asked.and_then(|asked| usize::try_from(asked).ok()).unwrap_or(0).max(least)
    };
    let most = (2 * number).next_power_of_two().max(1024);
    // Among many names, room for a few that meet.
    let few = if number > 512 { 4 } else { 1 };
    let bucket = at_least(hashes.names_bucket, (few * longest + 8).next_power_of_two().max(64));
    [bucket, at_least(hashes.names.or(Some(1024)), total.next_power_of_two().min(most))]
}

/// Sizes of the other hashes: what our own blocks need, at least.
fn hashes(hashes: &Hashes, http: &mut Block) {
    let at_least = |asked: Option<u32>, least: u32| asked.unwrap_or(least).max(least);
    put!(http, "types_hash_max_size", 2048_u32);
    put!(http, "variables_hash_bucket_size", at_least(hashes.variables_bucket, 256));
    put!(http, "variables_hash_max_size", at_least(hashes.variables, 2048));
    put!(http, "map_hash_bucket_size", at_least(hashes.map_bucket, 128));
    put!(http, "map_hash_max_size", 65_536_u32);
    put!(http, "proxy_headers_hash_max_size", at_least(hashes.headers, 1024));
    put!(http, "proxy_headers_hash_bucket_size", at_least(hashes.headers_bucket, 128));
}

/// The types of answers that snippets make, by the extensions of paths.
fn media_types(http: &mut Block) {
    let mut block = Block::default();
    for (media, extensions) in MEDIA_TYPES {
        block.put(media, extensions.split(' ').map(Word::plain).collect());
    }
    http.open("types", vec![], block);
}

fn connections(global: &Global, tuning: &Tuning, http: &mut Block) {
    let limits = &global.limits;
    put!(http, "aio", "threads");
    put!(http, "aio_write", tuning.aio_write.unwrap_or(true));
    put!(http, "sendfile", true);
    put!(http, "tcp_nopush", true);
    put!(http, "tcp_nodelay", true);
    put!(http, "reset_timedout_connection", true);
    put!(http, "log_subrequest", true);
    let default_type = global.default_type.as_deref().unwrap_or("text/html");
    put!(http, "default_type", Word::plain(default_type));
    media_types(http);
    put!(http, "keepalive_timeout", global.keep_alive.idle);
    put!(http, "keepalive_requests", global.keep_alive.requests);
    put!(http, "keepalive_time", global.keep_alive.age);
    put!(http, "client_header_buffer_size", limits.header_first);
    let count = (limits.header_total / limits.header_line.max(1)).max(1);
    put!(http, "large_client_header_buffers", count, limits.header_line);
    put!(http, "client_header_timeout", limits.header_timeout);
    put!(http, "client_body_timeout", limits.body_timeout);
    put!(http, "send_timeout", limits.send_timeout);
    put!(http, "client_body_buffer_size", limits.body_buffer);
    put!(http, "http2_max_concurrent_streams", global.http2_streams);
    put!(http, "proxy_ssl_session_reuse", true);
    put!(http, "uninitialized_variable_warn", false);
    put!(http, "port_in_redirect", false);
    if global.relative_redirects {
        put!(http, "absolute_redirect", false);
    }
}

fn headers(global: &Global, http: &mut Block) {
    put!(http, "underscores_in_headers", global.underscores_in_headers);
    put!(http, "ignore_invalid_headers", global.ignore_invalid_headers);
    put!(http, "server_tokens", global.server_tokens);
    if !global.server_tokens && !global.upstream_server_header {
        put!(http, "more_clear_headers", "Server");
    }
    put!(http, "proxy_pass_header", "Date");
    if global.upstream_server_header {
        put!(http, "proxy_pass_header", "Server");
    }
    for name in &global.hide_headers {
        put!(http, "proxy_hide_header", Word::plain(name));
        put!(http, "grpc_hide_header", Word::plain(name));
    }
    for header in &global.add_headers {
        http.append(super::custom_headers::set(header));
    }
}

fn tls(scope: &mut Scope<'_>, settings: &TlsSettings, http: &mut Block) {
    let TlsSettings {
        versions,
        ciphers,
        tickets,
        session_cache,
        ticket_key,
        session_cache_size,
        session_timeout,
        record_size,
        curves,
        // Lua staples.
        ocsp: _,
        // The catch-all refuses.
        reject_unknown_names: _,
    } = settings;
    http.put("ssl_protocols", protocols(versions.iter().copied()));
    put!(http, "ssl_prefer_server_ciphers", true);
    if !ciphers.is_empty() {
        put!(http, "ssl_ciphers", Word::plain(ciphers.join(":")));
    }
    put!(http, "ssl_early_data", false);
    match session_cache {
        true => {
            let size = Word::plain(format!("shared:SSL:{session_cache_size}"));
            put!(http, "ssl_session_cache", size);
        }
        false => put!(http, "ssl_session_cache", false),
    }
    put!(http, "ssl_session_timeout", *session_timeout);
    put!(http, "ssl_session_tickets", *tickets);
    if let Some(key) = ticket_key {
        let file = scope.file("key", key.0.clone());
        put!(http, "ssl_session_ticket_key", file);
    }
    put!(http, "ssl_buffer_size", *record_size);
    if curves.is_empty() {
        put!(http, "ssl_ecdh_curve", "auto")
    } else {
        put!(http, "ssl_ecdh_curve", Word::plain(curves.join(":")))
    }
}

/// Versions of TLS as nginx names them.
pub(in crate::conf) fn protocols(versions: impl Iterator<Item = TlsVersion>) -> Vec<Word> {
    let name = |version| match version {
        TlsVersion::Tls12 => Word::from("TLSv1.2"),
        TlsVersion::Tls13 => Word::from("TLSv1.3"),
    };
    versions.map(name).collect()
}

fn compression(compression: &Compression, http: &mut Block) {
    let Compression { gzip, brotli } = compression;
    if let Some(gzip) = gzip {
        put!(http, "gzip", true);
        put!(http, "gzip_comp_level", gzip.level);
        put!(http, "gzip_http_version", "1.1");
        put!(http, "gzip_min_length", gzip.eligible.min_length);
        http.put("gzip_types", types(gzip.eligible.types.as_ref()));
        put!(http, "gzip_proxied", "any");
        put!(http, "gzip_vary", true);
        match &gzip.not_for {
            None => {}
            Some(Unwanted::OldExplorer) => put!(http, "gzip_disable", "msie6"),
            Some(Unwanted::Matching(disabled)) => {
                put!(http, "gzip_disable", pattern_of_all(disabled.source()));
            }
        }
    }
    if let Some(brotli) = brotli {
        put!(http, "brotli", true);
        put!(http, "brotli_comp_level", brotli.level);
        put!(http, "brotli_min_length", brotli.eligible.min_length);
        http.put("brotli_types", types(brotli.eligible.types.as_ref()));
    }
}

fn types(types: Option<&BTreeSet<String>>) -> Vec<Word> {
    match types {
        None => words!["*"],
        // text/html is always among them, and nginx warns about a duplicate.
        Some(types) => {
            let other = types.iter().filter(|name| *name != "text/html").map(Word::plain);
            let other: Vec<Word> = other.collect();
            if other.is_empty() { words!["text/html"] } else { other }
        }
    }
}

/// Those of [`OtherRow`] that nginx has not by itself: its template declares them, or a directive does.
const DECLARED: [&str; 6] = [
    "connection_upgrade",
    "full_x_forwarded_for",
    "auth_cookie",
    "loggable",
    "balancer_ewma_score",
    "invalid_referer",
];

/// nginx does not start with a variable that nobody declares. Whoever declares one further down has the last word.
fn of_snippets(template: &Template, http: &mut Block) {
    let own = |name: &str| OtherRow::of(name).is_none_or(|row| DECLARED.contains(&row.name));
    let names = template.parts().iter().filter_map(|part| match part {
        Part::Variable(Variable::OfSnippets(name)) if own(name) => Some(&**name),
        _ => None,
    });
    for name in names.collect::<BTreeSet<&str>>() {
        let mut nothing = Block::default();
        nothing.entry("default".into(), words![""]);
        http.open("map", words!["", Word::from("$").then(Word::plain(name))], nothing);
    }
}

fn logs(global: &Global, http: &mut Block) {
    let LogFormat { template, json, unescaped } = &global.log_format;
    let escape = match (json, unescaped) {
        (_, true) => "escape=none",
        (true, false) => "escape=json",
        (false, false) => "escape=default",
    };
    of_snippets(template, http);
    put!(http, "log_format", "upstreaminfo", escape, Word::exact(template));
    let mut loggable = Block::default();
    loggable.entry("default".into(), words![1_u8]);
    for url in &global.skip_access_log {
        loggable.entry(Word::key(url), words![0_u8]);
    }
    for skipped in &global.skip_access_log_patterns {
        loggable.entry(Word::from("~").then(pattern_of_all(skipped.source())), words![0_u8]);
    }
    http.open("map", words!["$request_uri", "$loggable"], loggable);
    if global.access_log {
        http.put("access_log", access_log(global))
    } else {
        put!(http, "access_log", false)
    }
}

/// How lines of the log are gathered where `access-log-params` says nothing, as the native engine does: a write for
/// each costs as much as a read. A pipe takes a page at a time whole, so lines of several workers mix only where one
/// is longer than that.
const GATHERED: [&str; 2] = ["buffer=4k", "flush=100ms"];

/// The parameters of `access_log`.
pub(in crate::conf) fn access_log(global: &Global) -> Vec<Word> {
    let more = match &global.logs.access {
        // It takes one line at a time.
        LogTarget::Syslog(_) => Vec::new(),
        _ if global.tuning().access_log.is_empty() => GATHERED.map(str::to_owned).into(),
        _ => global.tuning().access_log.clone(),
    };
    let more = more.into_iter().map(Word::plain);
    let target = words![log_target::word(&global.logs.access), "upstreaminfo"];
    target.into_iter().chain(more).chain(words!["if=$loggable"]).collect()
}

fn blocked(block: &Blocked, http: &mut Block) {
    let Blocked { addresses, user_agents, referers } = block;
    for net in super::access::nets(addresses) {
        put!(http, "deny", net);
    }
    let lists =
        [(user_agents, "$http_user_agent", "$block_ua"), (referers, "$http_referer", "$block_ref")];
    for (list, source, variable) in lists {
        if !list.is_empty() {
            http.open("map", words![source, variable], list_of(list));
        }
    }
}

fn list_of(list: &BlockList) -> Block {
    let BlockList { values, patterns } = list;
    let mut block = Block::default();
    block.entry("default".into(), words![0_u8]);
    for value in values {
        block.entry(Word::key(value), words![1_u8]);
    }
    for listed in patterns {
        block.entry(Word::from("~*").then(pattern_of_all(listed.source())), words![1_u8]);
    }
    block
}

/// Databases about addresses; the variables are those of ingress-nginx.
fn geoip2(scope: &Scope<'_>, http: &mut Block) {
    let global = &scope.configuration.global;
    let Some(folder) = scope.environment.geoip.as_ref().filter(|_| global.geoip2) else { return };
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut known = BTreeSet::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "mmdb")) {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut block = Block::default();
        if let Some(pause) = global.tuning().geoip_reload {
            put!(block, "auto_reload", pause);
        }
        for variable in model::GeoVariable::all() {
            let is_here = variable.databases.iter().any(|end| stem.ends_with(end));
            if is_here && known.insert(variable.name) {
                let name = Word::plain(format!("$geoip2_{}", variable.name));
                let path = variable.path.iter().map(|step| match step {
                    model::GeoStep::Key(key) => Word::from(*key),
                    model::GeoStep::Index(index) => Word::from(*index),
                });
                let default = (!variable.default.is_empty())
                    .then(|| Word::from("default=").then(variable.default));
                let source = Word::from("source=$remote_addr");
                block.entry(name, default.into_iter().chain([source]).chain(path).collect());
            }
        }
        http.open("geoip2", words![file.as_path()], block);
    }
}
