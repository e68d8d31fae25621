//! How nginx itself is set up, for the engine that has one. For any other these names have no effect, and a row in
//! `data/config-map.tsv` that says why.

use crate::settings::{Key, Settings, parse};
use ipnet::IpNet;
use model::{Hashes, Severity, Tuning};
use std::collections::BTreeMap;
use std::time::Duration;

static OPEN_FILES: Key<u64> = Key::config_map("max-worker-open-files", parse::size);
static CONNECTIONS: Key<u32> = Key::config_map("max-worker-connections", parse::count);
static AFFINITY: Key<Vec<String>> = Key::config_map("worker-cpu-affinity", affinity);
static MULTI_ACCEPT: Key<bool> = Key::config_map("enable-multi-accept", parse::boolean);
static DEBUG: Key<Vec<IpNet>> = Key::config_map("debug-connections", parse::networks);
static REUSE_PORT: Key<bool> = Key::config_map("reuse-port", parse::boolean);
static AIO_WRITE: Key<bool> = Key::config_map("enable-aio-write", parse::boolean);
static ONLY_IPV4_NAMES: Key<bool> = Key::config_map("disable-ipv6-dns", parse::boolean);
static GRPC_BUFFER: Key<u32> = Key::config_map("grpc-buffer-size-kb", parse::count);
static ACCESS_LOG: Key<Vec<String>> = Key::config_map("access-log-params", access_log);
static GEOIP_RELOAD: Key<u32> = Key::config_map("geoip2-autoreload-in-minutes", parse::count);
static SHARED_DICTS: Key<Vec<String>> = Key::config_map("lua-shared-dicts", parse::list);
static NAMES_BUCKET: Key<u32> = Key::config_map("server-name-hash-bucket-size", size);
static NAMES: Key<u32> = Key::config_map("server-name-hash-max-size", size);
static MAP_BUCKET: Key<u32> = Key::config_map("map-hash-bucket-size", size);
static VARIABLES_BUCKET: Key<u32> = Key::config_map("variables-hash-bucket-size", size);
static VARIABLES: Key<u32> = Key::config_map("variables-hash-max-size", size);
static HEADERS_BUCKET: Key<u32> = Key::config_map("proxy-headers-hash-bucket-size", size);
static HEADERS: Key<u32> = Key::config_map("proxy-headers-hash-max-size", size);

/// Dictionaries that the Lua of ingress-nginx kept its own state in.
const DICTS: [&str; 7] = [
    "configuration_data",
    "certificate_data",
    "balancer_ewma",
    "balancer_ewma_last_touched_at",
    "balancer_ewma_locks",
    "certificate_servers",
    "ocsp_response_cache",
];
/// The largest dictionary of ingress-nginx.
const LARGEST_DICT: u64 = 200 << 20;

/// Reads all of them; what is wrong with values stays in `settings`.
pub(crate) fn read(settings: &mut Settings<'_>) -> Tuning {
    let minutes = settings.get_or(&GEOIP_RELOAD, 0);
    Tuning {
        open_files: settings.get(&OPEN_FILES).filter(|number| *number > 0),
        connections_by_files: settings.get(&CONNECTIONS) == Some(0),
        affinity: settings.get_or(&AFFINITY, Vec::new()),
        multi_accept: settings.get(&MULTI_ACCEPT),
        debug: settings.get_or(&DEBUG, Vec::new()),
        reuse_port: settings.get(&REUSE_PORT),
        aio_write: settings.get(&AIO_WRITE),
        only_ipv4_names: settings.get(&ONLY_IPV4_NAMES),
        grpc_buffer: settings
            .get(&GRPC_BUFFER)
            .and_then(|number| usize::try_from(number).ok()?.checked_mul(1 << 10))
            .filter(|bytes| (1..=1 << 30).contains(bytes)),
        access_log: settings.get_or(&ACCESS_LOG, Vec::new()),
        geoip_reload: (minutes > 0).then(|| Duration::from_secs(60 * u64::from(minutes))),
        shared_dicts: shared_dicts(settings),
        hashes: Hashes {
            names_bucket: settings.get(&NAMES_BUCKET),
            names: settings.get(&NAMES),
            map_bucket: settings.get(&MAP_BUCKET),
            variables_bucket: settings.get(&VARIABLES_BUCKET),
            variables: settings.get(&VARIABLES),
            headers_bucket: settings.get(&HEADERS_BUCKET),
            headers: settings.get(&HEADERS),
        },
    }
}

/// Dictionaries of raw configuration; those of ingress-nginx itself hold nothing here.
fn shared_dicts(settings: &mut Settings<'_>) -> BTreeMap<String, u64> {
    let mut dicts = BTreeMap::new();
    for item in settings.get_or(&SHARED_DICTS, Vec::new()) {
        match dict(&item) {
            Some((name, _)) if DICTS.contains(&name.as_str()) => {}
            Some((name, bytes)) => drop(dicts.insert(name, bytes)),
            None => {
                let message = format!(
                    "{item:?} is no dictionary and left out: write a name and its MiB (or k, m), such as mine:5, \
                     200m at most; names that begin with fairway are taken"
                );
                settings.note(SHARED_DICTS.about.name, Severity::Warning, message);
            }
        }
    }
    dicts
}

fn dict(item: &str) -> Option<(String, u64)> {
    let (name, size) = item.split_once(':')?;
    let (name, size) = (name.trim(), size.trim());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with("fairway");
    // A number alone counts in MiB.
    let bytes = match size.parse::<u64>() {
        Ok(number) => number.checked_mul(1 << 20)?,
        Err(_) => parse::size(size).ok()?,
    };
    // Lua refuses less than 8 KiB, nginx less than eight pages.
    (is_name && (32 << 10..=LARGEST_DICT).contains(&bytes)).then(|| (name.to_owned(), bytes))
}

/// `auto`, with or without a mask, or masks of ones and zeros.
fn affinity(text: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    let masks = if words.first().is_some_and(|word| word == "auto") { &words[1..] } else { &words };
    let is_mask = |word: &String| word.len() <= 1024 && word.bytes().all(|b| b"01".contains(&b));
    if masks.iter().all(is_mask) && (words.len() == masks.len() || masks.len() <= 1) {
        Ok(words)
    } else {
        Err("is no affinity of nginx: write auto, or masks such as 0001 0010".to_owned())
    }
}

/// `buffer=16k`, `flush=5s`, `gzip=1` (ngx_http_log_module).
fn access_log(text: &str) -> Result<Vec<String>, String> {
    let is_parameter = |word: &str| match word.split_once('=') {
        Some(("buffer", size)) => parse::buffer(size).is_ok(),
        Some(("flush", time)) => parse::duration(time).is_ok(),
        Some(("gzip", level)) => level.parse::<u8>().is_ok_and(|level| (1..=9).contains(&level)),
        _ => word == "gzip",
    };
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words.iter().find(|word| !is_parameter(word)) {
        None => Ok(words.into_iter().map(str::to_owned).collect()),
        Some(wrong) => Err(format!(
            "has the parameter {wrong:?}, which is not understood: write such as buffer=16k flush=5s"
        )),
    }
}

/// The size of a hash or of its buckets.
fn size(text: &str) -> Result<u32, String> {
    match parse::count(text)? {
        number @ 1..=0x0100_0000 => Ok(number),
        _ => Err("is no size of a hash: write a number such as 128".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{CONFIG_MAP, NameFate};

    #[test]
    fn what_is_read_here_is_what_the_table_says() {
        let read = [
            OPEN_FILES.about.name,
            AFFINITY.about.name,
            MULTI_ACCEPT.about.name,
            DEBUG.about.name,
            REUSE_PORT.about.name,
            AIO_WRITE.about.name,
            ONLY_IPV4_NAMES.about.name,
            GRPC_BUFFER.about.name,
            ACCESS_LOG.about.name,
            GEOIP_RELOAD.about.name,
            SHARED_DICTS.about.name,
            NAMES_BUCKET.about.name,
            NAMES.about.name,
            MAP_BUCKET.about.name,
            VARIABLES_BUCKET.about.name,
            VARIABLES.about.name,
            HEADERS_BUCKET.about.name,
            HEADERS.about.name,
            // Of an Ingress, too: they are read there.
            "proxy-busy-buffers-size",
            "proxy-max-temp-file-size",
        ];
        let told = CONFIG_MAP.iter().filter(|row| row.fate == NameFate::Tuning);
        let told: std::collections::BTreeSet<&str> = told.map(|row| row.name).collect();
        assert_eq!(read.into_iter().collect::<std::collections::BTreeSet<_>>(), told);
    }

    #[test]
    fn affinity_is_auto_or_masks() {
        for right in ["auto", "auto 0101", "0001 0010", "1"] {
            assert!(affinity(right).is_ok(), "{right}");
        }
        for wrong in ["auto 01 10", "0-3", "0001;", "01 auto"] {
            assert!(affinity(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_dictionary_has_a_name_of_its_own_and_a_size() {
        assert_eq!(dict("mine: 5"), Some(("mine".to_owned(), 5 << 20)));
        assert_eq!(dict("mine:64k"), Some(("mine".to_owned(), 64 << 10)));
        for wrong in ["mine", "mine:", "mine:201", "mine:1k", "fairway:5", "a b:5", "0a:5"] {
            assert_eq!(dict(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parameters_are_those_of_nginx() {
        assert!(access_log("buffer=16k flush=5s gzip").is_ok());
        assert!(access_log("buffer=16k; deny all").is_err() && access_log("if=$x").is_err());
    }
}
