//! Words by which a text in nginx's own language may guard something.

/// What a text that nobody understands may guard, by the words in it: also who a client is, for lists of addresses, and
/// what applications are told in headers and believe.
const GUARDS: [&str; 30] = [
    "deny",
    "satisfy",
    "auth_basic",
    "auth_request",
    "limit_except",
    "limit_req",
    "limit_conn",
    "valid_referers",
    "internal",
    "access_by_lua_block",
    "access_by_lua_file",
    "access_by_lua",
    "rewrite_by_lua_block",
    "rewrite_by_lua_file",
    "rewrite_by_lua",
    "js_access",
    "auth_jwt",
    "auth_digest",
    "secure_link",
    "modsecurity",
    "modsecurity_rules",
    "modsecurity_rules_file",
    "modsecurity_rules_remote",
    "ssl_verify_client",
    "set_real_ip_from",
    "real_ip_header",
    "more_clear_input_headers",
    "more_set_input_headers",
    "proxy_set_header",
    "grpc_set_header",
];
/// The same for what stands in a server or in a location.
const ANSWERS: [&str; 2] = ["return", "if"];

/// The word by which a text may guard something; `name` is the key that has it.
pub fn guard(name: &str, text: &str) -> Option<&'static str> {
    let is_in_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    // An http-snippet may have servers.
    let mut inner = matches!(name, "server-snippet" | "location-snippet");
    let mut words = text.split(|character| !is_in_word(character));
    words.find_map(|word| {
        inner |= name == "http-snippet" && word == "server";
        let answers = if inner { &ANSWERS[..] } else { &[] };
        GUARDS.iter().chain(answers).find(|guard| **guard == word).copied()
    })
}
