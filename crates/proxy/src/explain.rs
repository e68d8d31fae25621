//! What would become of a request: the phases run as for a real one, but nothing is sent to anybody.

use crate::compile::Compiler;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::generation::Generation;
use crate::http1::limits_of;
use crate::listen::Listening;
use crate::log::{AccessLog, Writer};
use crate::phases;
use crate::trace::{Decision, Trace, decisions};
use crate::worker::{Shared, Worker};
use bytes::Bytes;
use model::{Changes, Configuration, LogTarget};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tls::TlsSession;
use tokio::task::LocalSet;
use upstream::Group;
use wire::http1::parse_request;
use wire::{Body, Request, Version, shown_status};

/// How long the names of ExternalName Services may take to be found.
const PATIENCE: Duration = Duration::from_secs(2);

/// A request that is to be explained.
#[derive(Clone, Debug)]
pub struct Question {
    /// Request line and header section as HTTP/1.1 has them, the empty line included.
    pub head: Bytes,
    /// Whether it comes over HTTP/2.
    pub http2: bool,
    /// Whether it comes over TLS, and with which name.
    pub tls: Option<Option<String>>,
    /// The client's address and port.
    pub client: SocketAddr,
    /// The ports for HTTP and HTTPS, as clients see them.
    pub ports: (u16, u16),
}

/// Why a request cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum Unanswerable {
    /// It is refused before any phase.
    #[error("it is no request: it would be answered with {0} at once")]
    BadRequest(http::StatusCode),
    /// The Configuration cannot be compiled.
    #[error("the configuration cannot be served: {0}")]
    Configuration(String),
}

/// Explains a request where nobody serves: no name is looked up, for its addresses need not be those that whoever
/// serves is told. Must be called within a tokio runtime.
pub async fn explain(
    configuration: &Configuration,
    question: Question,
) -> Result<Vec<Decision>, Unanswerable> {
    explained(compiled(configuration)?, question).await
}

/// Explains requests, and keeps what a Configuration was compiled to for the next question: then only what changed is
/// compiled anew.
#[derive(Debug, Default)]
pub struct Explainer(Mutex<Option<(Compiler, Arc<Generation>)>>);

impl Explainer {
    /// Explains a request. Must be called within a tokio runtime, which outlives this.
    pub async fn explain(
        &self,
        configuration: &Configuration,
        question: Question,
    ) -> Result<Vec<Decision>, Unanswerable> {
        explained(self.generation(configuration)?, question).await
    }

    /// Gives back what was kept.
    pub fn forget(&self) {
        *self.0.lock() = None;
    }

    fn generation(&self, configuration: &Configuration) -> Result<Arc<Generation>, Unanswerable> {
        let mut kept = self.0.lock();
        let Some((compiler, generation)) = &mut *kept else {
            let compiler = Compiler::default();
            let generation = first(&compiler, configuration)?;
            *kept = Some((compiler, generation.clone()));
            return Ok(generation);
        };
        let changes = Changes::between(&generation.configuration, configuration);
        if !changes.is_empty() {
            let next = compiler.next(generation, configuration, &changes);
            let wrong = |error: rustls::Error| Unanswerable::Configuration(error.to_string());
            *generation = Arc::new(next.map_err(wrong)?);
        }
        Ok(generation.clone())
    }
}

async fn explained(
    generation: Arc<Generation>,
    question: Question,
) -> Result<Vec<Decision>, Unanswerable> {
    let both = async {
        let (decisions, nameless) = follow(generation.clone(), question.clone()).await?;
        if nameless.is_empty() {
            return Ok(decisions);
        }
        resolved(&nameless).await;
        Ok(follow(generation, question).await?.0)
    };
    LocalSet::new().run_until(both).await
}

/// A Configuration as it would be served, without a question to DNS. Must be called within a tokio runtime.
pub(crate) fn compiled(configuration: &Configuration) -> Result<Arc<Generation>, Unanswerable> {
    first(&Compiler::without_names(), configuration)
}

fn first(
    compiler: &Compiler,
    configuration: &Configuration,
) -> Result<Arc<Generation>, Unanswerable> {
    let wrong = |error: String| Unanswerable::Configuration(error);
    let never_shown = tls::never_shown().map_err(|error| wrong(error.to_string()))?;
    let nothing = compiler.nothing(never_shown).map_err(|error| wrong(error.to_string()))?;
    let changes = Changes::between(&nothing.configuration, configuration);
    let generation = compiler.next(&nothing, configuration, &changes);
    Ok(Arc::new(generation.map_err(|error| wrong(error.to_string()))?))
}

/// Waits until these have addresses, or there is no more time.
async fn resolved(nameless: &[Arc<Group>]) {
    let all = async {
        while nameless.iter().any(|group| group.is_empty()) {
            #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // What cannot be found is told as a name of which no address is known.
    let _ = tokio::time::timeout(PATIENCE, all).await;
}

/// What is decided; and the groups that it hangs on whose names have no addresses yet. Nobody else's are waited for.
async fn follow(
    generation: Arc<Generation>,
    question: Question,
) -> Result<(Vec<Decision>, Vec<Arc<Group>>), Unanswerable> {
    let worker = worker(&generation, question.ports)?;
    let mut exchange = exchange(question, &worker, generation)?;
    let response = phases::serve(&mut exchange).await;
    let nameless = exchange.place.iter().flat_map(|place| {
        let spot = place.spot();
        let canary = spot.extras().canary.as_deref().map(|canary| &canary.group);
        let stand_in = spot.extras().stand_in.as_deref().map(|stand_in| &stand_in.group);
        spot.group.iter().chain(canary).chain(stand_in).chain(&spot.extras().mirrors)
    });
    let nameless = nameless.chain(&exchange.visit.named).cloned();
    let upstreams = &exchange.generation.configuration.upstreams;
    let is_external = |group: &Arc<Group>| {
        upstreams.get(&group.id).is_some_and(|upstream| upstream.external.is_some())
    };
    let nameless = nameless.filter(|group| group.is_empty() && is_external(group)).collect();
    Ok((decisions(&exchange, &response), nameless))
}

/// A thread that serves nobody.
pub(crate) fn worker(
    generation: &Arc<Generation>,
    (http_port, https_port): (u16, u16),
) -> Result<Rc<Worker>, Unanswerable> {
    let listening = Listening {
        addresses: Vec::new(),
        http_port,
        https_port,
        health_path: "".into(),
        followed: None,
        // It says another name than the one that serves.
        hostname: "…".into(),
    };
    let log = Writer::start("access-log", LogTarget::Stderr)
        .map_err(|error| Unanswerable::Configuration(error.to_string()))?;
    let shared = Arc::new(Shared::new(generation.clone(), listening, 1, Arc::default()));
    Ok(Rc::new(Worker::new(shared, AccessLog::new(log))))
}

/// A request that comes to this thread, and is only thought through.
pub(crate) fn exchange(
    question: Question,
    worker: &Rc<Worker>,
    generation: Arc<Generation>,
) -> Result<Exchange, Unanswerable> {
    let Question { head, http2, tls, client, ports } = question;
    let session = tls.map(|server_name| TlsSession { server_name, ..TlsSession::default() });
    let port = if session.is_some() { ports.1 } else { ports.0 };
    let local = SocketAddr::new(client.ip(), port);
    let connection = Rc::new(Connection::new(1, client, local, None, session));
    let request = request(head, http2, &generation)?;
    let mut exchange = Exchange::new(request, connection, worker.clone(), generation);
    exchange.trace = Some(Box::new(Trace { dry: true, ..Trace::default() }));
    Ok(exchange)
}

fn request(head: Bytes, http2: bool, generation: &Generation) -> Result<Request, Unanswerable> {
    let limits = limits_of(generation);
    let parsed = parse_request(&head, limits, b"")
        .map_err(|refused| Unanswerable::BadRequest(shown_status(refused.0)))?;
    Ok(Request {
        method: parsed.method,
        target: parsed.target,
        line: (!http2).then_some(parsed.line),
        version: if http2 { Version::Http2 } else { parsed.version },
        authority: parsed.authority,
        headers: parsed.headers,
        body: Body::empty(),
        head_size: head.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Explainer, PATIENCE, Question, compiled, explain};
    use model::policy::Policy;
    use model::{
        Backend, Configuration, Endpoints, Location, PathKind, Server, ServerName, Upstream,
        UpstreamId,
    };
    use parking_lot::Mutex;
    use std::sync::Arc;

    fn with(hosts: &[&str]) -> Configuration {
        let servers = hosts.iter().map(|host| {
            let name = ServerName::new(*host);
            (name.clone(), Arc::new(Server::new(name)))
        });
        Configuration { servers: servers.collect(), ..Configuration::default() }
    }

    /// What is logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A host whose upstream has no endpoints, and that has its rewrites logged.
    fn with_nobody() -> Configuration {
        let mut configuration = Configuration::default();
        let id = UpstreamId::new("nobody");
        let endpoints = Arc::new(Endpoints { ready: Vec::new(), draining: Vec::new() });
        let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
        configuration.upstreams.insert(id.clone(), Arc::new(upstream));
        let mut policy = Policy::default();
        policy.logging.rewrite = true;
        let location = Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::Upstream(id),
            canary: None,
            service: None,
            origin: None,
            policy: Arc::new(policy),
        };
        let name = ServerName::new("a.test");
        let locations = vec![Arc::new(location)];
        let server = Server { locations, ..Server::new(name.clone()) };
        configuration.servers.insert(name, Arc::new(server));
        configuration
    }

    #[tokio::test]
    async fn no_log_tells_of_a_request_that_nobody_sent() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone());
        let _guard = tracing::subscriber::set_default(subscriber.finish());
        tracing::error!("the log is read");
        let question = Question {
            head: "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            http2: false,
            tls: None,
            client: "192.0.2.1:1".parse().expect("an address"),
            ports: (80, 443),
        };
        let decisions = explain(&with_nobody(), question).await.expect("an explanation");
        assert!(decisions.iter().any(|it| it.outcome.contains("none is ready")), "{decisions:?}");
        let told = String::from_utf8(log.0.lock().clone()).expect("text");
        assert!(told.contains("the log is read") && !told.contains("192.0.2.1"), "{told}");
    }

    /// Two hosts, and the name that the Service behind the first one leads to.
    fn with_a_name() -> Configuration {
        let mut configuration = with_nobody();
        let id = UpstreamId::new("nobody");
        let Some(upstream) = configuration.upstreams.get_mut(&id) else { panic!("it has one") };
        let external = Some(("nowhere.invalid".to_owned(), 80));
        *upstream = Arc::new(Upstream { external, ..(**upstream).clone() });
        let name = ServerName::new("b.test");
        configuration.servers.insert(name.clone(), Arc::new(Server::new(name)));
        configuration
    }

    fn question(host: &str) -> Question {
        Question {
            head: format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into(),
            http2: false,
            tls: None,
            client: "192.0.2.1:1".parse().expect("an address"),
            ports: (80, 443),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_name_that_another_host_has_and_that_is_not_found() {
        let (explainer, configuration) = (Explainer::default(), with_a_name());
        let asked = async |host: &str| {
            let began = tokio::time::Instant::now();
            let story = explainer.explain(&configuration, question(host)).await.expect("a story");
            (began.elapsed(), format!("{story:?}"))
        };
        let (waited, story) = asked("a.test").await;
        assert!(story.contains("no address of nowhere.invalid is known"), "{story}");
        assert!(waited >= PATIENCE, "{waited:?}");
        let (waited, story) = asked("b.test").await;
        assert!(waited < PATIENCE, "{waited:?}: {story}");
    }

    #[tokio::test]
    async fn where_nobody_serves_no_name_is_followed() {
        let generation = compiled(&with_a_name()).expect("it is compiled");
        let id = UpstreamId::new("nobody");
        let group = generation.groups.get(&id).expect("a group");
        assert!(group.followed().is_none() && !group.is_empty());
        let story = explain(&with_a_name(), question("a.test")).await.expect("a story");
        let told = |it: &crate::trace::Decision| {
            it.outcome == "in turn one of the addresses of nowhere.invalid:80"
        };
        assert!(story.iter().any(told), "{story:?}");
    }

    #[tokio::test]
    async fn what_was_compiled_stays_for_the_next_question_and_follows_changes() {
        let explainer = Explainer::default();
        let configuration = with(&["a.test"]);
        let first = explainer.generation(&configuration).expect("it is compiled");
        let same = explainer.generation(&configuration).expect("it is kept");
        assert!(Arc::ptr_eq(&first, &same), "it was compiled anew");
        let next = explainer.generation(&with(&["a.test", "b.test"])).expect("it follows");
        assert!(next.configuration.servers.contains_key("b.test"));
        explainer.forget();
        let anew = explainer.generation(&configuration).expect("it is compiled");
        assert!(!Arc::ptr_eq(&first, &anew));
    }
}
