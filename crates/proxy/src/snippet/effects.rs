//! What the settings in force at one place do to requests and answers, compiled once for each generation.

use super::addresses::RealIp;
use super::answer_headers::AnswerHeaders;
use super::charset::Charset;
use super::input_headers::{self, InputField};
use super::level::Within;
use super::limits::Limits;
use super::rewrites::Rewrites;
use super::sub_filter::Filter;
use super::towards::Towards;
use crate::limits::DeclaredZones;
use model::policy::{Policy, Protocol};
use model::snippet::{Brotli, Gzip, Piece, Regex, Settings, Template, Transfer};
use model::{Compression, Eligible, Global, Pattern, Unwanted, Variable};

/// What settings do, compiled.
#[derive(Debug)]
pub(crate) struct Effects {
    /// Headers of answers.
    pub answer: AnswerHeaders,
    /// Location, Refresh and Set-Cookie of upstreams; none: as annotations say.
    pub rewrites: Option<Rewrites>,
    /// Headers of upstreams that clients do not see, in lower case; if there are any, in place of the ConfigMap's.
    pub hidden: Vec<String>,
    /// Headers that they see although they are hidden by default, in lower case.
    pub shown: Vec<String>,
    /// Headers of upstreams that are not obeyed, in lower case.
    pub ignored: Vec<String>,
    /// Headers of requests.
    pub input: Vec<InputField>,
    /// Headers towards the upstream.
    pub towards: Towards,
    /// Parameters for a FastCGI upstream, and whether one without a value is sent.
    pub params: Vec<(String, Template, bool)>,
    /// Whether the upstream gets the client's header section.
    pub passes_headers: bool,
    /// Whether it gets the body.
    pub passes_body: bool,
    /// The body that it gets instead.
    pub body: Option<Template>,
    /// The method that it sees.
    pub method: Option<Template>,
    /// Headers of the authenticator's answer that `auth_request_set` asks for, as variables name them.
    pub asked: Vec<String>,
    /// Who the client is.
    pub real_ip: Option<RealIp>,
    /// How often it may come.
    pub limits: Limits,
    /// Bytes of an answer in a second, and those before that counts.
    pub rate: Option<Size>,
    /// Bytes that come before the rate counts.
    pub rate_after: Option<Size>,
    /// What is replaced in bodies.
    pub filter: Option<Filter>,
    /// How answers are compressed; none: as the ConfigMap says.
    pub compression: Option<Compressing>,
}

/// A number of bytes.
#[derive(Debug)]
pub(crate) enum Size {
    /// The same for every request.
    Known(u64),
    /// To be filled in.
    Filled(Template),
}

/// How answers are compressed.
#[derive(Debug)]
pub(crate) struct Compressing {
    /// With what, and which answers.
    pub by: Compression,
    /// Whether Vary says so.
    pub vary: bool,
    /// Whether HTTP/1.0 gets gzip, too.
    pub http_1_0: bool,
    /// Which requests with Via get it; none: all.
    pub proxied: Option<Vec<String>>,
}

impl Effects {
    /// Compiles settings; none if they say nothing.
    pub(crate) fn new(
        settings: &Settings,
        within: Within,
        policy: &Policy,
        global: &Global,
        zones: &DeclaredZones,
    ) -> Option<Box<Self>> {
        if *settings == Settings::default() {
            return None;
        }
        let Settings { headers, real_ip, limits, answers, .. } = settings;
        let transfer = transfer(settings, policy.protocol);
        let set = match policy.protocol {
            Protocol::Grpc | Protocol::Grpcs => &headers.grpc_set[..],
            Protocol::Fcgi => &[],
            Protocol::Http | Protocol::Https | Protocol::AutoHttp => &headers.proxy_set[..],
        };
        let params = headers.fastcgi_params.iter();
        let params =
            params.map(|param| (param.name.clone(), param.value.clone(), !param.if_not_empty));
        Some(Box::new(Self {
            answer: AnswerHeaders::new(headers, within, Charset::new(answers)),
            rewrites: Rewrites::new(answers, &policy.answer_rewrites),
            hidden: transfer.hide_headers.clone(),
            shown: transfer.pass_headers.clone(),
            ignored: transfer.ignore_headers.clone().unwrap_or_default(),
            input: input_headers::compile(&headers.input),
            towards: Towards::new(set),
            params: params.collect(),
            passes_headers: transfer.pass_request_headers.unwrap_or(true),
            passes_body: transfer.pass_request_body.unwrap_or(true),
            body: transfer.set_body.clone(),
            method: transfer.method.clone(),
            asked: asked(settings),
            real_ip: RealIp::new(real_ip, &global.real_ip, global.proxy_protocol),
            limits: Limits::new(limits, zones),
            rate: limits.rate.as_ref().map(Size::new),
            rate_after: limits.rate_after.as_ref().map(Size::new),
            filter: Filter::new(answers),
            compression: Compressing::new(&answers.gzip, &answers.brotli, &global.compression),
        }))
    }

    /// Whether a header of the upstream is not obeyed.
    pub(crate) fn ignores(&self, name: &str) -> bool {
        self.ignored.iter().any(|ignored| ignored == name)
    }
}

/// The headers of an authenticator's answer that variables ask for.
fn asked(settings: &Settings) -> Vec<String> {
    let pieces = settings.access.auth_request_set.iter().flat_map(|(_, value)| value.pieces.iter());
    let name = |piece: &Piece| match piece {
        Piece::Known(Variable::UpstreamHeader(name)) => Some(name.to_ascii_lowercase()),
        Piece::Other(other) if other.row.name == "upstream_cookie_" => {
            Some("set_cookie".to_owned())
        }
        _ => None,
    };
    pieces.filter_map(name).collect()
}

/// The settings about upstreams of a protocol.
fn transfer(settings: &Settings, protocol: Protocol) -> &Transfer {
    match protocol {
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => &settings.proxy,
        Protocol::Grpc | Protocol::Grpcs => &settings.grpc,
        Protocol::Fcgi => &settings.fastcgi,
    }
}

impl Size {
    fn new(template: &Template) -> Self {
        match template.literal().and_then(snippet::size_of) {
            Some(bytes) => Self::Known(bytes),
            None => Self::Filled(template.clone()),
        }
    }
}

impl Compressing {
    /// What settings make of the ConfigMap's; none if they say nothing. What nobody sets is as in nginx.
    fn new(gzip: &Gzip, brotli: &Brotli, global: &Compression) -> Option<Self> {
        if *gzip == Gzip::default() && *brotli == Brotli::default() {
            return None;
        }
        let pages = || Some(["text/html".to_owned()].into());
        let of_gzip = gzip.enabled.unwrap_or(global.gzip.is_some()).then(|| {
            let usual = || Eligible { min_length: 20, types: pages() };
            let mut by = global.gzip.clone().unwrap_or_else(|| model::Gzip {
                level: 1,
                eligible: usual(),
                not_for: None,
            });
            eligible(&mut by.eligible, gzip.min_length, gzip.types.as_deref());
            by.level = gzip.level.map_or(by.level, |level| level.clamp(1, 9) as u8);
            by.not_for = gzip.disable.as_deref().map_or(by.not_for, unwanted);
            by
        });
        let of_brotli = brotli.enabled.unwrap_or(global.brotli.is_some()).then(|| {
            let usual = || Eligible { min_length: 20, types: pages() };
            let mut by = global
                .brotli
                .clone()
                .unwrap_or_else(|| model::Brotli { level: 6, eligible: usual() });
            eligible(&mut by.eligible, brotli.min_length, brotli.types.as_deref());
            by.level = brotli.level.map_or(by.level, |level| level.min(DEAREST_BROTLI) as u8);
            by
        });
        let vary = gzip.vary.unwrap_or(global.gzip.is_some());
        let on = global.gzip.is_some();
        // The controller says `any` where it says anything; nginx's own default is that none does.
        let proxied = gzip.proxied.clone().or_else(|| (!on).then(|| vec!["off".to_owned()]));
        let proxied = proxied.filter(|words| !words.iter().any(|word| word == "any"));
        let http_1_0 = gzip.http_1_1 == Some(false);
        let by = Compression { gzip: of_gzip, brotli: of_brotli };
        Some(Self { by, vary, http_1_0, proxied })
    }
}

/// The degree of brotli that a snippet may ask for at most; 7 to 9 count as 6 everywhere. Above them a block of 256 KiB
/// is one piece of work of up to a second, in which nobody else on the thread is answered.
const DEAREST_BROTLI: u32 = 6;

fn eligible(eligible: &mut Eligible, min_length: Option<u64>, types: Option<&[String]>) {
    eligible.min_length = min_length.unwrap_or(eligible.min_length);
    if let Some(types) = types {
        let lower = types.iter().map(|name| name.to_ascii_lowercase());
        eligible.types = if types.iter().any(|name| name == "*") {
            None
        } else {
            Some(lower.chain(["text/html".to_owned()]).collect())
        };
    }
}

/// `gzip_disable`: several expressions are one.
fn unwanted(expressions: &[Regex]) -> Option<Unwanted> {
    let sources = expressions.iter().map(|regex| format!("(?:{})", regex.pattern.source()));
    let all = sources.collect::<Vec<_>>().join("|");
    Pattern::for_captures(&all, true).ok().map(Unwanted::Matching)
}

#[cfg(test)]
mod tests {
    use super::{Compressing, Effects, Size};
    use crate::limits::DeclaredZones;
    use crate::snippet::fixture::location;
    use crate::snippet::level::Within;
    use model::policy::{Policy, Protocol};
    use model::{Compression, Global, Steps};

    fn effects(text: &str, protocol: Protocol) -> Option<Box<Effects>> {
        let policy = Policy { protocol, ..Policy::default() };
        let global = Global::default();
        let zones = DeclaredZones::default();
        Effects::new(&location(text).settings, Within::default(), &policy, &global, &zones)
    }

    fn compressing(text: &str, global: &Compression) -> Option<Compressing> {
        let answers = location(text).settings.answers;
        Compressing::new(&answers.gzip, &answers.brotli, global)
    }

    #[test]
    fn who_says_nothing_has_none_and_each_protocol_its_own() {
        assert!(effects("", Protocol::Http).is_none());
        let text = "proxy_set_header X-A 1; grpc_set_header X-B 2; proxy_hide_header X-C; grpc_hide_header X-D;";
        let http = effects(text, Protocol::Https).expect("it says something");
        assert_eq!(http.hidden, ["x-c"]);
        let grpc = effects(text, Protocol::Grpc).expect("it says something");
        assert_eq!(grpc.hidden, ["x-d"]);
        assert!(effects(text, Protocol::Fcgi).expect("it says something").towards.is_empty());
    }

    #[test]
    fn sizes_are_read_once() {
        let effects =
            effects("limit_rate 4k; limit_rate_after $http_x;", Protocol::Http).expect("limits");
        assert!(matches!(effects.rate, Some(Size::Known(4096))));
        assert!(matches!(effects.rate_after, Some(Size::Filled(_))));
    }

    #[test]
    fn compression_of_a_location_stands_on_that_of_all() {
        let on = Compression { gzip: Some(model::Gzip::default()), brotli: None };
        assert!(compressing("", &on).is_none());
        let off = compressing("gzip off;", &on).expect("it says something");
        assert!(off.by.gzip.is_none());
        let text =
            "gzip_types application/wasm; gzip_min_length 1k; gzip_disable Trident Old; brotli on;";
        let made = compressing(text, &on).expect("it says something");
        let gzip = made.by.gzip.expect("it is still on");
        assert!(made.vary && gzip.eligible.has_type("application/wasm") && gzip.level == 1);
        assert!(gzip.eligible.has_type("text/html") && !gzip.eligible.has_type("text/css"));
        assert_eq!(gzip.eligible.min_length, 1024);
        let steps = Steps::default();
        let disabled = gzip.not_for.expect("some are");
        assert!(disabled.has("x old", &steps) && !disabled.has("curl", &steps));
        let brotli = made.by.brotli.expect("it is on");
        assert!(brotli.level == 6 && !brotli.eligible.has_type("text/css"));
        let dear = compressing("brotli on; brotli_comp_level 11;", &on).expect("it is on");
        assert_eq!(dear.by.brotli.expect("it is on").level, 6);
        let alone = compressing("gzip on;", &Compression::default()).expect("it says something");
        assert!(!alone.vary && alone.by.gzip.is_some_and(|gzip| gzip.eligible.min_length == 20));
    }
}
