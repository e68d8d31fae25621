//! The admin server: health and whatever else operators read, over plain HTTP/1.1, with everything bounded.

use crate::exposition;
use crate::guard::{self, Token};
use crate::places::{Count, Place, Places};
use crate::{Content, Ready, Shutdown};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use system::sockets::{self, Acceptor};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Connections at a time; a further one takes the place of another ([`crate::places`]), so that probes are answered
/// whatever is done to the port.
const CONNECTIONS: usize = 128;
/// Bytes of a request's head.
const HEAD: usize = 16 << 10;
/// Lines of a request's head.
const HEADERS: usize = 64;
/// How long a head may take, and how long a connection may idle.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a connection may live; whoever reads an answer slower than that is cut off.
const CONNECTION_TIME: Duration = Duration::from_secs(300);

/// How full the port is.
static COUNT: Count = Count::new();
/// How full another one is, which nobody asks for.
static APART: Count = Count::new();

/// Connections of the admin server, all that there may be, and how many lost their place; none where nobody listens.
pub fn connections() -> Option<(usize, usize, u64)> {
    COUNT.now()
}

/// What a page for people may do in a browser: nothing but what comes from here.
const FOR_PEOPLE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// An answer of the admin server.
#[derive(Debug)]
pub struct Page {
    /// The status.
    pub status: StatusCode,
    /// The media type.
    pub content_type: &'static str,
    /// The content.
    pub body: Content,
}

impl Page {
    /// Plain text with a status.
    pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: text.into().into() }
    }

    /// Why there is no page, with status 500.
    pub fn failed(reason: &dyn fmt::Display) -> Self {
        Self::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n"))
    }

    /// Why there is nothing of that name, with status 404.
    pub fn missing(reason: &dyn fmt::Display) -> Self {
        Self::text(StatusCode::NOT_FOUND, format!("{reason}\n"))
    }

    /// Bytes for programs, with status 200.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        let body = bytes.into().into();
        Self { status: StatusCode::OK, content_type: "application/octet-stream", body }
    }

    /// JSON with status 200.
    pub fn json(json: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type: "application/json", body: json.into().into() }
    }

    /// The same, made piece by piece while it is sent.
    pub fn json_in_pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: "application/json",
            body: Content::pieces(pieces),
        }
    }

    /// What people or their browsers read, such as `text/html`, with status 200.
    pub fn of_type(content_type: &'static str, text: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type, body: text.into().into() }
    }

    /// The same with another status; one that there is not is 500.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, ..self }
    }

    /// What is sent as it comes, until the sender is gone, with status 200.
    pub fn stream(content_type: &'static str, pieces: mpsc::Receiver<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type, body: Content::stream(pieces) }
    }

    /// Numbers for Prometheus, piece by piece, with status 200.
    pub fn metrics(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        let (content_type, body) = (exposition::CONTENT_TYPE, Content::pieces(pieces));
        Self { status: StatusCode::OK, content_type, body }
    }
}

/// What answers at a path: from the query of the URL to a page.
type Handler = Box<dyn Fn(&str) -> Pin<Box<dyn Future<Output = Page> + Send>> + Send + Sync>;

/// Who may read a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// Whoever reaches the port.
    All,
    /// Whoever is on this machine, or in this Pod: what `kubectl port-forward` and `kubectl exec` are; and whoever
    /// shows the token.
    Near,
    /// Whoever reaches the port, but no page of somebody else through their browser.
    Reaching,
}

/// The pages of the admin server.
#[derive(Default)]
pub struct Admin {
    pages: BTreeMap<String, (Readers, Handler)>,
    token: Option<Token>,
    /// Whether its connections are counted apart from those of the admin port.
    apart: bool,
}

/// The address that was asked for cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address}: {source}; choose another address or port with {flag}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The flag that sets it.
    pub flag: String,
    /// What the system said.
    pub source: io::Error,
}

/// An admin server that has its port and waits to be served.
#[derive(Debug)]
pub struct Bound {
    admin: Admin,
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl Admin {
    /// A server with `health_path` (`--health-check-path`): 200 `ok` while the process is ready and does not
    /// end, else 500
    /// with the reason. Below it `/ping` says whether the process answers at all.
    pub fn new(health_path: &str, ready: Ready, shutdown: Shutdown) -> Self {
        Self::with_check(health_path, ready, shutdown, || None)
    }

    /// The same, where `ailment` says why the process can serve nobody any more: then neither check succeeds.
    pub fn with_check(
        health_path: &str,
        ready: Ready,
        shutdown: Shutdown,
        ailment: impl Fn() -> Option<&'static str> + Clone + Send + Sync + 'static,
    ) -> Self {
        let health_path = health_path.trim_end_matches('/');
        let alive = ailment.clone();
        let ping = move || living(&alive).unwrap_or_else(|| Page::text(StatusCode::OK, "ok"));
        let health = move || living(&ailment).unwrap_or_else(|| health(&ready, &shutdown));
        Self::default()
            .page(format!("{health_path}/ping"), ping)
            // The name under which ingress-nginx has its own part of the check.
            .page(format!("{health_path}/nginx-ingress-controller"), health.clone())
            .page(if health_path.is_empty() { "/" } else { health_path }, health)
    }

    /// Lets `handler` answer at `path`, instead of what was there.
    #[must_use]
    pub fn page(
        self,
        path: impl Into<String>,
        handler: impl Fn() -> Page + Send + Sync + 'static,
    ) -> Self {
        self.later(path, move || std::future::ready(handler()))
    }

    /// The same for what takes its time.
    #[must_use]
    pub fn later<F>(
        self,
        path: impl Into<String>,
        handler: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Page> + Send + 'static,
    {
        self.asked(path, move |_| handler())
    }

    /// The same where `handler` is given the query.
    #[must_use]
    pub fn asked<F>(
        self,
        path: impl Into<String>,
        handler: impl Fn(&str) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Page> + Send + 'static,
    {
        self.put(path, Readers::All, handler)
    }

    /// The same for what only this machine may read.
    #[must_use]
    pub fn near<F>(
        self,
        path: impl Into<String>,
        handler: impl Fn(&str) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Page> + Send + 'static,
    {
        self.put(path, Readers::Near, handler)
    }

    fn put<F>(
        mut self,
        path: impl Into<String>,
        readers: Readers,
        handler: impl Fn(&str) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Page> + Send + 'static,
    {
        let handler: Handler = Box::new(move |query| Box::pin(handler(query)));
        self.pages.insert(path.into(), (readers, handler));
        self
    }

    /// Whoever shows this token may read what is for this machine, from wherever.
    #[must_use]
    pub fn with_token(self, token: Option<Token>) -> Self {
        Self { token, ..self }
    }

    /// Whether there is a page at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.pages.contains_key(path)
    }

    /// Lets whoever reaches the port read all pages: for an address that was chosen for them. A name that somebody lets
    /// lead there opens nothing to their page.
    #[must_use]
    pub fn open_to_all(mut self) -> Self {
        self.pages.values_mut().for_each(|(readers, _)| *readers = Readers::Reaching);
        self.apart = true;
        self
    }

    /// Takes the port; `flag` names the option that sets it, for the error.
    pub fn bind(self, address: SocketAddr, flag: &str) -> Result<Bound, BindError> {
        let listen = || {
            let listener = sockets::listen(address)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        match listen() {
            Ok((listener, address)) => Ok(Bound { admin: self, listener, address }),
            Err(source) => Err(BindError { address, flag: flag.to_owned(), source }),
        }
    }

    async fn answer(&self, request: &Request<Incoming>, peer: IpAddr) -> Response<Content> {
        let (method, uri) = (request.method(), request.uri());
        let found = self.pages.get(uri.path());
        let headers = request.headers();
        let refused = match found {
            Some((Readers::Near, _)) => {
                guard::may_read((method, uri, headers), peer, self.token.as_ref()).err()
            }
            Some((Readers::Reaching, _)) => guard::is_for_here(method, uri, headers).err(),
            Some((Readers::All, _)) | None => None,
        };
        if let Some((StatusCode::TOO_MANY_REQUESTS, _)) = refused {
            // It holds a place of its own address meanwhile, so that guessing gets no faster by more connections.
            #[expect(clippy::disallowed_methods, reason = "what guesses tokens waits")]
            tokio::time::sleep(guard::SPAN).await;
        }
        let mut page = match found {
            None => Page::text(StatusCode::NOT_FOUND, "there is no such page\n"),
            Some(_) if let Some((status, why)) = refused => Page::text(status, why),
            Some(_) if method != Method::GET && method != Method::HEAD => {
                Page::text(StatusCode::METHOD_NOT_ALLOWED, "this page is for GET\n")
            }
            Some((_, handler)) => handler(uri.query().unwrap_or_default()).await,
        };
        let compressed = takes_gzip(request.headers()) && page.body.gzip();
        let mut response = Response::new(page.body);
        *response.status_mut() = page.status;
        let headers = response.headers_mut();
        if compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.content_type));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if page.content_type.starts_with("text/html") {
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(FOR_PEOPLE));
            headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        if found.is_some_and(|(readers, _)| *readers != Readers::All) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            let policy = HeaderName::from_static("cross-origin-resource-policy");
            headers.insert(policy, HeaderValue::from_static("same-origin"));
        }
        match page.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        if page.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Admin").field(&self.pages.keys()).finish()
    }
}

impl Bound {
    /// The address that was taken, with the port that the system chose if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is dropped, also while the process ends; only taking over the socket can fail.
    pub async fn serve(self) -> io::Result<Infallible> {
        let listener = TcpListener::from_std(self.listener)?;
        let admin = Arc::new(self.admin);
        let places = Places::new(CONNECTIONS, if admin.apart { &APART } else { &COUNT });
        let mut listener = Acceptor::new(listener);
        let failed = |error: &io::Error, before| {
            tracing::warn!(%error, before, "admin server: a connection could not be accepted (told once a minute)");
        };
        loop {
            let (stream, peer) = listener.next(failed).await;
            let (admin, place) = (Arc::clone(&admin), places.take(peer.ip()));
            tokio::spawn(async move {
                tokio::select! {
                    () = serve_connection(stream, peer.ip(), &admin, &place, CONNECTION_TIME) => {}
                    () = place.lost() => tracing::debug!(%peer, "admin server: its place was needed"),
                }
            });
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    peer: IpAddr,
    admin: &Admin,
    place: &Place,
    time: Duration,
) {
    let service = service_fn(async |request: Request<Incoming>| {
        let answering = place.answer();
        let answer = admin.answer(&request, peer).await;
        Ok::<_, Infallible>(answer.map(|content| content.answering(peer, answering)))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(time, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("admin server: {error}"),
        Err(_) => tracing::debug!("admin server: the connection lived too long"),
    }
}

/// Whether a client takes gzip (RFC 9110 section 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let named =
        headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    named.flat_map(|line| line.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// What is told of a process that is past mending.
fn living(ailment: &impl Fn() -> Option<&'static str>) -> Option<Page> {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    ailment().map(|reason| Page::text(status, format!("{reason}\n")))
}

fn health(ready: &Ready, shutdown: &Shutdown) -> Page {
    if shutdown.has_begun() {
        return Page::text(StatusCode::INTERNAL_SERVER_ERROR, "shutting down\n");
    }
    match ready.waiting().as_slice() {
        [] => Page::text(StatusCode::OK, "ok"),
        waiting => {
            let reason = format!("waiting for {}\n", waiting.join(", "));
            Page::text(StatusCode::INTERNAL_SERVER_ERROR, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admin, Page, serve_connection};
    use crate::places::Places;
    use crate::{Ready, Shutdown};
    use bytes::Bytes;
    use parking_lot::Mutex;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const ANY: &str = "127.0.0.1:0";

    fn any() -> SocketAddr {
        ANY.parse().expect("an address")
    }

    /// Serves and returns the address.
    fn start(ready: &Ready, shutdown: &Shutdown) -> SocketAddr {
        let bound = Admin::new("/healthz", ready.clone(), shutdown.clone())
            .page("/configuration", || Page::json("{}"))
            .bind(any(), "--healthz-port")
            .expect("the system chooses a free port");
        let address = bound.address();
        tokio::spawn(bound.serve());
        address
    }

    /// Sends bytes and returns everything that comes back until the connection ends.
    async fn exchange(address: SocketAddr, bytes: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        stream.write_all(bytes.as_bytes()).await.expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("the server answers text");
        answer
    }

    async fn get(address: SocketAddr, path: &str) -> (u16, String) {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = exchange(address, &request).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status =
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, body.to_owned())
    }

    #[tokio::test]
    async fn health_follows_readiness_and_the_end() {
        let (ready, shutdown) = (Ready::new(), Shutdown::new());
        let block = ready.block("the first configuration");
        let address = start(&ready, &shutdown);
        let waiting = (500, "waiting for the first configuration\n".to_owned());
        assert_eq!(get(address, "/healthz").await, waiting);
        assert_eq!(get(address, "/healthz/ping").await, (200, "ok".to_owned()));
        drop(block);
        assert_eq!(get(address, "/healthz?verbose").await, (200, "ok".to_owned()));
        assert_eq!(get(address, "/healthz/nginx-ingress-controller").await.0, 200);
        shutdown.advance();
        assert_eq!(get(address, "/healthz").await, (500, "shutting down\n".to_owned()));
    }

    #[tokio::test]
    async fn a_process_that_can_serve_nobody_fails_both_checks() {
        let ailment = || Some("a thread has ended");
        let bound = Admin::with_check("/healthz", Ready::new(), Shutdown::new(), ailment)
            .bind(any(), "--healthz-port")
            .expect("the system chooses a free port");
        let address = bound.address();
        tokio::spawn(bound.serve());
        for path in ["/healthz", "/healthz/ping"] {
            assert_eq!(get(address, path).await, (500, "a thread has ended\n".to_owned()));
        }
    }

    #[tokio::test]
    async fn pages_answer_get_and_head_only() {
        let address = start(&Ready::new(), &Shutdown::new());
        assert_eq!(get(address, "/configuration").await, (200, "{}".to_owned()));
        assert_eq!(get(address, "/other").await.0, 404);
        let head = "HEAD /configuration HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let head = exchange(address, head).await;
        assert!(
            head.contains("content-type: application/json") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
        let post = "POST /configuration HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let post = exchange(address, post).await;
        assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("allow: GET, HEAD"), "{post}");
    }

    #[tokio::test]
    async fn what_is_for_this_machine_is_refused_to_others() {
        let secret = |query: &str| std::future::ready(Page::json(query.to_owned()));
        let near = || Admin::default().near("/configuration", secret).asked("/open", secret);
        let statuses = async |admin: Admin, peer: &str, path: &str| {
            let listener = TcpListener::bind(any()).await.expect("the system chooses a free port");
            let address = listener.local_addr().expect("it has an address");
            let peer = peer.parse().expect("an address");
            let serve = async {
                let (stream, _) = listener.accept().await.expect("the client is there");
                let place = Places::new(1, &super::COUNT).take(peer);
                serve_connection(stream, peer, &admin, &place, Duration::from_secs(5)).await;
            };
            let (answer, ()) = tokio::join!(get(address, path), serve);
            answer
        };
        for (peer, status) in [
            ("127.0.0.1", 200),
            ("::1", 200),
            ("::ffff:127.0.0.9", 200),
            ("10.0.0.1", 403),
            ("::2", 403),
        ] {
            assert_eq!(statuses(near(), peer, "/configuration?a=1").await.0, status, "{peer}");
            let open = statuses(near(), peer, "/open?a=1").await;
            assert_eq!(open, (200, "a=1".to_owned()), "{peer}");
        }
        assert_eq!(statuses(near(), "::1", "/configuration?a=1").await.1, "a=1");
        let head = exchange_of(near(), "evil.test").await;
        assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
        let head = exchange_of(near(), "localhost").await;
        assert!(head.contains("cache-control: no-store"), "{head}");
        assert_eq!(statuses(near().open_to_all(), "10.0.0.1", "/configuration").await.0, 200);
    }

    #[tokio::test]
    async fn a_port_that_is_open_to_all_answers_no_name_that_somebody_lets_lead_there() {
        let secret = |query: &str| std::future::ready(Page::json(query.to_owned()));
        let open = || Admin::default().near("/configuration", secret).open_to_all();
        for (host, status) in [
            ("evil.test", 403),
            ("localhost.evil.test:1", 403),
            ("127.0.0.1:1", 200),
            ("localhost", 200),
        ] {
            let head = exchange_of(open(), host).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {head}");
        }
        let other_site = "localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors";
        let head = exchange_of(open(), other_site).await;
        assert!(head.starts_with("HTTP/1.1 403 ") && head.contains("no-store"), "{head}");
    }

    /// Asks this machine for what is near, by a name.
    async fn exchange_of(admin: Admin, host: &str) -> String {
        let bound = admin.bind(any(), "--healthz-port").expect("the system chooses a free port");
        let address = bound.address();
        tokio::spawn(bound.serve());
        let request =
            format!("GET /configuration HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        exchange(address, &request).await
    }

    #[tokio::test]
    async fn one_connection_carries_several_requests() {
        let address = start(&Ready::new(), &Shutdown::new());
        let request = "GET /configuration HTTP/1.1\r\nHost: a\r\n";
        let both = format!("{request}\r\n{request}Connection: close\r\n\r\n");
        assert_eq!(exchange(address, &both).await.matches("HTTP/1.1 200 OK").count(), 2);
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_refused() {
        let address = start(&Ready::new(), &Shutdown::new());
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(super::HEAD));
        let answer = exchange(address, &long).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(super::HEADERS + 1));
        let answer = exchange(address, &many).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    /// Numbers without end, which come in pieces.
    fn endless() -> Page {
        Page::metrics(std::iter::repeat_with(|| Bytes::from(vec![b'#'; 64 << 10])))
    }

    /// Opens connections that send these bytes, and nothing is ever read of them.
    async fn occupy(address: SocketAddr, count: usize, bytes: &str) -> Vec<TcpStream> {
        let mut all = Vec::new();
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await.expect("the server listens");
            // Its place may be gone already.
            drop(stream.write_all(bytes.as_bytes()).await);
            all.push(stream);
        }
        all
    }

    #[tokio::test]
    async fn a_probe_is_answered_at_once_whatever_is_done_to_the_port() {
        let bound = Admin::new("/healthz", Ready::new(), Shutdown::new())
            .page("/metrics", endless)
            .bind(any(), "--healthz-port")
            .expect("the system chooses a free port");
        let address = bound.address();
        tokio::spawn(bound.serve());
        let metrics = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        let probed = async || {
            let probe = get(address, "/healthz");
            // Who waits for places to become free by themselves waits for longer.
            let answered = tokio::time::timeout(super::HEAD_TIME, probe).await;
            let (status, _) = answered.expect("it has a place at once");
            assert_eq!(status, 200);
        };
        let _silent = occupy(address, 2 * super::CONNECTIONS, "").await;
        probed().await;
        let _begun = occupy(address, super::CONNECTIONS, "GET /healthz HT").await;
        probed().await;
        let _unread = occupy(address, 2 * super::CONNECTIONS, metrics).await;
        probed().await;
        let again = tokio::spawn(async move {
            loop {
                drop(occupy(address, 10, metrics).await);
                drop(occupy(address, 10, "").await);
            }
        });
        for _ in 0..20 {
            probed().await;
        }
        again.abort();
    }

    #[tokio::test]
    async fn probes_are_answered_while_a_piece_of_a_long_page_is_made() {
        let (probed, wait) = std::sync::mpsc::sync_channel(1);
        let wait = Arc::new(Mutex::new(wait));
        let page = move || {
            let wait = Arc::clone(&wait);
            // On the thread of this test, which serves and asks, it would wait in vain.
            let made = move || wait.lock().recv_timeout(super::HEAD_TIME);
            Page::metrics(std::iter::once_with(made).map(|made| Bytes::from(format!("{made:?}"))))
        };
        let bound = Admin::new("/healthz", Ready::new(), Shutdown::new())
            .page("/metrics", page)
            .bind(any(), "--healthz-port")
            .expect("the system chooses a free port");
        let address = bound.address();
        tokio::spawn(bound.serve());
        let mut reader = TcpStream::connect(address).await.expect("the server listens");
        let asked = b"GET /metrics HTTP/1.0\r\n\r\n";
        reader.write_all(asked).await.expect("the server reads");
        // Its head comes before the first piece.
        let mut answer = vec![0; 12];
        reader.read_exact(&mut answer).await.expect("the server answers");
        assert_eq!(get(address, "/healthz").await.0, 200);
        probed.send(()).expect("somebody waits");
        let mut rest = String::new();
        reader.read_to_string(&mut rest).await.expect("the server answers text");
        assert!(rest.ends_with("Ok(())"), "{rest}");
    }

    #[tokio::test]
    async fn a_long_page_is_compressed_for_who_takes_it() {
        let lines =
            || (0..100).map(|number| Bytes::from(format!("a{{b=\"c\"}} {number}\n").repeat(500)));
        let whole: Vec<u8> = lines().flatten().collect();
        let bound = Admin::default()
            .page("/metrics", move || Page::metrics(lines()))
            .bind(any(), "--healthz-port")
            .expect("the system chooses a free port");
        let address = bound.address();
        tokio::spawn(bound.serve());
        let ask = async |header: &str| {
            let mut stream = TcpStream::connect(address).await.expect("the server listens");
            let request = format!("GET /metrics HTTP/1.0\r\n{header}\r\n");
            stream.write_all(request.as_bytes()).await.expect("the server reads");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.expect("the server answers");
            let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
            let body = answer.split_off(end);
            (String::from_utf8(answer).expect("text"), body)
        };
        for header in ["Accept-Encoding: gzip\r\n", "Accept-Encoding: br, GZIP;q=0.5\r\n"] {
            let (head, body) = ask(header).await;
            assert!(
                head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"),
                "{head}"
            );
            assert!(body.len() * 10 < whole.len(), "{} of {}", body.len(), whole.len());
            let mut read = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(body.as_slice());
            std::io::Read::read_to_end(&mut decoder, &mut read).expect("it is gzip");
            assert!(read == whole);
        }
        for header in ["", "Accept-Encoding: gzip;q=0, br\r\n"] {
            let (head, body) = ask(header).await;
            assert!(!head.contains("content-encoding") && body == whole, "{head}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_takes_too_long_ends_the_connection() {
        let address = start(&Ready::new(), &Shutdown::new());
        assert_eq!(exchange(address, "GET / HT").await, "");
    }

    #[tokio::test]
    async fn a_client_that_never_reads_is_cut_off() {
        let listener = TcpListener::bind(any()).await.expect("the system chooses a free port");
        let address = listener.local_addr().expect("it has an address");
        let large = || Page::json(vec![b' '; 64 << 20]);
        let admin = Admin::new("/healthz", Ready::new(), Shutdown::new()).page("/large", large);
        let mut client = TcpStream::connect(address).await.expect("the server listens");
        client
            .write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .expect("the server reads");
        let (stream, peer) = listener.accept().await.expect("the client is there");
        let place = Places::new(1, &super::COUNT).take(peer.ip());
        serve_connection(stream, peer.ip(), &admin, &place, Duration::from_millis(50)).await;
        let mut received = Vec::new();
        let end = client.read_to_end(&mut received).await;
        assert!(end.is_err() || received.len() < 64 << 20, "it was cut off");
    }

    #[test]
    fn a_port_in_use_is_one_line_with_address_and_flag() {
        let taken = std::net::TcpListener::bind(any()).expect("the system chooses a free port");
        let address = taken.local_addr().expect("it has an address");
        let admin = Admin::new("/healthz", Ready::new(), Shutdown::new());
        let error =
            admin.bind(address, "--healthz-port").expect_err("the port is taken").to_string();
        assert!(
            error.starts_with(&format!("cannot listen on {address}: Address already in use")),
            "{error}"
        );
        assert!(error.ends_with("choose another address or port with --healthz-port"), "{error}");
        assert!(!error.contains('\n'));
    }
}
