//! Everything that a run needs at once: the fixtures, the folder of objects, the controller and its client.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Engine, Options};
use crate::{
    case::References,
    certificates::Certificates,
    client::Client,
    exchange::{Normaliser, Request},
    fairway::Started,
    fixtures::{self, NAMESPACE, Places},
    manifests::Manifests,
    namespace::{CLIENT, CONTROLLER},
    upstreams::Upstreams,
};

/// The ports of the recordings.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// The flags of every recording.
const FLAGS: [&str; 3] = [
    "--configmap=ingress-nginx/ingress-nginx-controller",
    "--tcp-services-configmap=ingress-nginx/tcp-services",
    "--udp-services-configmap=ingress-nginx/udp-services",
];

/// What a client says first where the controller speaks the PROXY protocol.
const ANNOUNCEMENT: &str = "PROXY TCP4 10.77.0.50 10.77.0.1 1024 80\r\n";

/// How long something else may answer for the sentinel's host, such as a catch-all, before that counts as its answer: a
/// change can deny everything.
const DENIED: Duration = Duration::from_secs(5);

/// How often the sentinel is asked.
const PAUSE: Duration = Duration::from_millis(10);

/// Who answers for a sentinel's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    /// Nobody, yet.
    Nobody,
    /// The sentinel.
    Sentinel,
    /// A catch-all, or a controller that denies everything.
    Otherwise,
}

pub(super) struct Bed {
    pub(super) manifests: Manifests,
    pub(super) references: References,
    pub(super) client: Client,
    pub(super) upstreams: Upstreams,
    pub(super) normaliser: Normaliser,
    /// The fixtures by kind and name, to be put back after a case that replaced them.
    kept: BTreeMap<(String, String), Value>,
    options: Options,
    flags: Vec<String>,
    fairway: Option<Started>,
    sentinels: u32,
}

impl Bed {
    pub(super) async fn new(options: &Options) -> Result<Self> {
        let (certificates, places) = (Certificates::shared(), Places::recorded());
        let objects = fixtures::objects(&certificates, &places);
        let manifests = Manifests::new().context("no folder for objects can be made")?;
        for object in controllers_objects().iter().chain(&objects) {
            manifests.apply(object)?;
        }
        Ok(Self {
            manifests,
            references: References::new(places.clone(), &objects),
            client: Client::new(CONTROLLER, HTTP, HTTPS).from(CLIENT),
            upstreams: Upstreams::start(&certificates, places)
                .await
                .context("the fixtures cannot listen")?,
            normaliser: Normaliser::new(CLIENT, HTTP, HTTPS),
            kept: objects.into_iter().map(|object| (key(&object), object)).collect(),
            options: options.clone(),
            flags: Vec::new(),
            fairway: None,
            sentinels: 0,
        })
    }

    /// Starts the controller anew, unless it runs with these flags.
    pub(super) async fn start(&mut self, flags: &[String]) -> Result<()> {
        let mut all: Vec<String> = FLAGS.iter().map(ToString::to_string).collect();
        if self.options.engine == Engine::Nginx {
            let directory = self.nginx_directory();
            all.extend(["--engine=nginx", "--sync-rate-limit=0"].map(str::to_owned));
            all.push(format!("--nginx-directory={}", directory.display()));
        }
        all.extend_from_slice(flags);
        if self.fairway.is_some() && self.flags == all {
            return Ok(());
        }
        self.stop().await?;
        self.flags = all;
        self.launch()
    }

    /// Starts the controller again if it has ended by itself.
    pub(super) async fn revive(&mut self) -> Result<()> {
        if self.ended() {
            eprintln!(
                "the controller has ended by itself; its output is in {}",
                self.options.log.display()
            );
            self.stop().await?;
            self.launch()?;
        }
        Ok(())
    }

    pub(super) async fn stop(&mut self) -> Result<()> {
        if let Some(started) = self.fairway.take() {
            started.stop().await?;
        }
        Ok(())
    }

    /// Waits until everything that was applied has taken effect: an Ingress that is applied last answers.
    pub(super) async fn settle(&mut self) -> Result<()> {
        self.show_sentinel().await?;
        if self.options.engine == Engine::Nginx {
            // The first new worker answers while old ones still take connections; the next change begins after that.
            self.show_sentinel().await?;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "what came for the case before may still be under way"
        )]
        tokio::time::sleep(self.options.settle).await;
        let _earlier = self.upstreams.journal.drain();
        Ok(())
    }

    async fn show_sentinel(&mut self) -> Result<()> {
        self.sentinels += 1;
        let host = format!("s{}-{}.sentinel.test", self.sentinels, std::process::id());
        self.manifests.apply(&sentinel(&host))?;
        let begin = Instant::now();
        loop {
            let answered = self.answer(&host).await;
            let denied = answered == Answered::Otherwise && begin.elapsed() > DENIED;
            if answered == Answered::Sentinel || denied || self.ended() {
                return Ok(());
            }
            if begin.elapsed() > self.options.patience {
                bail!("a change has not shown within {:?}", self.options.patience);
            }
            #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Applies or deletes objects in the middle of a case.
    pub(super) async fn change(
        &mut self,
        apply: Option<&[Value]>,
        delete: Option<&[Value]>,
    ) -> Result<()> {
        for (objects, applied) in [(apply, true), (delete, false)] {
            for object in objects.into_iter().flatten() {
                if applied {
                    self.manifests.apply(object)?
                } else {
                    self.manifests.delete(object)?
                }
            }
            if objects.is_some() {
                self.settle().await?;
            }
        }
        Ok(())
    }

    /// Removes the objects of a case, and puts back the fixtures that it replaced.
    pub(super) fn remove(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            match self.kept.get(&key(object)) {
                Some(fixture) => self.manifests.apply(fixture)?,
                None => self.manifests.delete(object)?,
            }
        }
        Ok(())
    }

    /// A folder of its own, so that runs do not meet.
    fn nginx_directory(&self) -> PathBuf {
        self.manifests.folder().with_extension("nginx")
    }

    fn launch(&mut self) -> Result<()> {
        let Options { binary, log, .. } = &self.options;
        self.fairway = Some(Started::on_folder(binary, self.manifests.folder(), &self.flags, log)?);
        Ok(())
    }

    fn ended(&mut self) -> bool {
        self.fairway.as_mut().is_some_and(|fairway| !fairway.alive())
    }

    /// Who answers for a sentinel's host, with or without the PROXY protocol.
    async fn answer(&self, host: &str) -> Answered {
        let request = Request {
            url: format!("http://{host}/"),
            timeout: Some("1s".to_owned()),
            ..Request::default()
        };
        let mut answer = self.client.send(&request).await;
        if answer.error.as_deref() == Some("connection-closed") {
            let proxy_protocol = Some(ANNOUNCEMENT.to_owned());
            answer = self.client.send(&Request { proxy_protocol, ..request }).await;
        }
        let mut headers = answer.headers.iter().flatten();
        let is_own = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("location") && value.contains(host)
        };
        match (answer.status, answer.error.as_deref()) {
            (_, Some("connection-refused")) | (Some(404), None) => Answered::Nobody,
            _ if headers.any(is_own) => Answered::Sentinel,
            _ => Answered::Otherwise,
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // With the native engine there is none.
        let _absent = std::fs::remove_dir_all(self.nginx_directory());
    }
}

/// What the controller itself needs: its namespace and its class.
fn controllers_objects() -> [Value; 2] {
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ingress-nginx"}}),
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": "nginx"},
            "spec": {"controller": "k8s.io/ingress-nginx"},
        }),
    ]
}

/// An Ingress that the controller answers itself, before any guard, with a redirect that nobody else gives.
fn sentinel(host: &str) -> Value {
    let backend = json!({"service": {"name": "echo-b", "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": "sentinel",
            "namespace": NAMESPACE,
            "annotations": {
                "nginx.ingress.kubernetes.io/temporal-redirect": format!("http://{host}/here"),
            },
        },
        "spec": {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": [path]}}]},
    })
}

fn key(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}
