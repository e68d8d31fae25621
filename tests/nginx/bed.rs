//! The binary with `--engine=nginx` on a folder of objects, in front of the fixtures of the test bed. A start costs
//! seconds: tests of one topic share one, and change its objects.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use testkit::builders::{self, Ingress};
use testkit::certificates::Certificates;
use testkit::client::Client;
use testkit::exchange::{Answer, Request};
use testkit::fairway::Started;
use testkit::manifests::Manifests;
use testkit::upstreams::Upstreams;
use testkit::{eventually, fixtures, ports};

/// How long anything may take: generous, since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Workers of nginx.
const WORKERS: usize = 2;

/// What allows snippets in annotations.
pub(crate) const ALLOWED: [(&str, &str); 2] =
    [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];

/// A running Fairway with its nginx; it is ended when this is dropped.
pub(crate) struct Bed {
    fairway: Started,
    manifests: Manifests,
    client: Client,
    /// What stands behind the Services of the fixtures.
    pub(crate) upstreams: Upstreams,
    folder: TempDir,
    /// Ingresses that were applied only to see that everything before them has taken effect.
    sentinels: u32,
}

impl Bed {
    /// Serves the fixtures, a ConfigMap and these objects; more flags go to the program.
    pub(crate) async fn start(
        settings: &[(&str, &str)],
        objects: &[Value],
        flags: &[&str],
    ) -> Result<Self> {
        let (certificates, folder) = (Certificates::shared(), TempDir::new()?);
        let (upstreams, manifests) = (Upstreams::local().await?, Manifests::new()?);
        let class = builders::ingress_class("nginx", "k8s.io/ingress-nginx");
        let own = [class, config_map(settings)];
        let fixed = fixtures::objects(&certificates, &upstreams.places);
        for object in fixed.iter().chain(&own).chain(objects) {
            manifests.apply(object)?;
        }
        let [http, https, admin] = std::array::from_fn(|_| ports::free());
        let own = [
            "--engine=nginx".to_owned(),
            "--sync-rate-limit=0".to_owned(),
            format!("--nginx-directory={}", folder.path().join("nginx").display()),
            "--configmap=ingress-nginx/ingress-nginx-controller".to_owned(),
            format!("--worker-threads={WORKERS}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--healthz-host=127.0.0.1".to_owned(),
            format!("--http-port={http}"),
            format!("--https-port={https}"),
            format!("--healthz-port={admin}"),
        ];
        let flags: Vec<_> = own.into_iter().chain(flags.iter().map(ToString::to_string)).collect();
        let binary = Path::new(env!("CARGO_BIN_EXE_fairway"));
        let log = folder.path().join("log");
        let fairway = Started::on_folder(binary, manifests.folder(), &flags, &log)?;
        let client = Client::new(IpAddr::V4(Ipv4Addr::LOCALHOST), http, https);
        let mut bed = Self { fairway, manifests, client, upstreams, folder, sentinels: 0 };
        bed.settle().await?;
        Ok(bed)
    }

    /// Replaces the ConfigMap, and waits until it counts.
    pub(crate) async fn configure(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        self.manifests.apply(&config_map(settings))?;
        self.settle().await
    }

    /// Adds or replaces objects, and waits until they count.
    pub(crate) async fn apply(&mut self, objects: &[Value]) -> Result<()> {
        objects.iter().try_for_each(|object| self.manifests.apply(object))?;
        self.settle().await
    }

    /// Waits until everything that was written has taken effect: an Ingress that is written last answers, and the
    /// workers before take no more connections.
    async fn settle(&mut self) -> Result<()> {
        self.sentinels += 1;
        let host = format!("sentinel-{}.test", self.sentinels);
        let sentinel = ingress("sentinel", &host).annotate("enable-modsecurity", "false");
        self.manifests.apply(&sentinel.build())?;
        let served = || async {
            let answer = self.get(&host, "/").await;
            (answer.status == Some(200) && self.workers() == Some(WORKERS)).then_some(())
        };
        let served = eventually(PATIENCE, served).await;
        served.with_context(|| format!("{host} is not served: {}", self.said()))
    }

    /// The process id of nginx.
    fn master(&self) -> Option<i32> {
        std::fs::read_to_string(self.folder.path().join("nginx/nginx.pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// How many workers take connections.
    fn workers(&self) -> Option<usize> {
        let master = self.master()?;
        let children =
            std::fs::read_to_string(format!("/proc/{master}/task/{master}/children")).ok()?;
        let titles = children
            .split_ascii_whitespace()
            .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
        let is_open =
            |title: &String| title.contains("worker process") && !title.contains("shutting");
        Some(titles.filter(is_open).count())
    }

    /// What came of a GET.
    pub(crate) async fn get(&self, host: &str, target: &str) -> Answer {
        self.send(Request { url: format!("http://{host}{target}"), ..Request::default() }).await
    }

    /// What came of a request.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        self.client.send(&request).await
    }

    /// An error unless a GET is answered with this status.
    pub(crate) async fn expect(&self, host: &str, target: &str, status: u16) -> Result<Answer> {
        let answer = self.get(host, target).await;
        let said = || format!("{host}{target}: wanted {status}: {answer:?}\n{}", self.said());
        ensure!(answer.status == Some(status), "{}", said());
        Ok(answer)
    }

    /// Everything that Fairway and nginx have said so far.
    pub(crate) fn said(&self) -> String {
        self.fairway.logs()
    }

    /// An error unless a line of that is said which holds all of these texts; it is waited for.
    pub(crate) async fn says(&self, texts: &[&str]) -> Result<()> {
        let said = || async {
            let all = self.said();
            let mut lines = all.lines();
            lines.any(|line| texts.iter().all(|text| line.contains(text))).then_some(())
        };
        let said = eventually(PATIENCE, said).await;
        said.with_context(|| format!("nobody says {texts:?}: {}", self.said()))
    }

    /// nginx.conf as it is.
    pub(crate) fn conf(&self) -> Result<String> {
        let path = self.folder.path().join("nginx/nginx.conf");
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

/// An Ingress of a host, whose paths all lead to the echo.
pub(crate) fn ingress(name: &str, host: &str) -> Ingress {
    builders::ingress(name).class("nginx").host(host).path("/", "echo:80")
}

/// The value of a header of an answer.
pub(crate) fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut all = answer.headers.iter().flatten();
    all.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// The ConfigMap.
pub(crate) fn config_map(settings: &[(&str, &str)]) -> Value {
    let mut object = builders::config_map("ingress-nginx-controller", settings);
    object["metadata"]["namespace"] = json!("ingress-nginx");
    object
}
