//! The variables that only snippets know.

/// What becomes of a variable that templates of annotations do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// It has its value.
    Native,
    /// It is always empty here, as what it tells of does not exist.
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
    native("upstream_bytes_received", "bytes of the upstream's answer"),
    native("upstream_bytes_sent", "bytes sent to the upstream"),
    native("ssl_curve", "the group of the key exchange"),
    native("ssl_ciphers", "suites that the client offers"),
    native("ssl_curves", "groups that the client offers"),
    native("ssl_early_data", "1 while the handshake is not complete"),
    native("ssl_session_id", "the session's identifier"),
    native("ssl_client_s_dn_legacy", "the subject as nginx wrote it before 1.11.6"),
    native("ssl_client_i_dn_legacy", "the issuer as nginx wrote it before 1.11.6"),
    native("connection_upgrade", "`upgrade` if the client asks for one, else empty"),
    native("full_x_forwarded_for", "X-Forwarded-For with the peer's address behind it"),
    native("auth_cookie", "Set-Cookie of the authenticator"),
    native("loggable", "1 unless skip-access-log-urls has the path"),
    native("balancer_ewma_score", "the score of the endpoint under EWMA"),
    native("tcpinfo_rtt", "round-trip time of the client's connection"),
    native("tcpinfo_rttvar", "its variation"),
    native("tcpinfo_snd_cwnd", "its window"),
    native("tcpinfo_rcv_space", "its space"),
    prefix(native("sent_trailer_", "a trailer of the answer")),
    prefix(native("upstream_trailer_", "a trailer of the upstream's answer")),
    prefix(native("upstream_cookie_", "a cookie that the upstream sets")),
    prefix(native("proxy_protocol_tlv_", "a value of the PROXY protocol's header")),
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
