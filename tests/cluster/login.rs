//! oauth2-proxy beside Fairway: a whole login with a provider of OpenID Connect, and what stays closed without one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::client::Client;
use testkit::cluster::{self, Cluster, Process, eventually, go_programs};
use testkit::exchange::{Answer, Request, Seen};
use testkit::{ports, upstreams::Upstreams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::echoes::{HERE, echoes};
use crate::fairway::{Fairway, PATIENCE};

/// The application with a page to sign in, the paths of oauth2-proxy, and the same application for machines.
const OBJECTS: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: oauth2-proxy, namespace: demo}
spec: {ports: [{port: 4180, targetPort: 4180}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: oauth2-proxy, namespace: demo, labels: {kubernetes.io/service-name: oauth2-proxy}}
addressType: IPv4
ports: [{name: "", port: TAP}]
endpoints: [{addresses: [HERE], conditions: {ready: true}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: app
  namespace: demo
  annotations:
    nginx.ingress.kubernetes.io/auth-url: http://oauth2-proxy.demo.svc.cluster.local:4180/oauth2/auth
    nginx.ingress.kubernetes.io/auth-signin: http://$host/oauth2/start?rd=$escaped_request_uri
    nginx.ingress.kubernetes.io/auth-response-headers: X-Auth-Request-User, X-Auth-Request-Email, Authorization
spec:
  ingressClassName: nginx
  rules:
  - host: app.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: echo-b, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: sign-in, namespace: demo}
spec:
  ingressClassName: nginx
  rules:
  - host: app.test
    http: {paths: [{path: /oauth2, pathType: Prefix, backend: {service: {name: oauth2-proxy, port: {number: 4180}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: machines
  namespace: demo
  annotations: {nginx.ingress.kubernetes.io/auth-url: "http://oauth2-proxy.demo.svc.cluster.local:4180/oauth2/auth"}
spec:
  ingressClassName: nginx
  rules:
  - host: api.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: echo-b, port: {number: 80}}}}]}
"#;

/// Stands before oauth2-proxy and remembers what it was asked.
struct Tap {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
    _tasks: JoinSet<()>,
}

impl Tap {
    async fn start(before: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((HERE, 0)).await.context("listen for oauth2-proxy")?;
        let (address, heard) = (listener.local_addr()?, Arc::default());
        let mut tasks = JoinSet::new();
        let ears = Arc::clone(&heard);
        tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, before, Arc::clone(&ears)));
            }
        });
        Ok(Self { address, heard, _tasks: tasks })
    }

    /// All that came since somebody last asked.
    fn heard(&self) -> String {
        let bytes = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

async fn relay(client: TcpStream, before: SocketAddr, heard: Arc<Mutex<Vec<u8>>>) {
    // Where nobody listens, the connection ends as it came.
    let Ok(server) = TcpStream::connect(before).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers =
        tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
        heard.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..read]);
        if to_server.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    drop(to_server);
    // Either end may have gone first.
    let _ended = answers.await;
}

/// Everything around Fairway that a login needs.
struct Bed {
    provider: Process,
    issuer: SocketAddr,
    upstreams: Upstreams,
    proxy_port: u16,
    tap: Tap,
}

impl Bed {
    async fn start(cluster: &Cluster) -> Result<Self> {
        let upstreams = echoes(cluster, &["echo-b"]).await?;
        let (proxy_port, issuer) = (ports::free(), SocketAddr::new(HERE.parse()?, ports::free()));
        let provider = go_programs("tests/ecosystem/login")?.join("provider");
        let log = cluster.folder().join("provider.log");
        let provider = Process::start(Command::new(provider).arg(issuer.to_string()), &log)?;
        eventually("the provider to listen", PATIENCE, async || TcpStream::connect(issuer).await)
            .await?;
        let tap = Tap::start(SocketAddr::from((Ipv4Addr::LOCALHOST, proxy_port))).await?;
        let port = tap.address.port().to_string();
        cluster.apply(&OBJECTS.replace("TAP", &port).replace("HERE", HERE)).await?;
        Ok(Self { provider, issuer, upstreams, proxy_port, tap })
    }

    /// Starts oauth2-proxy, and waits until it listens.
    async fn proxy(&self, cluster: &Cluster) -> Result<Process> {
        let program = go_programs("tests/ecosystem/login")?.join("oauth2-proxy");
        let listens = format!("127.0.0.1:{}", self.proxy_port);
        let mut command = Command::new(program);
        command.arg(format!("--oidc-issuer-url=http://{}/oidc", self.issuer));
        command.arg(format!("--http-address={listens}")).args([
            "--provider=oidc",
            "--client-id=fairway",
            "--client-secret=very-secret",
            "--cookie-secret=0123456789abcdef0123456789abcdef",
            "--cookie-secure=false",
            "--code-challenge-method=S256",
            "--email-domain=*",
            "--upstream=static://202",
            "--reverse-proxy=true",
            "--skip-provider-button=true",
            "--set-xauthrequest=true",
            "--set-authorization-header=true",
        ]);
        let process = Process::start(&mut command, &cluster.folder().join("oauth2-proxy.log"))?;
        eventually("oauth2-proxy to listen", PATIENCE, async || TcpStream::connect(&listens).await)
            .await?;
        Ok(process)
    }

    /// What reached the application since somebody last asked.
    fn seen(&self) -> Vec<Seen> {
        self.upstreams.journal.drain()
    }
}

/// A browser in front of one Fairway.
struct Browser<'a> {
    client: Client,
    bed: &'a Bed,
}

impl Browser<'_> {
    async fn send(&self, url: &str, request: Request) -> Answer {
        let cookies = Some("keep".to_owned());
        self.client.send(&Request { url: url.to_owned(), cookies, ..request }).await
    }

    /// Asks, and gives the Location of the redirect that comes.
    async fn led(&self, url: &str) -> Result<String> {
        location(url, &self.send(url, Request::default()).await)
    }

    /// The provider's own answer, which is not behind Fairway.
    async fn asked(&self, url: &str) -> Result<String> {
        let Bed { issuer, .. } = self.bed;
        let client = Client::new(issuer.ip(), issuer.port(), 0);
        location(url, &client.send(&Request { url: url.to_owned(), ..Request::default() }).await)
    }

    /// From the page that was asked for to the page that is shown.
    async fn logs_in(&self, page: &str, escaped: &str) -> Result<()> {
        let url = format!("http://app.test{page}");
        let start = self.led(&url).await?;
        let wanted = format!("http://app.test/oauth2/start?rd={escaped}");
        ensure!(start == wanted, "led to {start}, not to {wanted}");
        ensure!(self.bed.seen().is_empty(), "the application was asked before the login");
        let authorize = self.led(&start).await?;
        let issuer = format!("http://{}/oidc/authorize?", self.bed.issuer);
        ensure!(authorize.starts_with(&issuer), "led to {authorize}");
        let callback = self.asked(&authorize).await?;
        ensure!(callback.starts_with("http://app.test/oauth2/callback?"), "led to {callback}");
        let back = self.led(&callback).await?;
        ensure!(back == page, "led back to {back}, not to {page}");
        Ok(())
    }
}

fn location(url: &str, answer: &Answer) -> Result<String> {
    let mut headers = answer.headers.iter().flatten();
    let found = headers.find(|(name, _)| name.eq_ignore_ascii_case("location"));
    ensure!(answer.status == Some(302), "{url}: {answer:?}");
    Ok(found.with_context(|| format!("{url}: no Location"))?.1.clone())
}

/// The values of a field that the application saw.
fn values<'a>(seen: &'a Seen, name: &str) -> Vec<&'a str> {
    let headers = seen.headers.iter().flatten();
    headers
        .filter(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect()
}

/// A page, an upload and a WebSocket with the cookie of a login.
async fn is_served(browser: &Browser<'_>) -> Result<()> {
    let forged = [("X-Auth-Request-Email", "boss@example.com"), ("Authorization", "Bearer forged")];
    let headers = forged.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let page = Request { headers, ..Request::default() };
    let answer = browser.send("http://app.test/orders?a=1&b=2", page).await;
    let seen = browser.bed.seen();
    let [seen] = seen.as_slice() else { panic!("{answer:?}: {seen:?}") };
    ensure!(seen.uri.as_deref() == Some("/orders?a=1&b=2"), "{seen:?}");
    ensure!(values(seen, "X-Auth-Request-Email") == ["jane.doe@example.com"], "{seen:?}");
    ensure!(values(seen, "X-Auth-Request-User") == ["1234567890"], "{seen:?}");
    let token = values(seen, "Authorization");
    ensure!(token.len() == 1 && token[0].starts_with("Bearer ey"), "{seen:?}");

    browser.bed.tap.heard();
    let body = Some("what-only-the-application-may-read".to_owned());
    let method = Some("POST".to_owned());
    let upload = Request { body: body.clone(), method, ..Request::default() };
    let answer = browser.send("http://app.test/upload", upload).await;
    let seen = browser.bed.seen();
    ensure!(answer.status == Some(200) && seen.len() == 1, "{answer:?}: {seen:?}");
    let got = seen[0].body.as_ref().and_then(|body| body.as_text());
    ensure!(got == body.as_deref(), "{seen:?}");
    let heard = browser.bed.tap.heard();
    ensure!(heard.contains("GET /oauth2/auth") && heard.contains("_oauth2_proxy="), "{heard}");
    ensure!(
        !heard.contains("what-only-the-application"),
        "the authenticator got the body: {heard}"
    );

    let talk = Request { websocket: Some("hello".to_owned()), ..Request::default() };
    let answer = browser.send("http://app.test/socket", talk).await;
    ensure!(
        answer.status == Some(101) && answer.websocket.as_deref() == Some("hello"),
        "{answer:?}"
    );
    browser.bed.seen();
    Ok(())
}

/// What has no login, or a made-up one, or one that was ended.
async fn is_refused(browser: &Browser<'_>) -> Result<()> {
    let cookie = |value: &str| vec![("Cookie".to_owned(), format!("_oauth2_proxy={value}"))];
    let plain = |url: &str, headers| Request { url: url.to_owned(), headers, ..Request::default() };
    let stranger = Client::new(browser.client.address, browser.client.http, 0);
    let answer = stranger.send(&plain("http://app.test/", cookie("bWFkZS11cA==|1|x"))).await;
    ensure!(answer.status == Some(302), "a made-up cookie: {answer:?}");
    let answer = stranger.send(&plain("http://api.test/", Vec::new())).await;
    ensure!(answer.status == Some(401), "a machine without a token: {answer:?}");
    let talk = Request {
        websocket: Some("hello".to_owned()),
        ..plain("http://app.test/socket", Vec::new())
    };
    let answer = stranger.send(&talk).await;
    ensure!(answer.status == Some(302), "a WebSocket of a stranger: {answer:?}");
    let answer = browser.send("http://api.test/", Request::default()).await;
    ensure!(answer.status == Some(200), "the cookie at the other Ingress: {answer:?}");
    browser.bed.seen();
    browser.led("http://app.test/oauth2/sign_out").await?;
    let again = browser.led("http://app.test/orders").await?;
    ensure!(again.ends_with("/oauth2/start?rd=%2Forders"), "after signing out: {again}");
    ensure!(browser.bed.seen().is_empty(), "the application was asked");
    Ok(())
}

/// One engine, from the first page to an authenticator that is gone.
async fn goes_through(cluster: &Cluster, bed: &Bed, flags: &[&str]) -> Result<()> {
    let mut proxy = bed.proxy(cluster).await?;
    let fairway = Fairway::start_with(cluster, flags).await?;
    fairway.answers("app.test", "/", 302).await?;
    let http = fairway.http();
    let browser = Browser { client: Client::new(http.ip(), http.port(), 0), bed };
    bed.seen();
    browser.logs_in("/orders?a=1&b=2%203", "%2Forders%3Fa%3D1%26b%3D2%25203").await?;
    is_served(&browser).await?;
    is_refused(&browser).await?;
    browser.logs_in("/", "%2F").await?;
    proxy.stop(Duration::from_secs(10)).await?;
    for url in ["http://app.test/", "http://api.test/"] {
        let answer = browser.send(url, Request::default()).await;
        ensure!(answer.status == Some(500), "{url}, nobody to ask: {answer:?}");
    }
    ensure!(bed.seen().is_empty(), "the application was asked though nobody could say who it was");
    fairway.stop().await
}

#[test]
#[ignore = "builds oauth2-proxy from the Go module proxy: make ecosystem runs it"]
fn a_whole_login_goes_through_oauth2_proxy_and_nothing_else_does() {
    cluster::test(async |cluster| {
        let mut bed = Bed::start(cluster).await?;
        goes_through(cluster, &bed, &[]).await?;
        let folder = format!("--nginx-directory={}", cluster.folder().join("nginx").display());
        let nginx = ["--engine=nginx", "--sync-rate-limit=0", &folder];
        goes_through(cluster, &bed, &nginx).await?;
        bed.provider.stop(Duration::from_secs(10)).await?;
        Ok(())
    });
}
