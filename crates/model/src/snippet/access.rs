//! Guards: who may pass, how often, and who a client is.

use super::inherit::settings;
use super::{Name, Program, Settings, Template};
use crate::Networks;
use ipnet::IpNet;
use serde::Serialize;

settings! {
    /// Who may pass.
    pub struct Access {
        /// `allow` and `deny`, in order; the first that fits decides, and who fits none passes.
        pub rules: Vec<AccessRule>,
        /// Those of the server where that is another namespace's: whom they keep out stays out, and they let nobody in.
        pub besides: Vec<AccessRule>,
        /// Those of the text before, in a location of the one behind it with rules of its own: whom they keep out stays
        /// out.
        #[serde(skip)]
        pub before: Vec<AccessRule>,
        /// `satisfy`
        pub satisfy: Option<Satisfy>,
        /// `auth_basic`
        pub auth_basic: Option<AuthBasic>,
        /// `auth_request off`
        pub auth_request_off: Option<bool>,
        /// `auth_request_set`: variables of what the authenticator answered.
        pub auth_request_set: Vec<(Name, Template)>,
        /// Whether each cookie of the authenticator has a line of its own, as a program in Lua asks that is known.
        pub cookies_apart: Option<bool>,
        /// `valid_referers`
        pub valid_referers: Option<super::Referers>,
    }

    /// Who the client is, behind proxies.
    pub struct RealIp {
        /// `set_real_ip_from`
        pub trusted: Vec<ClientAddress>,
        /// `real_ip_header`, in lower case; `proxy_protocol` is a value too.
        pub header: Option<String>,
        /// `real_ip_recursive`
        pub recursive: Option<bool>,
    }

    /// How often and how fast.
    pub struct Limits {
        /// `limit_req`
        pub requests: Vec<LimitReq>,
        /// `limit_req_status`
        pub request_status: Option<u16>,
        /// `limit_req_dry_run`
        pub request_dry_run: Option<bool>,
        /// `limit_conn`
        pub connections: Vec<LimitConn>,
        /// `limit_conn_status`
        pub connection_status: Option<u16>,
        /// `limit_conn_dry_run`
        pub connection_dry_run: Option<bool>,
        /// `limit_rate`: bytes in a second, 0 for no bound.
        pub rate: Option<Template>,
        /// `limit_rate_after`: bytes.
        pub rate_after: Option<Template>,
    }
}

/// One `allow` or `deny`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessRule {
    /// Whether it lets in.
    pub allow: bool,
    /// Whom.
    pub whom: ClientAddress,
}

/// Addresses of clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ClientAddress {
    /// `all`
    All,
    /// A network.
    Network(IpNet),
    /// Many networks at once, as `block-cidrs` has them; no text of a snippet does.
    Networks(Networks),
    /// `unix:`: nobody comes from there.
    Unix,
}

/// `satisfy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Satisfy {
    /// Every guard must let in.
    All,
    /// One will do.
    Any,
}

/// `auth_basic`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum AuthBasic {
    /// `off`
    Off,
    /// The realm; the passwords are those of the Ingress.
    Realm(Template),
}

/// `limit_except GET … { … }`: what counts for all other methods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitExcept {
    /// The methods that are free, HEAD with GET.
    pub methods: Vec<String>,
    /// What counts for the others, beside what counts for all.
    pub settings: Box<Settings>,
    /// What the text before its own says for all methods: it excepts nobody from that.
    #[serde(skip)]
    pub before: Option<Box<Before>>,
}

/// What one text says for a location, where another one stands behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// `allow` and `deny`
    pub rules: Vec<AccessRule>,
    /// The rewrite module.
    pub program: Program,
}

impl LimitExcept {
    /// The same behind another text, which says this of access for all methods: it takes none of that back.
    pub(super) fn behind(&self, access: &Access, program: &Program) -> Self {
        let mut behind = self.clone();
        behind.settings.access.keeps_password(access);
        let before = Before { rules: access.rules.clone(), program: program.clone() };
        behind.before = Some(Box::new(before));
        behind
    }
}

impl Access {
    /// Takes no password away that another text asks for.
    fn keeps_password(&mut self, before: &Self) {
        if self.auth_basic == Some(AuthBasic::Off) && before.auth_basic.is_some() {
            self.auth_basic = None;
        }
    }

    /// The same in a location of a text that stands behind another one, which says this for all around it.
    pub(super) fn opens_nothing(&mut self, before: &Self) {
        self.keeps_password(before);
        if before.satisfy == Some(Satisfy::All) {
            self.satisfy = None;
        }
        if !self.rules.is_empty() {
            self.before.clone_from(&before.rules);
        }
    }

    /// What counts where two texts say how guards go together, or whether there is a password: what closes more.
    pub(super) fn stricter(&self, other: &Self) -> (Option<Satisfy>, Option<AuthBasic>) {
        let satisfy = match (self.satisfy, other.satisfy) {
            (Some(Satisfy::All), _) | (_, None) => self.satisfy,
            (_, other) => other,
        };
        let auth_basic = match (&self.auth_basic, &other.auth_basic) {
            (own @ Some(AuthBasic::Realm(_)), _) | (own, None) => own,
            (_, other) => other,
        };
        (satisfy, auth_basic.clone())
    }
}

/// `limit_req zone=name [burst=n] [nodelay | delay=n]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitReq {
    /// Its zone, declared at http level.
    pub zone: String,
    /// How many more than the rate are taken.
    pub burst: u32,
    /// Which of those wait.
    pub delay: RequestDelay,
}

/// Which requests of a burst wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RequestDelay {
    /// None: `nodelay`.
    Never,
    /// Those beyond this many.
    Beyond(u32),
}

/// `limit_conn zone n`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitConn {
    /// Its zone, declared at http level.
    pub zone: String,
    /// How many requests at once.
    pub most: u16,
}
