//! Values: nearly right ones for each key, and texts that are wrong everywhere.

use fastrand::Rng;

/// A family of keys that counts only beside another one.
pub(super) const NEEDED: &[(&str, &str)] = &[
    ("auth-tls-", "auth-tls-secret"),
    ("auth-type", "auth-secret"),
    ("auth-realm", "auth-type"),
    ("auth-", "auth-url"),
    ("proxy-ssl-", "proxy-ssl-secret"),
    ("proxy-ssl-", "backend-protocol"),
    ("cors-", "enable-cors"),
    ("mirror-", "mirror-target"),
    ("fastcgi-", "backend-protocol"),
    ("session-cookie-", "affinity"),
    ("x-forwarded-prefix", "rewrite-target"),
    ("limit-", "limit-rps"),
    ("canary-", "canary"),
    ("modsecurity-", "enable-modsecurity"),
];

/// Regular expressions about which PCRE and the crates of Rust disagree, or that reach for names.
const PATTERNS: [&str; 38] = [
    r"\u0041",
    r"\U00000041",
    r"\p{Letter}",
    r"\p{L}+",
    r"\pN",
    r"\p{Greek}",
    r"\x{10FFFF}",
    r"\x{e9}",
    r"(?<remote_addr>.*)",
    r"(?P<loggable>0)?",
    r"(?<fairway_upstream>.*)",
    r"(?<http_authorization>x)",
    r"(?<args>.*)",
    r"(?<id>[0-9]+)-\k<id>",
    r"(?<a>x)(?<a>y)",
    r"(?P<n>a)(?P=n)",
    r"(?<averyveryverylongnameofmorethan32characters>.)",
    r"(?<é>.)",
    r"a**",
    r"a{2}{3}",
    r"a{,5}",
    r"a{70000}",
    r"([a-z]{500}){50}",
    r"[[:word:]]+[[:foo:]]",
    r"[a&&b]",
    r"[^]]",
    r"[]a]",
    r"[a--z]",
    r"(?R)",
    r"(?u:.)",
    r"(?x) a # b",
    r"(?-u:\xff)",
    r"(?<=a+)b",
    r"(?<!a|bc)d",
    r"(a)\2",
    r"\b{start}x",
    r"\z\A\Z\h\K\R\N\C",
    r"(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((x)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
];

/// Texts that no key asks for.
const ODD: [&str; 26] = [
    "",
    " ",
    "\0",
    "a\0b",
    "\n",
    "\r\nX-Injected: 1",
    "\"; return 200 injected; #",
    "}",
    "{",
    "a;}location /x{return 200;}",
    "${",
    "$",
    "$nope",
    "$1$9",
    "$remote_addr",
    "\\",
    "'",
    "\u{feff}é\u{202e}漢",
    "_",
    "off",
    "-1",
    "0",
    "18446744073709551616",
    "9223372036854775807",
    "999999999999g",
    "~*(",
];

/// Snippets: whole ones, broken ones, and some that get into the way of others.
const SNIPPETS: [&str; 14] = [
    "more_set_headers \"X-A: 1\";",
    "no_such_directive on;",
    "deny all; }",
    "location /x {",
    "set $fairway_upstream x;",
    "set $x '",
    "if ($x) { return 200; ",
    "proxy_pass http://${",
    "return 200 $unknown_variable_of_mine;",
    "include /nowhere/at/all.conf;",
    "client_max_body_size 1m; client_max_body_size 2m;",
    "location = /_fairway-auth-0 { return 200; }",
    "rewrite_by_lua_block { if }",
    "ssl_protocols nonsense;",
];

/// What a key may nearly be; the beginning of its name is enough.
const NEARLY: &[(&str, &[&str])] = &[
    ("rewrite-target", &["/$1", "/x/$2", "/", "$1"]),
    ("x-forwarded-prefix", &["/$1", "/p"]),
    ("app-root", &["/app", "/$uri"]),
    ("server-alias", &["alias.test", "*.alias.test, alias.*", "own.test", ".dots.test"]),
    ("auth-tls-secret", SECRETS),
    ("auth-tls-match-cn", &["CN=me", "CN=(a|b)"]),
    ("auth-tls-verify-depth", NUMBERS),
    ("auth-tls-verify-client", &["on", "off", "optional", "optional_no_ca"]),
    ("auth-tls-error-page", &["https://help.test/x", "@there", "/own"]),
    ("auth-secret-type", &["auth-file", "auth-map"]),
    ("auth-secret", &["passwords", "odd-passwords", "missing"]),
    ("auth-type", &["basic", "digest"]),
    ("auth-realm", &["off", "a realm"]),
    (
        "auth-url",
        &["http://echo.a.svc.cluster.local/x", "https://elsewhere.invalid/$uri", "http://$host/"],
    ),
    ("auth-signin", &["https://sign.test/?rd=$escaped_request_uri", "/sign-in"]),
    ("auth-cache-key", &["$http_authorization", "$remote_user$cookie_x"]),
    ("auth-cache-duration", &["200 401 5m", "200 99999999999d", "any 1y"]),
    ("auth-response-headers", &["X-User,X-Group", "Content-Length", "Host"]),
    ("auth-method", &["GET", "POST"]),
    ("auth-proxy-set-headers", &["a/headers", "b/headers"]),
    ("custom-headers", &["a/headers", "b/headers"]),
    ("fastcgi-params-configmap", &["a/headers", "b/headers"]),
    ("proxy-ssl-secret", SECRETS),
    ("proxy-ssl-verify-depth", NUMBERS),
    ("proxy-ssl-ciphers", &["HIGH:!aNULL", "NOPE", "@SECLEVEL=9:ALL"]),
    ("ssl-ciphers", &["HIGH:!aNULL", "NOPE", "ECDHE-RSA-AES128-GCM-SHA256"]),
    ("proxy-ssl-protocols", &["TLSv1.2 TLSv1.3", "SSLv2"]),
    ("backend-protocol", &["HTTP", "HTTPS", "GRPC", "GRPCS", "FCGI", "AUTO_HTTP"]),
    (
        "mirror-target",
        &["https://elsewhere.invalid/$request_uri", "http://echo.b.svc.cluster.local/"],
    ),
    ("cors-allow-origin", &["https://a.test, https://*.b.test", "*", "http://*.test:8080"]),
    ("custom-http-errors", &["404,503", "999", "200", "299,600"]),
    ("default-backend", &["echo", "missing"]),
    ("permanent-redirect-code", NUMBERS),
    ("temporal-redirect-code", NUMBERS),
    ("permanent-redirect", &["https://there.test/$1", "https://there.test"]),
    ("temporal-redirect", &["https://there.test/$1"]),
    ("affinity", &["cookie"]),
    ("load-balance", &["ewma", "round_robin"]),
    ("upstream-hash-by", &["$request_uri", "$nope"]),
    ("upstream-vhost", &["up.test", "$service_name.test"]),
    ("canary-by-header-pattern", &["^a+$", "(?<x>.)"]),
    ("denylist-source-range", &["192.0.2.0/24, 2001:db8::/32"]),
    ("allowlist-source-range", &["0.0.0.0/0, ::/0"]),
    ("whitelist-source-range", &["127.0.0.1", "192.0.2.0/33"]),
    ("proxy-cookie-", &["/ /x", "~*^/(.*)$ /$1", "a.test b.test"]),
    ("proxy-redirect-", &["http://a.test/", "~^/(.*)$", "default"]),
    ("satisfy", &["any", "all"]),
    ("limit-conn-zone-variable", &["$binary_remote_addr", "$http_x"]),
    ("limit-allowlist", &["127.0.0.0/8"]),
    ("limit-", NUMBERS),
    ("proxy-next-upstream", &["error timeout http_503", "off", "invalid_header non_idempotent"]),
    ("proxy-http-version", &["1.0", "1.1", "2"]),
    ("proxy-buffers-number", NUMBERS),
    ("proxy-buffer-size", SIZES),
    ("proxy-busy-buffers-size", SIZES),
    ("proxy-max-temp-file-size", SIZES),
    ("proxy-body-size", SIZES),
    ("client-body-buffer-size", SIZES),
    ("client-header-buffer-size", SIZES),
    ("large-client-header-buffers", &["4 8k", "1 1", "999999 9g"]),
    ("log-format-upstream", &["$remote_addr $nope", "$status \" '", "$loggable"]),
    ("skip-access-log-urls", &["/a,~^/b", "~["]),
    ("access-log-path", &["/nowhere/at/all.log", "/dev/null"]),
    ("error-log-path", &["/nowhere/at/all.log", "/dev/null"]),
    ("bind-address", &["127.0.0.1", "192.0.2.1", "::1"]),
    ("worker-cpu-affinity", &["auto", "0001 0010", "nonsense"]),
    ("block-", &["192.0.2.1", "~*bot,~[", "evil"]),
    ("gzip-", &["1", "9", "text/html text/html", "msie6", "~x"]),
    ("brotli-", &["1", "99", "text/html text/html"]),
    ("ssl-protocols", &["TLSv1.2", "TLSv1.3 TLSv1.2 SSLv3"]),
    ("ssl-ecdh-curve", &["X25519:P-256", "nope"]),
    ("syslog-host", &["127.0.0.1", "no such host", "unix:/dev/log"]),
    ("geoip", &["true"]),
];

const SECRETS: &[&str] = &[
    "a/authorities",
    "b/authorities",
    "a/lists",
    "b/lists",
    "a/no-der",
    "b/no-der",
    "a/flipped",
    "b/flipped",
    "a/keyless",
    "b/keyless",
    "missing",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "5",
    "200",
    "302",
    "399",
    "429",
    "503",
    "599",
    "600",
    "65536",
    "2147483648",
    "4294967296",
];
const SIZES: &[&str] = &["0", "1", "1k", "8k", "16m", "1g", "4096g", "9007199254740992", "8K8"];

/// A value for a key.
pub(super) fn of(rng: &mut Rng, key: &str) -> String {
    if key.ends_with("-snippet") {
        return any(rng, &SNIPPETS).to_owned();
    }
    let nearly = NEARLY.iter().find(|(beginning, _)| key.starts_with(beginning));
    match (rng.u8(..10), nearly) {
        (0..6, Some((_, values))) => any(rng, values).to_owned(),
        (0..6, None) => any(rng, &["true", "false", "1", "10", "10s", "1m"]).to_owned(),
        (6, _) => format!("~^{}", any(rng, &PATTERNS)),
        (7, _) => match rng.u8(..3) {
            0 => format!("CN={}", any(rng, &PATTERNS)),
            1 => format!("/{}", any(rng, &PATTERNS)),
            _ => any(rng, &PATTERNS).to_owned(),
        },
        (8, _) => long(rng),
        _ => any(rng, &ODD).to_owned(),
    }
}

/// A path of a rule; most begin as they must.
pub(super) fn path(rng: &mut Rng) -> String {
    let some =
        ["/", "/app", "/app/", "/a(b", "/x|/", "/_fairway-auth-0", "/_fairway-mirror-1", "/é"];
    match rng.u8(..16) {
        0..5 => any(rng, &some).to_owned(),
        5..9 => format!("/{}", any(rng, &PATTERNS)),
        9..13 => format!("/p/{}/(.*)", any(rng, &PATTERNS)),
        13 | 14 => format!("/{}", any(rng, &ODD)),
        _ => format!("/{}", long(rng)),
    }
}

/// A header of a ConfigMap that Ingresses name.
pub(super) fn header(rng: &mut Rng) -> (String, String) {
    let names = ["X-A", "Host", "Content-Length", "x_b", "X-A-Very-Long-Name-Indeed", "Set-Cookie"];
    let value = match rng.u8(..3) {
        0 => any(rng, &ODD).to_owned(),
        1 => long(rng),
        _ => "$remote_addr and more".to_owned(),
    };
    (any(rng, &names).to_owned(), value)
}

/// About as long as, or longer than, what a parameter of nginx may be; some of it doubles in quotes or in percent.
fn long(rng: &mut Rng) -> String {
    let unit = any(rng, &["a", "é", "\"", "\\\\", "x/", "(a)", "a,"]);
    let bytes = [500, 1400, 2100, 3990, 4200, 9000][rng.usize(..6)];
    unit.repeat(bytes / unit.len())
}

fn any<'a>(rng: &mut Rng, all: &[&'a str]) -> &'a str {
    all[rng.usize(..all.len())]
}
