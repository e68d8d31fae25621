//! Makes nginx have what a Configuration says: sends what differs from what it has already, again and again until it is
//! taken. What nginx refuses for good is looked for by halves, left out and not told again, so that it keeps nothing
//! else back.

use super::backends::{self, Backend};
use super::client::{Control, PushError, send};
use super::general::General;
use super::known::{Pushed, Text, Things, keep, problem};
use super::refused::{Fate, Known, Made};
use super::room::{CERTIFICATES, HOSTS, UPSTREAMS};
use super::routes;
use super::servers::{self, DEFAULT, Host, Kept};
use backon::{BackoffBuilder, ExponentialBuilder};
use http::Method;
use model::{Certificate, Configuration, Endpoints, Problem, Secret, UpstreamId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

const GENERAL: &str = "/configuration/general";
const GENERATION: &str = "/configuration/generation";

/// Things of one request at most, and their bytes, unless one has more alone: a worker reads it in one go, and answers
/// nobody meanwhile.
const PIECE: usize = 200;
const PIECE_BYTES: usize = 1 << 20;
/// Things that go with one request at most: only their names are sent.
const GONE: usize = 2000;
/// How often a piece of one namespace that nginx refuses is halved at most; then all of it is left out.
const LOOKS: usize = 40;
/// The first pause before another attempt, the longest, and how long after the first attempt there is another one.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(15);

/// Tells nginx what changes without a reload. Knows what nginx has, so that only differences are sent, and notices when
/// it is mistaken.
#[derive(Debug)]
pub struct Pusher {
    socket: Control,
    fallback: Arc<Certificate>,
    has: Mutex<Has>,
}

/// What nginx was made to have.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The number by which nginx knows it.
    pub generation: u64,
    /// What it has not, and why.
    pub problems: Vec<Problem>,
}

/// What nginx is to have.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// What is to be served.
    pub now: &'a Configuration,
    /// The same, with what only workers need that leave.
    pub all: &'a Configuration,
    /// The endpoints of upstreams that stand for a name.
    pub resolved: &'a BTreeMap<UpstreamId, Arc<Endpoints>>,
}

/// What nginx has.
#[derive(Debug, Default)]
struct Has {
    /// None where somebody has to ask.
    generation: Option<u64>,
    upstreams: Known<Backend>,
    parts: Known<Text>,
    routes: Known<Text>,
    certificates: Known<Kept>,
    hosts: Known<Host>,
    general: Option<General>,
    /// What the ConfigMap said for all of `http` where nginx refused what it does not take: it counts at the socket.
    under: Option<Secret<String>>,
    /// How much room was made.
    made: Made,
}

impl Has {
    /// The socket may hear what it refused before.
    fn try_refused_again(&mut self) {
        self.upstreams.try_refused_again();
        self.parts.try_refused_again();
        self.routes.try_refused_again();
        self.certificates.try_refused_again();
        self.hosts.try_refused_again();
    }

    /// Nothing of it is known for sure any more.
    fn doubt(&mut self) {
        self.generation = None;
        self.upstreams.doubt();
        self.parts.doubt();
        self.routes.doubt();
        self.certificates.doubt();
        self.hosts.doubt();
        self.general = None;
    }
}

/// What nginx is to have, as far as there is room for it.
struct Wanted {
    upstreams: Things<Backend>,
    parts: Things<Text>,
    routes: Things<Text>,
    certificates: Things<Kept>,
    hosts: Things<Host>,
    general: General,
    /// What the ConfigMap says for all of `http`.
    under: Option<Secret<String>>,
    problems: Vec<Problem>,
}

impl Wanted {
    fn new(wish: Wish<'_>, fallback: &Arc<Certificate>, general: General) -> Self {
        let Wish { now, all, resolved } = wish;
        let mut problems = Vec::new();
        let mut upstreams = backends::of(all, resolved);
        let is_now = |id: &str| now.upstreams.contains_key(&UpstreamId::new(id));
        keep(&mut upstreams, UPSTREAMS, is_now, &mut problems);
        let mut said = routes::of(all);
        // What is served now was seen to before (`routes_beyond`).
        if !std::ptr::eq(now, all) {
            let own = routes::of(now);
            let is_now = |key: &str| own.parts.contains_key(key) || own.routes.contains_key(key);
            said.keep_older(is_now);
        }
        let mut servers = servers::of(all, fallback);
        keep(&mut servers.certificates, CERTIFICATES, |_| true, &mut problems);
        keep(&mut servers.hosts, HOSTS, |_| true, &mut problems);
        Self {
            upstreams,
            parts: said.parts,
            routes: said.routes,
            certificates: servers.certificates,
            hosts: servers.hosts,
            general,
            under: text_of_http(now).cloned(),
            problems,
        }
    }
}

/// What the ConfigMap says for all of `http`.
pub(crate) fn text_of_http(configuration: &Configuration) -> Option<&Secret<String>> {
    configuration.global.raw.as_deref().and_then(|raw| raw.http.as_ref())
}

/// What is there and no longer wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Surplus {
    Stays,
    Goes,
}

/// What an attempt has come to.
struct Attempt {
    generation: u64,
    /// How much room was made.
    made: Made,
    /// How often pieces of a namespace were halved, of the sort at hand.
    looks: BTreeMap<String, usize>,
    problems: Vec<Problem>,
}

/// Things of one request.
type Piece<'a, V> = Vec<(&'a Arc<str>, &'a V)>;

impl Attempt {
    /// A piece that nginx does not take, as smaller ones: of each namespace, then by halves. The same as an error where
    /// it has to be left out.
    fn smaller<'a, V: Pushed>(
        &mut self,
        piece: Piece<'a, V>,
    ) -> Result<Vec<Piece<'a, V>>, Piece<'a, V>> {
        let mut namespaces: BTreeMap<&str, Piece<'a, V>> = BTreeMap::new();
        for (key, thing) in piece {
            namespaces.entry(thing.namespace()).or_default().push((key, thing));
        }
        if namespaces.len() > 1 {
            return Ok(namespaces.into_values().collect());
        }
        let Some((namespace, mut small)) = namespaces.pop_first() else { return Ok(Vec::new()) };
        let looks = self.looks.entry(namespace.to_owned()).or_default();
        if small.len() < 2 || *looks == LOOKS {
            return Err(small);
        }
        *looks += 1;
        let large = small.split_off(small.len() / 2);
        Ok(vec![large, small])
    }
}

impl Pusher {
    /// Speaks to the Lua that listens on `socket`. `fallback` is the certificate where a Configuration has no default
    /// one.
    pub fn new(socket: Control, fallback: Arc<Certificate>) -> Self {
        Self { socket, fallback, has: Mutex::default() }
    }

    /// The certificate of handshakes with this name; none: the one that the process made for itself.
    pub fn certificate(&self, serving: &Configuration, host: &str) -> Option<Arc<Certificate>> {
        let chosen = servers::chosen(serving, &self.fallback, host)?;
        (!Arc::ptr_eq(&chosen, &self.fallback)).then_some(chosen)
    }

    /// Nginx was started anew: it has nothing.
    pub async fn forget(&self) {
        *self.has.lock().await = Has::default();
    }

    /// Nginx gets what a wish adds and changes; what it has besides stays. Before a reload: the old workers still need
    /// what the new ones will not.
    pub async fn extend(&self, wish: Wish<'_>, general: General) -> Result<Told, PushError> {
        self.push(wish, general, Surplus::Stays).await
    }

    /// Nginx gets what a wish says and has nothing else. After a reload, or if there is none.
    pub async fn settle(&self, wish: Wish<'_>, general: General) -> Result<Told, PushError> {
        self.push(wish, general, Surplus::Goes).await
    }

    async fn push(
        &self,
        wish: Wish<'_>,
        general: General,
        surplus: Surplus,
    ) -> Result<Told, PushError> {
        let wanted = Wanted::new(wish, &self.fallback, general);
        let mut has = self.has.lock().await;
        let pauses = ExponentialBuilder::new()
            .with_min_delay(PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_factor(1.5)
            .without_max_times()
            .with_jitter();
        let (mut pauses, began) = (pauses.build(), Instant::now());
        loop {
            let error = match self.attempt(&mut has, &wanted, surplus).await {
                Ok(told) => return Ok(told),
                Err(error) => error,
            };
            if error.is_final() {
                return Err(error);
            }
            has.doubt();
            // An attempt may take a while itself.
            let pause = pauses.next().filter(|pause| began.elapsed() + *pause < PATIENCE);
            let Some(pause) = pause else { return Err(error) };
            if !error.is_conflict() {
                tracing::debug!(%error, ?pause, "a push to nginx is tried again");
            }
            #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        has: &mut Has,
        wanted: &Wanted,
        surplus: Surplus,
    ) -> Result<Told, PushError> {
        let generation = match has.generation {
            Some(generation) => generation,
            None => send(&self.socket, Method::GET, GENERATION, None, Vec::new()).await?,
        };
        if generation == 0 {
            // It was started anew by itself.
            *has = Has::default();
        }
        // Before a reload it is still the old one that counts.
        if surplus == Surplus::Goes && has.under != wanted.under {
            has.under.clone_from(&wanted.under);
            has.try_refused_again();
        }
        let problems = wanted.problems.clone();
        let mut attempt = Attempt { generation, made: has.made, looks: BTreeMap::new(), problems };
        let outcome = self.differences(&mut attempt, has, wanted, surplus).await;
        // A refusal changes nothing, so what came before it is still known.
        let Attempt { generation, made, looks: _, problems } = attempt;
        (has.generation, has.made) = (Some(generation), made);
        outcome.map(|()| Told { generation, problems })
    }

    async fn differences(
        &self,
        attempt: &mut Attempt,
        has: &mut Has,
        wanted: &Wanted,
        surplus: Surplus,
    ) -> Result<(), PushError> {
        if has.general.as_ref() != Some(&wanted.general) {
            let body = serde_json::to_vec(&wanted.general).expect("texts and numbers are JSON");
            self.tell(attempt, Method::POST, GENERAL, body).await?;
            has.general = Some(wanted.general.clone());
        }
        // Certificates before the hosts that have them, and parts before routes.
        self.add(attempt, &mut has.certificates, &wanted.certificates).await?;
        let hosts = with_certificates(&wanted.hosts, &has.certificates);
        self.add(attempt, &mut has.hosts, &hosts).await?;
        self.add(attempt, &mut has.upstreams, &wanted.upstreams).await?;
        self.add(attempt, &mut has.parts, &wanted.parts).await?;
        self.add(attempt, &mut has.routes, &wanted.routes).await?;
        if surplus == Surplus::Goes {
            self.remove(attempt, &mut has.routes, &wanted.routes).await?;
            self.remove(attempt, &mut has.parts, &wanted.parts).await?;
            self.remove(attempt, &mut has.upstreams, &wanted.upstreams).await?;
            self.remove(attempt, &mut has.hosts, &hosts).await?;
            self.remove(attempt, &mut has.certificates, &wanted.certificates).await?;
        }
        Ok(())
    }

    /// What is new or another one; the small first, so that where room is short it is the large that find none.
    async fn add<V: Pushed>(
        &self,
        attempt: &mut Attempt,
        has: &mut Known<V>,
        wanted: &Things<V>,
    ) -> Result<(), PushError> {
        attempt.looks.clear();
        let mut changed = Vec::new();
        for (key, thing) in wanted {
            match has.fate(key, thing, attempt.made) {
                None => changed.push((key, thing)),
                Some(Fate::Refused { reason, .. }) => {
                    attempt.problems.push(problem(thing, key, reason));
                }
                Some(Fate::Unknown | Fate::Taken(_)) => {}
            }
        }
        changed.sort_by_key(|(_, thing)| thing.bytes());
        let mut pieces = pieces(&changed);
        while let Some(piece) = pieces.pop() {
            match self.tell_of(attempt, &piece).await {
                Ok(()) => {
                    piece
                        .into_iter()
                        .for_each(|(key, thing)| has.take(key, thing, &mut attempt.made));
                }
                Err(error) if error.is_final() => match attempt.smaller(piece) {
                    Ok(smaller) => pieces.extend(smaller),
                    Err(refused) => self.leave_out(attempt, has, &refused, &error).await?,
                },
                Err(error) => {
                    // Nobody knows whether nginx has it.
                    piece.iter().for_each(|(key, _)| has.doubt_of(key));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// What nginx does not take is told, and nothing of it stays: that is better than what counts no more. What it has
    /// refused by itself is remembered; of several it is looked for further the next time.
    async fn leave_out<V: Pushed>(
        &self,
        attempt: &mut Attempt,
        has: &mut Known<V>,
        refused: &[(&Arc<str>, &V)],
        error: &PushError,
    ) -> Result<(), PushError> {
        tracing::warn!(%error, things = refused.len(), "nginx does not take a part of a push");
        let reason = error.to_string();
        let problems = refused.iter().map(|(key, thing)| problem(*thing, key, &reason));
        attempt.problems.extend(problems);
        let stale = refused.iter().filter(|(key, _)| has.may_have(key));
        let stale: Vec<Arc<str>> = stale.map(|(key, _)| Arc::clone(key)).collect();
        self.take_away(attempt, has, &stale).await?;
        if let [(key, thing)] = refused {
            has.refuse(key, thing, reason, error.is_for_room().then_some(attempt.made));
        }
        Ok(())
    }

    async fn remove<V: Pushed>(
        &self,
        attempt: &mut Attempt,
        has: &mut Known<V>,
        wanted: &Things<V>,
    ) -> Result<(), PushError> {
        has.forget_refused(|key| !wanted.contains_key(key));
        let gone = has.keys().filter(|key| !wanted.contains_key(*key));
        let gone: Vec<Arc<str>> = gone.cloned().collect();
        self.take_away(attempt, has, &gone).await
    }

    async fn take_away<V: Pushed>(
        &self,
        attempt: &mut Attempt,
        has: &mut Known<V>,
        gone: &[Arc<str>],
    ) -> Result<(), PushError> {
        for piece in gone.chunks(GONE) {
            let things: Vec<_> = piece.iter().map(|key| (&**key, None::<&V>)).collect();
            let (method, path) = request::<V>();
            self.tell(attempt, method, path, V::body(&things)).await?;
            piece.iter().for_each(|key| has.remove(key, &mut attempt.made));
        }
        Ok(())
    }

    async fn tell_of<V: Pushed>(
        &self,
        attempt: &mut Attempt,
        piece: &[(&Arc<str>, &V)],
    ) -> Result<(), PushError> {
        let things: Vec<_> = piece.iter().map(|(key, thing)| (&***key, Some(*thing))).collect();
        let (method, path) = request::<V>();
        self.tell(attempt, method, path, V::body(&things)).await
    }

    async fn tell(
        &self,
        attempt: &mut Attempt,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(), PushError> {
        let after = Some(attempt.generation);
        attempt.generation = send(&self.socket, method, path, after, body).await?;
        Ok(())
    }
}

/// Hosts whose certificate nginx does not have, have the default one.
fn with_certificates(hosts: &Things<Host>, has: &Known<Kept>) -> Things<Host> {
    let mut hosts = hosts.clone();
    for (name, host) in &mut hosts {
        if &**name != DEFAULT && !has.has(&host.uid) {
            host.uid = DEFAULT.into();
        }
    }
    hosts
}

fn request<V: Pushed>() -> (Method, &'static str) {
    V::REQUEST
}

/// As few requests as it takes, the last one first.
fn pieces<'a, V: Pushed>(things: &[(&'a Arc<str>, &'a V)]) -> Vec<Piece<'a, V>> {
    let (mut pieces, mut rest) = (Vec::new(), things);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |(key, thing): &&(&Arc<str>, &V)| {
            bytes += key.len() + thing.bytes();
            bytes <= PIECE_BYTES
        };
        let count = rest.iter().take(PIECE).take_while(fits).count().max(1);
        let (piece, others) = rest.split_at(count);
        pieces.push(piece.to_vec());
        rest = others;
    }
    pieces.reverse();
    pieces
}

#[cfg(test)]
mod tests {
    use super::{Wanted, Wish};
    use crate::push::General;
    use model::{Certificate, CertificateId, Configuration, PrivateKey, Server, ServerName};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn certificate(id: &str, bytes: usize) -> Arc<Certificate> {
        Arc::new(Certificate {
            id: CertificateId::new(id),
            chain: vec![vec![0; bytes]],
            key: PrivateKey(Vec::new()),
            names: Vec::new().into(),
            not_after: 0,
        })
    }

    #[test]
    fn certificates_beyond_the_share_of_a_namespace_are_not_pushed_and_their_hosts_have_the_default_one()
     {
        let mut next = Configuration::default();
        let mut add = |id: &str, bytes: usize| {
            let certificate = certificate(id, bytes);
            let mut server = Server::new(ServerName::new(format!("{id}.test").replace('/', ".")));
            server.certificate = Some(certificate.id.clone());
            next.certificates.insert(certificate.id.clone(), certificate);
            next.servers.insert(server.name.clone(), Arc::new(server));
        };
        // 40 of 1.4 MiB in PEM, where there is room for 32 MiB.
        (0..40).for_each(|number| add(&format!("greedy/{number:02}"), (1 << 20) + number));
        add("honest/one", 3000);
        let general = General { http_redirect_code: 308, enable_ocsp: false, metrics: None };
        let wish = Wish { now: &next, all: &next, resolved: &BTreeMap::new() };
        let wanted = Wanted::new(wish, &certificate("fallback", 1), general);
        let told: Vec<_> = wanted.problems.iter().map(|problem| &problem.origin).collect();
        assert!((10..25).contains(&told.len()), "{told:?}");
        assert!(told.iter().all(|origin| &*origin.namespace == "greedy"), "{told:?}");
        assert_eq!(told.last().map(|origin| &*origin.name), Some("39"));
        assert_eq!(wanted.certificates.len() + told.len(), 42, "the fallback is among them");
        assert!(wanted.certificates.keys().any(|uid| uid.starts_with("honest/one@")));
        assert_eq!(wanted.hosts.len(), 42, "all were promised TLS");
    }
}
