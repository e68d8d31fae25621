//! The whole of nginx.conf: the process, its workers, and `http`.

use super::tree::{put, words};
use super::{Block, Environment, Scope, Text, Unwritable, Word, http, log_target, policy};
use model::{Configuration, ErrorLevel, LogTarget, Origin};
use std::collections::{BTreeMap, BTreeSet};

/// Connections of a worker at most (`max-worker-connections` of ingress-nginx).
const CONNECTIONS: usize = 16_384;
/// Files of a worker that are not for what it serves, and the fewest that it is granted.
const SPARE_FILES: u64 = 1024;

/// What nginx reads: nginx.conf and the files beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// nginx.conf.
    pub text: Text,
    /// Files that it names, by their names in [`Environment::files`]: certificates, keys, passwords.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Folders of what authenticators said, by their names in the one for them.
    pub remembered: BTreeSet<String>,
}

/// nginx.conf for a Configuration.
pub fn write(
    configuration: &Configuration,
    environment: &Environment,
) -> Result<Written, Unwritable> {
    write_closing(configuration, environment, &BTreeSet::new())
}

/// The same where nginx does not take the paths of some Ingresses: whatever they could mean answers 503.
pub fn write_closing(
    configuration: &Configuration,
    environment: &Environment,
    closed: &BTreeSet<Origin>,
) -> Result<Written, Unwritable> {
    let mut scope = Scope::new(environment, configuration, closed);
    let http = http::write(&mut scope);
    let mut main = process(configuration, environment);
    main.open("http", Vec::new(), http);
    Ok(Written { text: Text::of(&main)?, files: scope.files, remembered: scope.remembered })
}

/// nginx.conf before there is any Configuration: nothing but the socket that waits for endpoints.
pub fn idle(environment: &Environment) -> Result<Written, Unwritable> {
    let (configuration, closed) = (Configuration::default(), BTreeSet::new());
    let mut scope = Scope::new(environment, &configuration, &closed);
    let http = http::idle(&mut scope);
    let mut main = process(&configuration, environment);
    main.open("http", Vec::new(), http);
    Ok(Written { text: Text::of(&main)?, files: scope.files, remembered: scope.remembered })
}

fn process(configuration: &Configuration, environment: &Environment) -> Block {
    let global = &configuration.global;
    let workers =
        global.listeners.threads.map_or(environment.workers, |threads| threads.get().into());
    let mut main = Block::default();
    main.remark("Written by Fairway: changes are lost with the next one.");
    put!(main, "daemon", false);
    put!(main, "pid", environment.pid().as_path());
    if environment.root {
        put!(main, "user", "root");
    }
    modules(&mut main, configuration, environment);
    put!(main, "worker_processes", workers.max(1));
    let tuning = global.tuning();
    if !tuning.affinity.is_empty() {
        main.put("worker_cpu_affinity", tuning.affinity.iter().map(Word::plain).collect());
    }
    let computed = environment.open_files.saturating_sub(SPARE_FILES).max(SPARE_FILES);
    let files = tuning.open_files.unwrap_or(computed);
    put!(main, "worker_rlimit_nofile", files);
    put!(main, "worker_shutdown_timeout", global.shutdown_timeout);
    put!(main, "pcre_jit", true);
    main.put("error_log", error_log(configuration, environment));
    // Once more what is the end of a reload: the others may go where we do not read them.
    put!(main, "error_log", environment.refusals().as_path(), "emerg");
    // Before any block: nginx loads no modules after one.
    policy::raw::of_config_map(configuration, "main-snippet", |raw| raw.main.as_ref(), &mut main);
    let mut events = Block::default();
    put!(events, "multi_accept", tuning.multi_accept.unwrap_or(true));
    if tuning.connections_by_files {
        put!(events, "worker_connections", files * 3 / 4)
    } else {
        let connections = global.listeners.connections.unwrap_or(CONNECTIONS);
        put!(events, "worker_connections", connections);
    }
    put!(events, "use", "epoll");
    for net in &tuning.debug {
        put!(events, "debug_connection", Word::plain(net.to_string()));
    }
    main.open("events", Vec::new(), events);
    main
}

fn modules(main: &mut Block, configuration: &Configuration, environment: &Environment) {
    let global = &configuration.global;
    let mut load = |name: &str| put!(main, "load_module", environment.module(name).as_path());
    load("ndk_http_module.so");
    load("ngx_http_lua_module.so");
    load("ngx_http_headers_more_filter_module.so");
    if policy::raw::wants_modsecurity(configuration) {
        load("ngx_http_modsecurity_module.so");
    }
    if global.compression.brotli.is_some() {
        load("ngx_http_brotli_filter_module.so");
    }
    if global.geoip2 && environment.geoip.is_some() {
        load("ngx_http_geoip2_module.so");
    }
}

fn error_log(configuration: &Configuration, environment: &Environment) -> Vec<Word> {
    let logs = &configuration.global.logs;
    let usual = if environment.verbose { ErrorLevel::Debug } else { ErrorLevel::Notice };
    let level = match logs.error_level.unwrap_or(usual) {
        ErrorLevel::Critical => "crit",
        ErrorLevel::Error => "error",
        ErrorLevel::Warn => "warn",
        ErrorLevel::Notice => "notice",
        ErrorLevel::Info => "info",
        ErrorLevel::Debug => "debug",
    };
    let target = match &logs.error {
        LogTarget::Stdout | LogTarget::Stderr => Word::from("stderr"),
        other => log_target::word(other),
    };
    words![target, level]
}
