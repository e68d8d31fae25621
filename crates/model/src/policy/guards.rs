//! Words by which a text in nginx's own language may guard something.

/// What a text that nobody understands may guard, by the words in it: also who a client is, for lists of addresses, and
/// what applications are told in headers and believe.
const GUARDS: [&str; 33] = [
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
    "server_rewrite_by_lua_block",
    "server_rewrite_by_lua_file",
    "server_rewrite_by_lua",
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
/// The same for what stands in a server or in a location, that of an authenticator among them.
const ANSWERS: [&str; 2] = ["return", "if"];
/// The same for the `server-snippet` of an Ingress and what its own namespace has of the host: what takes requests off
/// paths, so that their Services never see them. Most of that guards nothing, and nobody else is closed for it; nor is
/// everybody for a text of the ConfigMap.
const LEADS: [&str; 2] = ["rewrite", "location"];

/// The word by which a text may guard something; `name` is the key that has it.
pub fn guard(name: &str, text: &str) -> Option<&'static str> {
    // An http-snippet may have servers.
    let mut inner = matches!(
        name,
        "server-snippet"
            | "location-snippet"
            | "configuration-snippet"
            | "global-auth-snippet"
            | "auth-snippet"
    );
    words(text).find_map(|word| {
        inner |= name == "http-snippet" && word == "server";
        let answers = if inner { &ANSWERS[..] } else { &[] };
        GUARDS.iter().chain(answers).find(|guard| **guard == word).copied()
    })
}

/// The word by which the `server-snippet` of an Ingress may guard what its namespace has of a host.
pub fn guard_of_host(text: &str) -> Option<&'static str> {
    let leads = |word: &str| LEADS.iter().find(|guard| **guard == word).copied();
    guard("server-snippet", text).or_else(|| words(text).find_map(leads))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
}

#[cfg(test)]
mod tests {
    use super::{guard, guard_of_host};

    #[test]
    fn what_answers_guards_wherever_a_text_is_in_a_server_or_a_location() {
        let text = "if ($http_x_token != \"1\") { return 401; }";
        for name in [
            "server-snippet",
            "location-snippet",
            "configuration-snippet",
            "global-auth-snippet",
            "auth-snippet",
        ] {
            assert_eq!(guard(name, text), Some("if"), "{name}");
        }
        assert_eq!(guard("http-snippet", text), None, "nothing of it is one of http");
        assert_eq!(guard("http-snippet", &format!("server {{ {text} }}")), Some("if"));
    }

    #[test]
    fn what_leads_requests_away_guards_a_host_and_no_text_for_all() {
        for (text, word) in [
            ("rewrite ^/admin /denied last;", "rewrite"),
            ("location /admin { }", "location"),
            ("location /admin { deny all; }", "deny"),
        ] {
            assert_eq!(guard_of_host(text), Some(word), "{text}");
        }
        assert_eq!(guard_of_host("rewrite_log on; add_header Location /x;"), None);
        for name in ["server-snippet", "location-snippet", "configuration-snippet"] {
            assert_eq!(guard(name, "rewrite ^/a /b last; location /c { }"), None, "{name}");
        }
    }

    #[test]
    fn a_program_that_runs_for_whole_servers_guards() {
        for name in ["server_rewrite_by_lua_block", "server_rewrite_by_lua_file"] {
            assert_eq!(guard("http-snippet", &format!("{name} x;")), Some(name));
        }
    }
}
