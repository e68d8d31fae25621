//! A Fairway with objects, and a browser that looks at it.

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::fairway::{end_nginx, nginx_directory};
use testkit::ports;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_fairway");
/// For a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running Fairway.
pub(crate) struct Fairway {
    child: Child,
    pub(crate) admin: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) folder: TempDir,
    /// The folder of its nginx, if it is told one.
    nginx: Option<PathBuf>,
}

impl Drop for Fairway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(nginx) = &self.nginx {
            end_nginx(nginx);
        }
    }
}

impl Fairway {
    /// Serves these objects; returns once they are in force.
    pub(crate) fn start(objects: &str, flags: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let at = folder.path().join("objects");
        fs::create_dir(&at).expect("a folder");
        fs::write(at.join("objects.yaml"), objects).expect("a file");
        let ports = [ports::free(), ports::free(), ports::free()];
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let log = fs::File::create(folder.path().join("log")).expect("a file");
        let child = Command::new(BINARY)
            .args(["run", "--manifests", at.to_str().expect("a path"), "--enable-metrics=true"])
            .args([format!("--http-port={}", ports[0]), format!("--https-port={}", ports[1])])
            .arg(format!("--healthz-port={}", ports[2]))
            .args(["--bind-address=127.0.0.1"])
            .args(flags)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let [http, https, admin] = ports.map(address);
        let nginx = nginx_directory(flags);
        let fairway = Self { child, admin, http, https, folder, nginx };
        until("it serves", || fairway.get("/healthz").is_some_and(|(status, _)| status == 200));
        fairway
    }

    /// Changes what is served.
    pub(crate) fn write(&self, file: &str, objects: &str) {
        let folder = self.folder.path();
        fs::write(folder.join(file), objects).expect("a file");
        fs::rename(folder.join(file), folder.join("objects").join(file)).expect("a file");
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        ask(self.admin, path, "Host: localhost\r\n")
    }

    /// An answer of the API.
    pub(crate) fn api(&self, path: &str) -> Value {
        let (status, text) = self.get(path).expect("an answer");
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Asks with these header fields.
pub(crate) fn ask(address: SocketAddr, path: &str, fields: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n{fields}\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Waits for a condition.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "it never came that {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// A Service with an endpoint, in each of these namespaces.
pub(crate) fn services(namespaces: &[&str]) -> String {
    let mut text = String::new();
    for namespace in namespaces {
        let _ = write!(
            text,
            r#"---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {namespace}}}
spec: {{ports: [{{name: http, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{{addresses: [10.0.0.1], conditions: {{ready: true}}}}]
"#
        );
    }
    text
}

/// An Ingress of `web` for these hosts.
pub(crate) fn ingress(
    namespace: &str,
    name: &str,
    annotations: &Value,
    hosts: &[String],
) -> String {
    let rules = hosts.iter().map(|host| {
        json!({"host": host, "http": {"paths": [{
            "path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "web", "port": {"name": "http"}}},
        }]}})
    });
    let object = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"ingressClassName": "nginx", "rules": rules.collect::<Vec<_>>()},
    });
    format!("---\n{object}\n")
}

/// The IngressClass that all of them have.
pub(crate) const CLASS: &str = "apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

/// A browser with one window.
pub(crate) struct Browser {
    driver: Child,
    _profile: TempDir,
    pub(crate) page: Client,
    origin: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser with itself, but not always all of its processes, which are of its group.
        let driver = self.driver.id().to_string();
        let _ = Command::new("kill").arg(&driver).status();
        let _ = self.driver.wait();
        let group = ["-KILL", "--", &format!("-{driver}")];
        let _ = Command::new("kill").args(group).stderr(Stdio::null()).status();
    }
}

/// A name that leads to this machine, as somebody's DNS may have it.
pub(crate) const ELSEWHERE: &str = "fairway.test";

const ARGUMENTS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
    "--lang=en",
    "--host-resolver-rules=MAP fairway.test 127.0.0.1",
];

impl Browser {
    pub(crate) async fn open(fairway: &Fairway) -> Self {
        let profile = TempDir::new().expect("a folder");
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("chromedriver starts: scripts/need chromium chromedriver installs it");
        let port = driver_port(&mut driver);
        let data = format!("--user-data-dir={}", profile.path().display());
        let arguments: Vec<&str> = ARGUMENTS.into_iter().chain([data.as_str()]).collect();
        let wanted = json!({"goog:chromeOptions": {"args": arguments}});
        let wanted = wanted.as_object().cloned().expect("an object");
        let page = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(wanted)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a browser");
        let origin = format!("http://localhost:{}", fairway.admin.port());
        Self { driver, _profile: profile, page, origin }
    }

    /// Goes to a view; returns once it shows something.
    pub(crate) async fn view(&self, view: &str) {
        // A change of the part behind # alone loads nothing.
        self.page.goto(&format!("{}/ui#{view}", self.origin)).await.expect("the page");
        let name = view.split('?').next().unwrap_or_default();
        let shown = format!(
            "return document.querySelector('nav a[aria-current]')?.hash === '#{name}' && \
             document.getElementById('state').textContent === 'live' && \
             document.getElementById('failure') === null && document.getElementById('view').innerText.length > 40"
        );
        self.until(&shown).await;
    }

    pub(crate) async fn goto(&self, path: &str) {
        self.page.goto(&format!("{}{path}", self.origin)).await.expect("the page");
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        self.page.execute(script, Vec::new()).await.expect("the script runs")
    }

    /// Waits until a script says so.
    pub(crate) async fn until(&self, script: &str) {
        let end = Instant::now() + PATIENCE;
        while self.run(script).await != Value::Bool(true) {
            let text = self.run("return document.body.innerText").await;
            assert!(Instant::now() < end, "it never came that {script}: {text}");
            #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the view has a text.
    pub(crate) async fn until_text(&self, text: &str) {
        let text = Value::from(text);
        self.until(&format!("return document.getElementById('view').innerText.includes({text})"))
            .await;
    }

    /// Looks through eyes of this colour and width.
    pub(crate) async fn look(&self, dark: bool, width: u32) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.tell("Emulation.setEmulatedMedia", json!({"features": features})).await;
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.tell("Emulation.setDeviceMetricsOverride", size).await;
    }

    pub(crate) async fn tell(&self, command: &'static str, parameters: Value) {
        let command = Devtools { command, parameters };
        self.page.issue_cmd(command).await.expect("the browser does so");
    }

    /// What axe-core finds wrong, one line each.
    pub(crate) async fn inaccessible(&self) -> Vec<String> {
        let script = format!(
            "const done = arguments[0]; {axe}; \
             axe.run(document, {{resultTypes: ['violations']}}).then((found) => done(found.violations), (error) => \
             done([{{id: String(error), nodes: []}}]));",
            axe = axe()
        );
        let found = self.page.execute_async(&script, Vec::new()).await.expect("axe runs");
        let line = |one: &Value| {
            let first = one["nodes"].get(0);
            format!(
                "{}: {}",
                one["id"],
                first.map(|node| node["html"].to_string()).unwrap_or_default()
            )
        };
        found.as_array().expect("a list").iter().map(line).collect()
    }

    /// Keeps a picture for the documentation.
    pub(crate) async fn picture(&self, name: &str) {
        let picture = self.page.screenshot().await.expect("a picture");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(format!("{name}.png")), picture).expect("a file");
    }
}

/// The port that the driver chose.
fn driver_port(driver: &mut Child) -> u16 {
    let output = BufReader::new(driver.stdout.take().expect("it is piped"));
    let mut lines = output.lines().map_while(Result::ok);
    let port = lines.find_map(|line| {
        line.strip_suffix('.')?.split_once("started successfully on port ")?.1.parse().ok()
    });
    // It goes on writing, and must not wait for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    port.expect("chromedriver says where it listens")
}

/// The text of axe-core, which `scripts/need` fetches.
fn axe() -> String {
    let tools: PathBuf =
        Path::new(BINARY).ancestors().nth(2).expect("the build folder").join("tools");
    let file = tools.join("npm/axe-core/axe.min.js");
    fs::read_to_string(&file).unwrap_or_else(|error| {
        panic!("{}: {error}; `make test` fetches it, by scripts/need npm-axe-core", file.display())
    })
}

/// A command of the browser's own protocol, as chromedriver hands it on.
#[derive(Debug)]
struct Devtools {
    command: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for Devtools {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        let body = json!({"cmd": self.command, "params": self.parameters});
        (http::Method::POST, Some(body.to_string()))
    }
}
