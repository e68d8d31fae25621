//! `fairway explain`: why a request goes where it goes.

use crate::flags::{Explain as Flags, Output};
use crate::reading::{self, Objects};
use crate::say;
use crate::say::note;
use anyhow::{Context, Result, bail, ensure};
use console::{Asked, Explained, Line};
use controller::Known;
use model::{Changes, Configuration, Kind, Origin, Printable, ServerName};
use objects::{ObjectKey, Snapshot};
use proxy::{Decision, Explainer, Nobody, Question, Wanted};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Handle;
use translate::{InForce, Options, Problems, Translation, fault_at, fault_behind};

/// What stands between the annotation and the Ingress that asks for a decision.
const OF_INGRESS: &str = " of Ingress ";

/// What stands between `server-snippet` and the namespace of the Ingress that has it.
const OF_NAMESPACE: &str = "server-snippet of namespace ";

/// Prints the decisions.
pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    let Flags { url, method, headers, client, sni, http2, format, source, classes } = flags;
    let is_of_files = !source.manifests.is_empty();
    let url = Url::parse(&url)?;
    ensure!(
        sni.is_none() || url.secure,
        "--sni is about the TLS handshake, and http:// has none: write https://"
    );
    let tls = match sni {
        Some(name) => Some(name).filter(|name| !name.is_empty()),
        None => Some(url.host.clone()),
    };
    let question = Question {
        http2,
        tls: url.secure.then_some(tls),
        ..question(&url, &method, &headers, client)?
    };
    let Objects { snapshot, options, assumed } = reading::read(source, &classes)?;
    let routes = snapshot.http_routes.len() + snapshot.stream_routes.len();
    if snapshot.ingresses.is_empty() && routes == 0 {
        note!("no Ingress and no route was found: this is what is answered where there is none");
    }
    let translation = translate::translate_telling_all(&snapshot, &options);
    for note in notes(&url.host, &snapshot, &options, &translation) {
        note!("{note}");
    }
    let mut decisions = decide(&translation.configuration, question)?;
    name_faults(&mut decisions, &snapshot, &options, &translation.problems);
    let ingresses = InForce { snapshot: &snapshot, options: &options, kept: &translation.kept };
    let is_served = |key: &ObjectKey| translation.served.contains(key);
    name_annotations(&mut decisions, &url.host, &ingresses, &is_served);
    let class = |outcome| Decision { step: "IngressClass", outcome, by: None, nobody: None };
    decisions.extend(assumed.map(class));
    match format {
        Output::Json => say::json(&serde_json::to_string_pretty(&decisions)?)?,
        Output::Text => decisions.iter().try_for_each(print)?,
    }
    // In a cluster there is always something of somebody that cannot be read.
    let unread = snapshot.malformed.len();
    if is_of_files && unread > 0 {
        note!("{unread} could not be read: with what they say, the request may go elsewhere");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains what somebody asks the page, of what is in force.
pub(crate) struct OfKnown {
    options: Options,
    explainer: Explainer,
}

impl OfKnown {
    pub(crate) fn new(options: Options) -> Arc<Self> {
        Arc::new(Self { options, explainer: Explainer::default() })
    }
}

impl console::Explain for OfKnown {
    fn explain(&self, asked: &Asked, known: &Known) -> Result<Explained, String> {
        explained(asked, known, self).map_err(|error| crate::line(&error))
    }

    fn forget(&self) {
        self.explainer.forget();
    }
}

fn explained(asked: &Asked, known: &Known, with: &OfKnown) -> Result<Explained> {
    let url = Url::parse(&asked.url)?;
    let question = question(&url, &asked.method, &asked.headers, asked.client)?;
    let translation = Translation {
        configuration: known.serving.clone(),
        problems: known.problems.clone(),
        served: known.served.clone(),
        without_class: known.without_class,
        kept: known.kept.clone(),
        statuses: known.statuses.clone(),
        closed: known.closed.clone(),
        more: false,
        changes: Changes::default(),
    };
    let mut decisions = match passed_on(&question, &known.serving) {
        Some(decisions) => decisions,
        // What is compiled follows names for as long as it is kept: in the runtime of the process, not in its own.
        None => Handle::current().block_on(with.explainer.explain(&known.serving, question))?,
    };
    name_faults(&mut decisions, &known.snapshot, &with.options, &known.problems);
    let ingresses =
        InForce { snapshot: &known.snapshot, options: &with.options, kept: &known.kept };
    let is_served = |key: &ObjectKey| known.served.contains(key);
    name_annotations(&mut decisions, &url.host, &ingresses, &is_served);
    let decisions = decisions.into_iter().map(|decision| Line {
        step: decision.step.to_owned(),
        outcome: decision.outcome,
        by: decision.by,
    });
    let notes = notes(&url.host, &known.snapshot, &with.options, &translation);
    Ok(Explained { notes, decisions: decisions.collect() })
}

/// Where nobody is somewhere because of a mistake in a Service, that is why: it may well have ready endpoints.
fn name_faults(
    decisions: &mut [Decision],
    snapshot: &Snapshot,
    options: &Options,
    problems: &Problems,
) {
    for Decision { outcome, nobody, .. } in decisions {
        let Some(Nobody { wanted, decided }) = nobody else { continue };
        let fault = match wanted {
            Wanted::Service(service) => fault_behind(service, snapshot, options, problems),
            Wanted::Url(url) => fault_at(url, snapshot, options, problems),
        };
        if let Some(fault) = fault {
            *outcome = format!("{decided}; {}", Printable(&fault));
        }
    }
}

/// Names what only the annotations of an Ingress tell: which of two redirects it has, whether a guard is its own, and
/// who has the `server-snippet` of the host.
fn name_annotations(
    decisions: &mut [Decision],
    host: &str,
    ingresses: &InForce<'_>,
    is_served: &dyn Fn(&ObjectKey) -> bool,
) {
    // Of an alias, or below a wildcard, the host that the server has is another one.
    let is_server = |one: &Decision| one.step == "server" && one.outcome.eq_ignore_ascii_case(host);
    let has_server = decisions.iter().any(is_server);
    for Decision { by, .. } in decisions {
        if let Some(namespace) = by.as_deref().and_then(|by| by.strip_prefix(OF_NAMESPACE)) {
            let owner = has_server
                .then(|| of_server_snippet(namespace, host, ingresses, is_served))
                .flatten();
            if let Some(name) = owner {
                *by = Some(format!("server-snippet{OF_INGRESS}{namespace}/{name}"));
            }
            continue;
        }
        let Some((key, origin)) = by.as_deref().and_then(|by| by.split_once(OF_INGRESS)) else {
            continue;
        };
        let Some((namespace, name)) = origin.split_once('/') else { continue };
        let origin = Origin::new(Kind::Ingress, namespace, name);
        match (key, ingresses.ingress(&origin)) {
            (proxy::CONFIGURED_REDIRECTS, Some(ingress)) => {
                let prefix = &ingresses.options.annotations_prefix;
                let key = translate::redirecting(ingress, prefix);
                *by = Some(format!("{key}{OF_INGRESS}{namespace}/{name}"));
            }
            ("ssl-redirect" | "force-ssl-redirect", Some(ingress)) => {
                let own = format!("{}/{key}", ingresses.options.annotations_prefix);
                if !ingress.meta.annotations.contains_key(&own) {
                    *by = Some(for_all(key, ingresses));
                }
            }
            (_, Some(ingress)) => {
                let guard = GUARDS_OF_ALL.iter().find(|(names, _)| names.contains(&key));
                let Some((names, of_all)) = guard else { continue };
                let prefix = &ingresses.options.annotations_prefix;
                let text = |name: &str| ingress.meta.annotations.get(&format!("{prefix}/{name}"));
                let is_said = |name: &&&str| text(name).is_some_and(|it| !it.trim().is_empty());
                let has = |name: &&&str| text(name).is_some();
                *by = Some(match names.iter().find(is_said).or_else(|| names.iter().find(has)) {
                    Some(written) => format!("{written}{OF_INGRESS}{namespace}/{name}"),
                    None => for_all(of_all, ingresses),
                });
            }
            _ => {}
        }
    }
}

/// The only Ingress of a namespace that is served, names a host and has a `server-snippet`, each as it is in force.
fn of_server_snippet(
    namespace: &str,
    host: &str,
    ingresses: &InForce<'_>,
    is_served: &dyn Fn(&ObjectKey) -> bool,
) -> Option<String> {
    let key = format!("{}/server-snippet", ingresses.options.annotations_prefix);
    let all = ingresses.snapshot.ingresses.keys();
    let served = all.filter(|key| *key.namespace == *namespace && is_served(key));
    let mut owners = served.filter(|one| {
        let origin = Origin::new(Kind::Ingress, one.namespace.clone(), one.name.clone());
        ingresses.ingress(&origin).is_some_and(|ingress| {
            let mut hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
            ingress.meta.annotations.contains_key(&key)
                && hosts.any(|name| name.eq_ignore_ascii_case(host))
        })
    });
    let owner = owners.next()?;
    owners.next().is_none().then(|| owner.name.to_string())
}

/// Guards that annotations of these names ask for, or else this key of the ConfigMap.
const GUARDS_OF_ALL: [(&[&str], &str); 3] = [
    (&["allowlist-source-range", "whitelist-source-range"], "whitelist-source-range"),
    (&["denylist-source-range"], "denylist-source-range"),
    (&["auth-url"], "global-auth-url"),
];

/// Who asks for a setting of all Ingresses.
fn for_all(key: &str, ingresses: &InForce<'_>) -> String {
    let InForce { snapshot, options, .. } = ingresses;
    let map = options.config_map.as_ref().and_then(|name| snapshot.config_maps.get(name));
    // An empty value counts as absent.
    let text = map.and_then(|map| map.data.get(key));
    if text.is_some_and(|text| !text.trim().is_empty()) {
        format!("{key} of the ConfigMap")
    } else {
        format!("{key}, by default")
    }
}

fn question(url: &Url, method: &str, headers: &[String], client: IpAddr) -> Result<Question> {
    Ok(Question {
        head: head(url, method, headers)?.into(),
        http2: false,
        tls: url.secure.then(|| Some(url.host.clone())),
        client: SocketAddr::new(client, 40_000),
        ports: if url.secure { (80, url.port) } else { (url.port, 443) },
    })
}

/// Ingresses that name the host, and why they are not heard.
fn notes(
    host: &str,
    snapshot: &Snapshot,
    options: &Options,
    translation: &Translation,
) -> Vec<String> {
    let others = translate::others_of_host(host, snapshot, options);
    let others = others.into_iter().map(|other| {
        format!("Ingress {} names {host}, but is not ours: {}", other.ingress, other.reason)
    });
    let vain = translate::not_heard_of_host(host, snapshot, translation);
    let vain = vain.into_iter().map(|(ingress, problem)| {
        format!("near miss: Ingress {ingress} names {host}, but {problem}")
    });
    let left_out = translate::left_out_of_host(host, snapshot, translation);
    let left_out = left_out
        .into_iter()
        .map(|(object, problem)| format!("near miss: {object} names {host}, but {problem}"));
    let elsewhere = at_own_addresses(host, &translation.configuration);
    others.chain(vain).chain(left_out).chain(elsewhere).collect()
}

/// Gateways with addresses of their own that have routes for a host. A request there is another one: it asks none of
/// the hosts that are explained here.
fn at_own_addresses(host: &str, configuration: &Configuration) -> BTreeSet<String> {
    let lower = host.to_ascii_lowercase();
    let covers = |name: &ServerName| {
        *name == ServerName::catch_all() || translate::gateway::covers(name.as_str(), &lower)
    };
    let routes = configuration.routes.keys().chain(configuration.tls_routes.keys());
    let listeners = routes.filter(|key| covers(&key.host)).filter_map(|key| key.listener.as_ref());
    let listeners = listeners.filter(|id| covers(&id.hosts));
    let listeners = listeners.filter_map(|id| configuration.listeners.get(id));
    let told = listeners.map(|listener| {
        let (gateway, address) = (&listener.origin, listener.id.address);
        format!("{gateway} has routes for {host} at {address}, which is its own: requests there are not explained here")
    });
    told.collect()
}

fn passed_on(question: &Question, configuration: &Configuration) -> Option<Vec<Decision>> {
    let name = question.tls.as_ref()?;
    passed(name.as_deref(), question.client, configuration)
}

/// The decisions about a TLS connection that is passed on as it is: nothing in it is read but the name.
fn passed(
    name: Option<&str>,
    client: SocketAddr,
    configuration: &Configuration,
) -> Option<Vec<Decision>> {
    let name = name?;
    let mut servers = configuration.servers.iter();
    let (_, server) = servers.find(|(known, _)| known.as_str().eq_ignore_ascii_case(name))?;
    let id = server.passthrough.as_ref()?;
    let endpoints = configuration.upstreams.get(id).map(|upstream| {
        let all: Vec<String> =
            upstream.endpoints.usable().iter().map(ToString::to_string).collect();
        match &upstream.external {
            Some((host, port)) => format!("in turn one of the addresses of {host}:{port}"),
            None if all.is_empty() => "none is ready: the connection is closed".to_owned(),
            None => format!("in turn one of {}", all.join(", ")),
        }
    });
    let says = |step, outcome, by| Decision { step, outcome, by, nobody: None };
    let untouched = "the connection goes on as it is: certificate, HTTP and every annotation are the Service's affair";
    Some(vec![
        says("listener", format!("TLS, SNI {name}"), None),
        says("client", format!("{}, the peer itself", client.ip()), None),
        says("passthrough", untouched.to_owned(), Some("ssl-passthrough".to_owned())),
        says("backend", id.as_str().to_owned(), None),
        says("endpoints", endpoints.unwrap_or_else(|| "none".to_owned()), None),
    ])
}

fn decide(configuration: &Configuration, question: Question) -> Result<Vec<Decision>> {
    if let Some(decisions) = passed_on(&question, configuration) {
        return Ok(decisions);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(proxy::explain(configuration, question))?)
}

fn print(decision: &Decision) -> Result<()> {
    let Decision { step, outcome, .. } = decision;
    match &decision.by {
        Some(by) => say::line(format_args!("{step:<20}{outcome}  [{by}]")),
        None => say::line(format_args!("{step:<20}{outcome}")),
    }
}

/// The parts of a URL.
struct Url {
    secure: bool,
    authority: String,
    host: String,
    port: u16,
    /// Path and query, byte for byte.
    target: String,
}

impl Url {
    fn parse(text: &str) -> Result<Self> {
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => bail!("{text:?} is no URL: write one such as https://shop.example/cart"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        ensure!(!authority.is_empty(), "{text:?} has no host");
        // A client sends them in a header; here they would only be repeated on the screen.
        ensure!(
            !authority.contains('@'),
            "the URL has a name or a password before its host: leave them out, and say -H 'Authorization: …' instead"
        );
        ensure!(
            !text.contains(|c: char| c.is_whitespace() || c.is_control()),
            "{text:?} has a space, and no client sends one there: write %20"
        );
        ensure!(
            authority.is_ascii(),
            "{authority:?} has other letters than those of a host: write what clients send for it, which begins with xn--"
        );
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, number_of(port)?),
            _ => (authority, if secure { 443 } else { 80 }),
        };
        let (authority, host) = (authority.to_owned(), host.to_owned());
        Ok(Self { secure, authority, host, port, target })
    }
}

fn number_of(port: &str) -> Result<u16> {
    let number = port.parse().ok().filter(|number| *number > 0);
    number.with_context(|| format!("{port:?} is no port: write a number from 1 to 65535"))
}

/// The request as it is written over HTTP/1.1.
fn head(url: &Url, method: &str, headers: &[String]) -> Result<String> {
    let is_token = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(is_token, "{method:?} is no method: write one such as GET");
    let mut head = format!("{method} {} HTTP/1.1\r\n", url.target);
    let mut host = url.authority.as_str();
    let mut fields = String::new();
    for header in headers {
        let (name, value) = header
            .split_once(':')
            .with_context(|| format!("{header:?} is no header: write 'Name: value'"))?;
        ensure!(!header.contains(['\r', '\n']), "{header:?} has a line break");
        if name.eq_ignore_ascii_case("host") {
            host = value.trim();
        } else {
            fields.push_str(&format!("{name}: {}\r\n", value.trim()));
        }
    }
    head.push_str(&format!("Host: {host}\r\n{fields}\r\n"));
    Ok(head)
}
