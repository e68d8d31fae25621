//! The variables that only snippets know.

use crate::{BadTemplate, Part, Template, Variable};

/// What becomes of a variable that templates of annotations do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// It has its value.
    Native,
    /// It is always empty here.
    Empty,
    /// It takes nginx.
    NeedsNginx,
}

/// One variable that only snippets know.
#[derive(Debug, PartialEq, Eq)]
pub struct OtherRow {
    /// Its name, or what it begins with.
    pub name: &'static str,
    /// Whether `name` is a beginning.
    pub prefix: bool,
    /// What becomes of it.
    pub fate: Knowledge,
    /// What it says.
    pub doc: &'static str,
}

impl OtherRow {
    /// The row of a variable, if there is one.
    pub fn of(name: &str) -> Option<&'static Self> {
        OTHERS.iter().find(|row| match name.strip_prefix(row.name) {
            Some("") => !row.prefix,
            Some(_) => row.prefix,
            None => false,
        })
    }

    /// What stands for a variable in a text of the controller, if it has its value there. One that is only empty here
    /// is not known: what hangs on its value would take all requests for one.
    pub fn part(name: &str) -> Option<Part> {
        let name = name.to_ascii_lowercase();
        let row = Self::of(&name)?;
        match (row.name, row.fate) {
            // They are counted where the process asks for them.
            _ if row.name.starts_with("connections_") => None,
            // Nobody declares them where nobody uses them, and then nginx does not start.
            ("balancer_ewma_score" | "full_x_forwarded_for" | "invalid_referer", _) => None,
            // As bytes it would be no text.
            ("binary_remote_addr", _) => Some(Part::Variable(Variable::RemoteAddr)),
            // There is no early data.
            ("ssl_early_data", _) | (_, Knowledge::Native) => {
                Some(Part::Variable(Variable::OfSnippets(name.into())))
            }
            (_, Knowledge::Empty | Knowledge::NeedsNginx) => None,
        }
    }

    /// Text with variables, those among them that [`Self::part`] knows.
    pub fn template(text: &str) -> Result<Template, BadTemplate> {
        Template::parse_for(text, Self::part)
    }
}

/// A variable of [`OTHERS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its row.
    pub row: &'static OtherRow,
    /// What follows the row's beginning.
    pub rest: String,
}

impl Other {
    /// Its name without `$`.
    pub fn name(&self) -> String {
        format!("{}{}", self.row.name, self.rest)
    }
}

const fn native(name: &'static str, doc: &'static str) -> OtherRow {
    OtherRow { name, prefix: false, fate: Knowledge::Native, doc }
}

const fn empty(name: &'static str, doc: &'static str) -> OtherRow {
    OtherRow { name, prefix: false, fate: Knowledge::Empty, doc }
}

const fn nginx(name: &'static str, doc: &'static str) -> OtherRow {
    OtherRow { name, prefix: false, fate: Knowledge::NeedsNginx, doc }
}

const fn prefix(row: OtherRow) -> OtherRow {
    OtherRow { prefix: true, ..row }
}

/// Variables of nginx and of ingress-nginx's template that [`Variable`] lacks.
pub const OTHERS: &[OtherRow] = &[
    native("binary_remote_addr", "the client's address as bytes; as a key it is the address"),
    native("limit_rate", "what `set $limit_rate` or `limit_rate` says"),
    native("limit_req_status", "PASSED, DELAYED, REJECTED and their dry runs"),
    native("limit_conn_status", "PASSED, REJECTED and their dry runs"),
    native("invalid_referer", "1 unless `valid_referers` takes the Referer"),
    native("date_gmt", "the time in GMT"),
    native("date_local", "the time of the machine's zone"),
    native("request_filename", "`$document_root` and the path"),
    native("realpath_root", "as `$document_root`"),
    native("connections_active", "connections of clients"),
    native("connections_reading", "connections whose request is being read"),
    native("connections_writing", "connections whose answer is being written"),
    native("connections_waiting", "idle connections"),
    empty(
        "upstream_bytes_received",
        "counted when a try has ended, which is after what snippets say",
    ),
    empty("upstream_bytes_sent", "counted when a try has ended, which is after what snippets say"),
    native("ssl_curve", "the group of the key exchange"),
    empty("ssl_ciphers", "what a client offers is not kept beyond the handshake"),
    empty("ssl_curves", "what a client offers is not kept beyond the handshake"),
    empty("ssl_early_data", "no request is taken before the handshake is complete"),
    empty("ssl_session_id", "sessions are resumed by tickets, which have none"),
    native("ssl_client_s_dn_legacy", "the subject as nginx wrote it before 1.11.6"),
    native("ssl_client_i_dn_legacy", "the issuer as nginx wrote it before 1.11.6"),
    native("connection_upgrade", "`upgrade` if the client asks for one, else empty"),
    native("full_x_forwarded_for", "X-Forwarded-For with the peer's address behind it"),
    native("auth_cookie", "Set-Cookie of the authenticator"),
    native("loggable", "1 unless skip-access-log-urls has the path"),
    native("balancer_ewma_score", "-1, as before an endpoint is chosen"),
    native("literal_dollar", "a `$`, which no text has otherwise"),
    native(
        "cors",
        "`true` for an origin that `enable-cors` allows, and `options` behind it for OPTIONS",
    ),
    prefix(native("authheader", "`$authHeader0`: the first of `auth-response-headers`, and so on")),
    native("force_ssl_redirect", "`true` or `false`; `set` changes whether HTTP is redirected"),
    native("ssl_redirect", "`true` or `false`; `set` changes whether HTTP is redirected"),
    native("force_no_ssl_redirect", "`true` or `false`; `set` changes whether HTTP is redirected"),
    native("preserve_trailing_slash", "`true` or `false`; `set` changes such a redirect"),
    native("use_port_in_redirects", "`true` or `false`; `set` changes such a redirect"),
    empty("tcpinfo_rtt", "the kernel's numbers of a connection are not read"),
    empty("tcpinfo_rttvar", "the kernel's numbers of a connection are not read"),
    empty("tcpinfo_snd_cwnd", "the kernel's numbers of a connection are not read"),
    empty("tcpinfo_rcv_space", "the kernel's numbers of a connection are not read"),
    prefix(empty("sent_trailer_", "trailers are sent after all that snippets say")),
    prefix(empty("upstream_trailer_", "trailers of an answer come after all that snippets say")),
    prefix(native("upstream_cookie_", "a cookie that the upstream sets")),
    prefix(empty(
        "proxy_protocol_tlv_",
        "of the PROXY protocol's header addresses are kept, and nothing else",
    )),
    empty("http3", "HTTP/3 is not served"),
    empty("quic", "HTTP/3 is not served"),
    empty("proxy_internal_body_length", "internal to nginx"),
    empty("proxy_internal_chunked", "internal to nginx"),
    nginx("request_body", "bodies stream through and are not kept"),
    nginx("request_body_file", "bodies are not written to files"),
    nginx("secure_link", "links with signatures are not checked here"),
    nginx("secure_link_expires", "links with signatures are not checked here"),
    nginx("slice_range", "answers are not sliced here"),
    nginx("memcached_key", "memcached is not spoken here"),
    nginx("modern_browser", "browsers are not told apart here; a map of $http_user_agent does"),
    nginx("ancient_browser", "browsers are not told apart here; a map of $http_user_agent does"),
    nginx("msie", "browsers are not told apart here; a map of $http_user_agent does"),
    nginx("uid_got", "cookies of nginx's userid module are not given here"),
    nginx("uid_set", "cookies of nginx's userid module are not given here"),
    nginx("uid_reset", "cookies of nginx's userid module are not given here"),
    nginx("brotli_ratio", "it is not counted here"),
    prefix(nginx("geoip_", "the old GeoIP format is not read here; use $geoip2_ variables")),
];

#[cfg(test)]
mod tests {
    use super::OtherRow;

    #[test]
    fn texts_of_the_controller_know_what_has_its_value_here() {
        let read = |text: &str| OtherRow::template(text).map(|template| template.to_string());
        let text = "$Request_Filename-$upstream_cookie_a-$ssl_early_data-${binary_remote_addr}";
        let known = "${request_filename}-${upstream_cookie_a}-${ssl_early_data}-${remote_addr}";
        assert_eq!(read(text).as_deref(), Ok(known));
        for name in
            ["ssl_session_id", "upstream_trailer_a", "request_body", "invalid_referer", "nope"]
        {
            assert!(read(&format!("${name}")).is_err(), "{name}");
        }
    }
}
