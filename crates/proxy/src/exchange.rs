//! A request from its head to its last byte: what phases see and decide.

use crate::answer::Answer;
use crate::connection::{Connection, Working};
use crate::generation::{Generation, Site, Spot};
use crate::known::{Forwarded, Known};
use crate::limits::Slot;
use crate::rarely::{Nothing, Rarely};
use crate::request_id::RequestId;
use crate::snippet::Running;
use crate::telemetry::Span;
use crate::texts::Texts;
use crate::trace::{Phase, Trace};
use crate::under_way::KeptHeads;
use crate::worker::Worker;
use bytes::Bytes;
use http::Method;
use model::policy::Protocol;
use model::{Steps, UpstreamId};
use smallvec::SmallVec;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::time::Instant;
use upstream::{Group, Try};
use wire::{Body, Headers, Interims, Request, Squeezed};

/// A request on its way through the phases.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// What the client sent.
    pub request: Request,
    /// The connection it came over.
    pub connection: Rc<Connection>,
    /// The thread that serves it.
    pub worker: Rc<Worker>,
    /// The Configuration that it sees, all its life.
    pub generation: Arc<Generation>,
    /// When its head was there.
    pub since: Instant,
    /// The client's address, after real-IP replacement.
    pub client: IpAddr,
    /// Host, scheme and port as they are passed on.
    pub forwarded: Rc<Forwarded>,
    /// What requests that name the same authority have in common.
    pub known: Rc<Known>,
    /// The host asked for: lower case, without port and trailing dot.
    pub host: Rc<str>,
    /// The canonical path.
    pub path: Bytes,
    /// Whether the path had dot segments.
    pub dotted: bool,
    /// The server and location that answer.
    pub place: Option<Place>,
    /// What was decided at that location.
    pub visit: Rarely<Visit>,
    /// The field and its value that tell the client of its session.
    pub told_session: Option<(Bytes, Bytes)>,
    /// `X-Request-ID` as passed on.
    pub request_id: RequestId,
    /// What upstreams that sent the request on left behind.
    pub onward: Rarely<Onward>,
    /// Header sections of the answer that variables ask for.
    pub answer: Rarely<Answer>,
    /// The phase it is in, or that ended it.
    pub phase: Phase,
    /// Why it goes where it goes, if somebody asked.
    pub trace: Option<Box<Trace>>,
    /// Its part in a trace, where it is traced.
    pub span: Option<Box<Span>>,
    /// Its place among the requests that its client may have at the same time.
    pub slot: Option<Slot>,
    /// That its connection is busy with it, where somebody counts.
    pub _working: Option<Working>,
    /// Where interim answers go; none: to nobody, since the client understands none.
    pub interims: Option<Rc<Interims>>,
    /// What the regular expressions that it meets may take yet.
    pub steps: Steps,
    /// What texts of Ingresses with its variables have taken.
    pub texts: Texts,
    /// What it keeps of long heads, if there were any.
    pub kept_heads: Option<Box<KeptHeads>>,
    /// What snippets know of it; none where none counts for its host.
    pub snippet: Option<Box<Running>>,
    /// What is noted for logs and metrics.
    pub log: Log,
}

/// The server and location that answer a request.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The server.
    pub site: Arc<Site>,
    index: usize,
    spot: Arc<Spot>,
}

impl Place {
    /// The location of this number.
    pub(crate) fn new(site: Arc<Site>, index: usize) -> Self {
        let spot = site.spots[index].clone();
        Self { site, index, spot }
    }

    /// The number of the location.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// It is another location of the same server now.
    pub(crate) fn leads_to(&mut self, index: usize) {
        (self.index, self.spot) = (index, self.site.spots[index].clone());
    }

    /// The location.
    #[inline]
    pub(crate) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// The namespace that has the location.
    pub(crate) fn owner(&self) -> Option<&Arc<str>> {
        let spot = self.spot();
        let of_ingress = spot.location.origin.as_deref().map(|origin| &origin.namespace);
        spot.extras().snippet.as_ref().map_or(of_ingress, |level| level.owner.as_ref())
    }
}

/// The namespaces whose limits have counted a request: each does so once, wherever the request is led.
#[derive(Debug, Default)]
pub(crate) struct CountedFor(Vec<Option<Arc<str>>>);

impl CountedFor {
    /// Whether a namespace has; none is nobody's.
    pub(crate) fn has(&self, namespace: Option<&Arc<str>>) -> bool {
        self.0.iter().any(|known| known.as_ref() == namespace)
    }

    /// It has now.
    pub(crate) fn add(&mut self, namespace: Option<&Arc<str>>) {
        if !self.has(namespace) {
            self.0.push(namespace.cloned());
        }
    }
}

/// For whom limits of requests have counted a request, and limits of connections: nginx has two marks, so that who was
/// asked by one kind is asked by the other where the request is led (`limit_req_status`, `limit_conn_status`).
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// `limit-rps` and `limit-rpm`, or `limit_req`.
    pub requests: CountedFor,
    /// `limit-connections`, or `limit_conn`.
    pub connections: CountedFor,
}

/// What is decided at one location, and forgotten as a whole where the request goes on to another one.
#[derive(Debug)]
pub(crate) struct Visit {
    /// Whether `default-backend` stands in for the location's upstream.
    pub stands_in: bool,
    /// Whether the default backend of the process answers, which is built in: the answer is that of an upstream.
    pub by_default_backend: bool,
    /// Whether an error backend words the answer: what its location says about answers does not count for that.
    pub paged: bool,
    /// Whether it is answered before anything that its location sets.
    pub early: bool,
    /// Path and query towards the upstream, if they are not those of the request.
    pub rewritten: Option<Bytes>,
    /// `X-Forwarded-Prefix` as passed on, if the location's rewrite sets it.
    pub forwarded_prefix: Option<Bytes>,
    /// What Access-Control-Allow-Origin says, if the origin is allowed.
    pub allowed_origin: Option<Bytes>,
    /// Which mirrors of a route get a copy, each a bit by its number.
    pub mirrored: u32,
    /// Whether the canary of the location has it.
    pub canary: bool,
    /// The upstream that a snippet names in place of the location's own.
    pub named: Option<Arc<Group>>,
    /// The name of the upstream that is to have the request, and is not there.
    pub nobody: Option<String>,
    /// What the guards leave for what comes after them.
    pub authenticated: Authenticated,
}

impl Nothing for Visit {
    const NOTHING: Self = Self {
        stands_in: false,
        by_default_backend: false,
        paged: false,
        early: false,
        rewritten: None,
        forwarded_prefix: None,
        allowed_origin: None,
        mirrored: 0,
        canary: false,
        named: None,
        nobody: None,
        authenticated: Authenticated {
            information: None,
            headers: Vec::new(),
            removed: Vec::new(),
            answer: Vec::new(),
            cookies: Vec::new(),
            always_set_cookie: false,
            to_sign_in: false,
        },
    };

    fn nothing() -> &'static Self {
        static NOTHING: Visit = Visit::NOTHING;
        &NOTHING
    }
}

/// What becomes of a request that an upstream sends on.
#[derive(Debug)]
pub(crate) struct Onward {
    /// For each time, how many tries at upstreams were made before.
    pub tries: Vec<usize>,
    /// The target as the client sent it.
    pub received: Option<Bytes>,
    /// For which namespaces the limits of a location have counted it.
    pub counted: Counted,
    /// Where the answer at hand asks to go on.
    pub asked: Option<Bytes>,
    /// What the final answer gets of those before it.
    pub carried: Headers,
    /// That an error backend words the answer.
    pub paged: Option<Box<Paged>>,
}

impl Nothing for Onward {
    const NOTHING: Self = Self {
        tries: Vec::new(),
        received: None,
        counted: Counted { requests: CountedFor(Vec::new()), connections: CountedFor(Vec::new()) },
        asked: None,
        carried: Headers::NONE,
        paged: None,
    };

    fn nothing() -> &'static Self {
        static NOTHING: Onward = Onward::NOTHING;
        &NOTHING
    }
}

/// An error backend that words the answer.
#[derive(Debug)]
pub(crate) struct Paged {
    /// How many tries were made before it was asked.
    pub tries: usize,
    /// Its name.
    pub by: UpstreamId,
}

/// What the guards leave for what comes after them.
#[derive(Debug)]
pub(crate) struct Authenticated {
    /// Authentication-Info for the answer (RFC 7616 section 3.5).
    pub information: Option<Bytes>,
    /// What the authenticator says about the client, for the application.
    pub headers: Vec<(Bytes, Bytes)>,
    /// Fields of the request that the application does not get, in lower case.
    pub removed: Vec<String>,
    /// What else is added to the answer.
    pub answer: Vec<(Bytes, Bytes)>,
    /// Lines of Set-Cookie of the authenticator, for the client.
    pub cookies: Vec<Bytes>,
    /// Whether they are set with every answer.
    pub always_set_cookie: bool,
    /// Whether the answer is the redirect to the sign-in page.
    pub to_sign_in: bool,
}

/// What is noted for logs and metrics.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Status of the answer.
    pub status: u16,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes of the body sent.
    pub body_sent: u64,
    /// Bytes received, head and body.
    pub received: u64,
    /// The tries at upstreams.
    pub tries: SmallVec<[Rc<Try>; 1]>,
    /// What judging certificates of their endpoints has cost.
    pub judged: u8,
    /// What compression did.
    pub squeezed: Option<Rc<Squeezed>>,
}

impl Exchange {
    /// It keeps a head that it got, as long as it is under way.
    pub(crate) fn keeps(&mut self, head: &Headers) {
        KeptHeads::keep(&mut self.kept_heads, &self.connection, head.held());
    }

    /// It keeps what a guard or an upstream of the location leaves for what comes after it; whether there is room.
    #[cold]
    pub(crate) fn keeps_left(&mut self, size: usize) -> bool {
        let namespace = self.spot().location.namespace();
        let all = self.worker.under_way();
        KeptHeads::lend(&mut self.kept_heads, all, &self.connection, &namespace, size)
    }

    /// A request whose head was just read. Made where it stays: a thousand bytes would be moved otherwise.
    #[inline]
    pub(crate) fn new(
        request: Request,
        connection: Rc<Connection>,
        worker: Rc<Worker>,
        generation: Arc<Generation>,
    ) -> Self {
        // Once: what a snippet writes into Host is for upstreams, and leads to no other server.
        let known = connection.known(&request.authority, generation.number);
        Self {
            client: connection.counted_as(),
            since: wire::now(),
            forwarded: known.forwarded.get().cloned().unwrap_or_default(),
            host: known.host.clone(),
            known,
            path: Bytes::new(),
            dotted: false,
            place: None,
            visit: Rarely::default(),
            told_session: None,
            request_id: RequestId::default(),
            onward: Rarely::default(),
            answer: Rarely::default(),
            phase: Phase::default(),
            trace: None,
            span: None,
            slot: None,
            _working: worker.works(&generation, &connection),
            interims: None,
            steps: Steps::default(),
            texts: Texts::default(),
            kept_heads: None,
            snippet: None,
            log: Log::default(),
            request,
            connection,
            worker,
            generation,
        }
    }

    /// What is refused before any phase, as far as it could be read, for its line in the access log.
    pub(crate) fn refused(
        request: Request,
        connection: Rc<Connection>,
        worker: Rc<Worker>,
        generation: Arc<Generation>,
    ) -> Self {
        let mut exchange = Self::new(request, connection, worker, generation);
        if exchange.host.is_empty() {
            // nginx: the name of the server that answers whom nobody has asked for.
            exchange.host = "_".into();
        }
        if let Some(given) = exchange.request.headers.joined("x-request-id") {
            exchange.request_id = given.into();
        } else if exchange.generation.global().generate_request_id {
            exchange.request_id = exchange.worker.numbers.random_id();
        }
        exchange
    }

    /// It came over another connection, or named another authority, than it seemed to.
    pub(crate) fn is_named(&mut self) {
        self.known = self.connection.known(&self.request.authority, self.generation.number);
        self.host = self.known.host.clone();
        self.forwarded = Rc::default();
    }

    /// Notes the phase that begins.
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Whether nothing may be sent to anybody: the request is only explained.
    pub(crate) fn is_dry(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.dry)
    }

    /// Whether it is made up: no request, and no copy of one. It counts for no limit, and no log tells of it.
    pub(crate) fn is_made_up(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.dry && !trace.copy)
    }

    /// The location that answers.
    ///
    /// # Panics
    /// Before the phase `find_location` has chosen one.
    pub(crate) fn spot(&self) -> &Spot {
        self.place.as_ref().expect("phases after find_location run only once it has chosen").spot()
    }

    /// The request goes on with another target of the same host, as GET (ngx_http_internal_redirect).
    pub(crate) fn lead_to(&mut self, target: Bytes) {
        let received = std::mem::replace(&mut self.request.target, target);
        self.onward.received.get_or_insert(received);
        if self.request.method != Method::HEAD {
            self.request.method = Method::GET;
        }
        self.leave_location();
    }

    /// Forgets what was decided at a location, since the request goes on to another one.
    pub(crate) fn leave_location(&mut self) {
        self.visit = Rarely::default();
    }

    /// The query as it stands: that of the request, until a snippet makes it another.
    pub(crate) fn query(&self) -> Option<&[u8]> {
        match &self.snippet {
            None => self.request.query(),
            Some(running) => Some(running.state.query.as_bytes()),
        }
    }

    /// The target as the client sent it, wherever upstreams have sent the request on to.
    pub(crate) fn received(&self) -> &Bytes {
        self.onward.received.as_ref().unwrap_or(&self.request.target)
    }

    /// The tries at the upstream of this location.
    pub(crate) fn tries(&self) -> &[Rc<Try>] {
        let before = self.onward.tries.last().copied().unwrap_or(0);
        self.log.tries.get(before..).unwrap_or_default()
    }

    /// What upstreams have answered until now is not what the client gets.
    pub(crate) fn replaces_answers(&self) {
        self.log.tries.iter().for_each(|attempt| attempt.replace());
    }

    /// Whether the client wants the answer's trailers: it says so, or speaks to a gRPC service, which cannot
    /// do without.
    pub(crate) fn wants_trailers(&self) -> bool {
        let grpc = |place: &Place| {
            matches!(place.spot().location.policy.protocol, Protocol::Grpc | Protocol::Grpcs)
        };
        self.request.headers.has_token("te", "trailers") || self.place.as_ref().is_some_and(grpc)
    }

    /// Whether headers may say how the client came in.
    pub(crate) fn hears_forwarded(&self) -> bool {
        let real = &self.generation.global().real_ip;
        real.forwarded_headers && real.believes(self.connection.peer.ip())
    }

    /// The value of a forwarded header, if the peer is believed about it.
    pub(crate) fn forwarded_header(&self, name: &str) -> Option<Bytes> {
        if !self.hears_forwarded() {
            return None;
        }
        self.request.headers.joined(name)
    }

    /// The port that the client came to, as a trusted header or the PROXY protocol says, else the listener's; empty
    /// where a PROXY header without addresses says nothing about it (lua_ingress.lua: `$pass_server_port`).
    pub(crate) fn server_port(&self) -> Bytes {
        let told = self.forwarded_header("x-forwarded-port");
        told.unwrap_or_else(|| self.decimal(self.own_port()))
    }

    /// The same as clients know it: that of HTTPS is 443, whatever it is inside of the cluster (`$pass_port`).
    pub(crate) fn known_port(&self) -> Bytes {
        if let Some(told) = self.forwarded_header("x-forwarded-port") {
            return self.as_known(told);
        }
        let https = self.worker.listen.https_port;
        self.decimal(self.own_port().map(|port| if port == https { 443 } else { port }))
    }

    /// A port that somebody wrote, as clients know it.
    pub(crate) fn as_known(&self, port: Bytes) -> Bytes {
        let https = self.worker.listen.https_port;
        let is_https = itoa::Buffer::new().format(https).as_bytes() == &*port;
        if is_https { Bytes::from_static(b"443") } else { port }
    }

    fn own_port(&self) -> Option<u16> {
        if self.generation.global().proxy_protocol {
            self.connection.announced().map(|announced| announced.destination.port())
        } else {
            Some(self.connection.local.port())
        }
    }

    fn decimal(&self, port: Option<u16>) -> Bytes {
        port.map_or_else(Bytes::new, |port| self.worker.numbers.decimal(port))
    }

    /// The client's address as text; that of the peer is written once for the whole connection.
    pub(crate) fn client_text(&self) -> Bytes {
        if self.client == self.connection.peer.ip() {
            self.connection.peer_text.clone()
        } else {
            self.client.to_string().into()
        }
    }

    /// Lets go of the request's body, and with it of the client's connection.
    pub(crate) fn release_body(&mut self) {
        self.request.body = Body::empty();
    }
}
