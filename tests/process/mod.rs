//! The process as operators see it: its names, its probes and pages, its end.

mod commit;
mod crowd;
mod guards;
mod priority;
mod refused;

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;
use testkit::certificates::Certificates;
use testkit::{eventually, namespace, ports};

const BINARY: &str = env!("CARGO_BIN_EXE_fairway");
const UNTAKEN: &str = include_str!("untaken.yaml");
/// Hosts whose certificates are not those of their own entries.
const MORE: &str = include_str!("more.yaml");
const PATIENCE: Duration = Duration::from_secs(30);
/// The hash of a password, as `htpasswd` writes it.
const HASH: &str = "$apr1$N0c2gtUj$KcT5A7m3Q4L5v6W7x8Y9z.";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the program to its end.
fn ends(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().expect("the program runs")
}

/// A controller; it is killed when this is dropped.
struct Running {
    child: Child,
    admin: SocketAddr,
    folder: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts the program under a name, with a folder of objects and these flags; returns when it is ready.
    fn start(name: &str, flags: &[&str]) -> Self {
        let running = Self::spawn(name, flags, &[]);
        running.until("it is ready", || {
            running.get("/healthz").is_some_and(|(status, _)| status == 200)
        });
        running
    }

    /// The same with these variables of the environment; returns at once.
    fn spawn(name: &str, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let objects = folder.path().join("objects");
        fs::create_dir(&objects).expect("a folder");
        let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/objects.yaml");
        fs::copy(written, objects.join("objects.yaml")).expect("a copy");
        fs::write(objects.join("secrets.json"), secrets()).expect("a file");
        // A copy, so that no other controller of this machine runs the same file.
        let program = folder.path().join(name);
        // By another process: what this one writes, a fork of another thread keeps open, and then it cannot be run.
        let copied = Command::new("cp").arg(BINARY).arg(&program).status();
        assert!(copied.expect("cp runs").success(), "a copy");
        let port = ports::free();
        let child = Command::new(&program)
            .args([
                "--manifests",
                objects.to_str().expect("a path"),
                "--http-port=0",
                "--https-port=0",
            ])
            .arg(format!("--healthz-port={port}"))
            .args(flags)
            .envs(variables.iter().copied())
            .stderr(fs::File::create(folder.path().join("log")).expect("a file"))
            .stdout(Stdio::null())
            .spawn()
            .expect("the program runs");
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { child, admin, folder }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> String {
        text(&fs::read(self.folder.path().join("log")).expect("the log"))
    }

    fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let waited = eventually(PATIENCE, || std::future::ready(condition().then_some(())));
        let waited = runtime.expect("a runtime").block_on(waited);
        assert!(waited.is_some(), "waited for: {what}\n{}", self.log());
    }

    fn get(&self, path: &str) -> Option<(u16, Vec<u8>)> {
        get(self.admin, path)
    }
}

/// Status and body, if anybody answers.
fn get(address: SocketAddr, path: &str) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let status = text(&answer[..head]).split(' ').nth(1)?.parse().ok()?;
    Some((status, answer[head + 4..].to_vec()))
}

/// Secrets with what must not come out.
fn secrets() -> String {
    let certificates = Certificates::shared();
    let pair = certificates.get("tls-demo").expect("a certificate");
    let data = |text: &str| STANDARD.encode(text);
    let secret = |name: &str, data: serde_json::Value| {
        serde_json::json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": "demo"}, "data": data})
    };
    let tls = serde_json::json!({"tls.crt": data(&pair.certificate), "tls.key": data(&pair.key), "ca.crt": data(&pair.certificate)});
    let users = serde_json::json!({"auth": data(&format!("alice:{HASH}\n"))});
    let items = [secret("tls", tls), secret("users", users)];
    serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn what_is_served_can_be_read_nearby_and_holds_no_secret() {
    let name = "what_is_served_can_be_read_nearby_and_holds_no_secret";
    if !namespace::run_test(module_path!(), name).expect("a namespace") {
        return;
    }
    let running = Running::start("fairway", &["--configmap=demo/main"]);
    let (status, page) = running.get("/configuration").expect("it answers");
    let page = text(&page);
    assert_eq!(status, 200);
    for served in ["guarded.test", "asked.test", "X-Plain", "auth.test", "alice"] {
        assert!(page.contains(served), "no {served} in {page}");
    }
    let key = Certificates::shared();
    let key = &key.get("tls-demo").expect("a certificate").key;
    // Every line of a PEM file but the first and the last; as text, and as the numbers of its bytes.
    let line = key.lines().nth(1).expect("a line of the key");
    let bytes = STANDARD.decode(line).expect("base64");
    let numbers: Vec<String> = bytes.iter().take(12).map(ToString::to_string).collect();
    let hidden = [
        line,
        "PRIVATE KEY",
        HASH,
        "KcT5A7m3",
        "marked-token",
        "marked-bearer",
        "marked-api-key",
        "marked-ticket-key",
        "bWFya2Vk",
        &numbers.join(","),
    ];
    for secret in hidden {
        assert!(!page.contains(secret), "{secret} is in {page}");
    }
    let elsewhere = SocketAddr::new(namespace::CONTROLLER, running.admin.port());
    for (path, status) in [("/configuration", 403), ("/debug/pprof/heap", 403), ("/healthz", 200)] {
        assert_eq!(get(elsewhere, path).expect("it answers").0, status, "{path}");
    }
}

/// What the kubectl plugin of ingress-nginx runs in a Pod.
#[test]
fn dbg_tells_what_is_served_and_never_a_key() {
    let running = Running::start("fairway", &["--configmap=demo/main"]);
    let dbg = running.program("dbg");
    std::os::unix::fs::symlink(running.program("fairway"), &dbg).expect("a link");
    let port = format!("--healthz-port={}", running.admin.port());
    let ask = |words: &[&str]| {
        let output = Command::new(&dbg).args(words).arg(&port).output().expect("it runs");
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let says = |words: &[&str]| match ask(words) {
        (true, said, _) => said,
        (false, _, error) => panic!("{words:?}: {error}"),
    };
    assert!(says(&["backends", "list"]).lines().any(|line| line == "demo-shop-80"));
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!(json(&says(&["backends", "get", "demo-shop-80"]))["name"], "demo-shop-80");
    let all = json(&says(&["backends", "all"]));
    assert!(all.as_array().expect("a list").iter().any(|one| one["name"] == "demo-shop-80"));
    assert!(json(&says(&["general"]))["shutdown_timeout"].is_object());
    let routes = says(&["conf", "--status-port=1"]);
    let (_, rest) = routes.split_once("## start server asked.test\n").expect("the host");
    let (host, _) = rest.split_once("## end server asked.test").expect("its end");
    assert!(
        host.contains("Prefix           /  ->  ") && host.contains("(Ingress demo/asked)"),
        "{host}"
    );
    let certificates = Certificates::shared();
    let pair = certificates.get("tls-demo").expect("a certificate");
    let line = pair.certificate.lines().nth(1).expect("a line of the certificate");
    for host in ["demo.test", "also.demo.test"] {
        let chain = says(&["certs", "get", host]);
        assert!(chain.contains(line) && !chain.contains("PRIVATE"), "{host}: {chain}");
    }
    for (words, reason) in [
        (&["certs", "get", "asked.test"][..], "asked.test has no certificate"),
        (&["certs", "get", "nobody.test"], "there is no host nobody.test"),
        (&["certs", "get", "a b"], "a b is no host"),
        (&["backends", "get", "none"], "there is no backend none"),
    ] {
        let (good, _, error) = ask(words);
        assert!(!good && error.contains(reason), "{words:?}: {error}");
    }
    // What handshakes get: the certificate of the wildcard above, and those of listeners.
    fs::write(running.folder.path().join("objects/more.yaml"), MORE).expect("a file");
    running.until("more hosts are served", || ask(&["certs", "get", "g.test"]).0);
    for host in ["own.demo.test", "g.test", "j.g.test"] {
        let chain = says(&["certs", "get", host]);
        assert!(chain.contains(line) && !chain.contains("PRIVATE"), "{host}: {chain}");
    }
    drop(running);
    let nobody = Command::new(BINARY).args(["dbg", "conf", &port]).output().expect("it runs");
    assert!(text(&nobody.stderr).contains("--healthz-port"), "{}", text(&nobody.stderr));
}

#[test]
fn profiles_are_taken_near_the_admin_port_unless_they_are_switched_off() {
    let running = Running::start("fairway", &[]);
    let (status, heap) = running.get("/debug/pprof/heap").expect("it answers");
    assert_eq!((status, heap.is_empty()), (200, false));
    let (status, profile) = running.get("/debug/pprof/profile?seconds=1").expect("it answers");
    assert_eq!(status, 200, "{}", text(&profile));
    assert!(text(&profile).contains("nanoseconds"));
    assert_eq!(running.get("/debug/pprof/profile?seconds=soon").expect("it answers").0, 400);
    let listening = running.log();
    assert!(!listening.contains("profiles can be taken"), "{listening}");
    let off = Running::start("fairway", &["--profiling=false"]);
    assert_eq!(off.get("/debug/pprof/heap").expect("it answers").0, 404);
    let port = ports::free();
    let asked = Running::start("fairway", &[&format!("--profiler-port={port}")]);
    let at = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    assert_eq!(get(at, "/debug/pprof/heap").expect("it answers").0, 200);
    assert_eq!(get(at, "/configuration").expect("it answers").0, 404);
    drop(asked);
}

#[test]
fn what_profiles_took_is_given_back_but_for_the_table_of_the_sampler() {
    let running = Running::start("fairway", &[]);
    let status = format!("/proc/{}/status", running.child.id());
    let resident = || {
        let status = fs::read_to_string(&status).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("a number") >> 10
    };
    let before = resident();
    for _ in 0..3 {
        assert_eq!(running.get("/debug/pprof/profile?seconds=1").expect("it answers").0, 200);
    }
    running.until("memory is given back", || resident() < before + 300);
}

#[test]
fn probes_are_answered_while_the_admin_port_is_flooded() {
    let running = Running::start("fairway", &[]);
    let open = || TcpStream::connect(running.admin).expect("it listens");
    let mut flood: Vec<TcpStream> = (0..250).map(|_| open()).collect();
    for _ in 0..250 {
        let mut reader = open();
        drop(reader.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"));
        flood.push(reader);
    }
    for _ in 0..10 {
        // Behind the others, 128 of whom are let in every ten seconds, it would wait for longer than `get` does.
        assert_eq!(running.get("/healthz/ping").expect("it answers").0, 200);
        flood.push(open());
    }
}

#[test]
fn the_log_can_be_lines_of_json() {
    let running = Running::start("fairway", &["--log-format=json", "--vmodule=x"]);
    // Lines are written by a thread of their own: probes may be answered before.
    running.until("the last line of the start", || {
        running.log().lines().any(|line| line.ends_with('}') && line.contains("\"ready\""))
    });
    let log = running.log();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    let ready = lines.iter().find(|line| line["message"] == "ready").expect("it says so");
    assert!(ready["level"] == "INFO" && ready["timestamp"].is_string() && ready["http"].is_u64());
    let wrong = ends(&["--log-format=xml"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("expected text or json"), "{}", text(&wrong.stderr));
}

#[test]
fn who_may_ask_for_reviews_that_nobody_gives_is_said_to_mean_nothing() {
    let running = Running::start("fairway", &["--validating-webhook-client-ca=/ca.pem"]);
    assert!(running.log().contains("--validating-webhook-client-ca has no effect"));
}

#[test]
fn the_hook_ends_the_controller_and_waits_for_it() {
    let mut running = Running::start("nginx-ingress-controller", &["--shutdown-grace-period=1"]);
    let hook = running.program("wait-shutdown");
    std::os::unix::fs::symlink(running.program("nginx-ingress-controller"), &hook).expect("a link");
    let begun = Instant::now();
    let output = Command::new(&hook).output().expect("the hook runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(begun.elapsed() >= Duration::from_secs(1), "the grace period is waited for");
    let ended = running.child.try_wait().expect("it can be asked").expect("it has ended");
    assert_eq!(ended.code(), Some(0), "{}", running.log());
    assert!(text(&output.stderr).contains(&format!("process {} was asked", running.child.id())));
    // The next one finds nobody, which is no reason to hold up the end of a Pod.
    let output = Command::new(&hook).output().expect("the hook runs");
    assert!(output.status.success() && text(&output.stderr).contains("no controller runs here"));
}

#[test]
fn a_second_signal_ends_at_once_whatever_runs_and_a_reload_ends_nothing() {
    // The upstream of the request: it takes it, and never answers.
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = upstream.local_addr().expect("an address").port();
    let mut running = Running::start("fairway", &["--allow-target-networks=127.0.0.0/8"]);
    let slice = format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: shop-1, namespace: demo, labels: \
         {{kubernetes.io/service-name: shop}}}}\naddressType: IPv4\nports: [{{port: {port}}}]\n\
         endpoints: [{{addresses: [127.0.0.1]}}]\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\n\
         metadata: {{name: slow, namespace: demo}}\nspec:\n  ingressClassName: nginx\n  rules:\n  - host: slow.test\n    \
         http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: shop, port: {{number: 80}}}}}}}}]}}\n"
    );
    fs::write(running.folder.path().join("objects/slow.yaml"), slice).expect("a file");
    running.until("it serves the new host", || {
        running.get("/configuration").is_some_and(|(_, page)| text(&page).contains("slow.test"))
    });
    let log = running.log();
    let http = log.split(" http=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let http: u16 = http.and_then(|port| port.parse().ok()).expect("the port");
    let mut client = TcpStream::connect(("127.0.0.1", http)).expect("a connection");
    client.write_all(b"GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n").expect("it is sent");
    let (_taken, _) = upstream.accept().expect("the request is under way");
    let id = rustix::process::Pid::from_raw(running.child.id().cast_signed()).expect("a process");
    let send = |signal| rustix::process::kill_process(id, signal).expect("it may be signalled");
    for (signal, word) in [
        (rustix::process::Signal::HUP, "SIGHUP: nothing to reload"),
        (rustix::process::Signal::USR2, "SIGUSR2: nothing to reload"),
        (rustix::process::Signal::TERM, "SIGTERM: finishing what runs"),
    ] {
        send(signal);
        running.until(word, || running.log().contains(word));
    }
    assert!(running.child.try_wait().expect("a state").is_none(), "{}", running.log());
    send(rustix::process::Signal::TERM);
    let stat = format!("/proc/{}/stat", running.child.id());
    running.until("it has ended", || {
        fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "))
    });
    let ended = running.child.wait().expect("a state");
    assert!(ended.success(), "{ended}\n{}", running.log());
    assert!(running.log().contains("running requests were cut off"), "{}", running.log());
}

#[test]
fn a_config_map_that_is_not_there_is_told() {
    let running = Running::start("fairway", &["--configmap=demo/nowhere"]);
    assert!(running.log().contains("there is no ConfigMap demo/nowhere"), "{}", running.log());
}

#[test]
fn a_hook_that_is_not_obeyed_in_time_says_so() {
    let running = Running::start("fairway", &["--shutdown-grace-period=60"]);
    let output = Command::new(running.program("fairway"))
        .args(["wait-shutdown", "--timeout=100ms"])
        .output()
        .expect("the hook runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the controller still runs"), "{}", text(&output.stderr));
    running
        .until("health fails", || running.get("/healthz").is_some_and(|(status, _)| status == 500));
    assert_eq!(running.get("/healthz/ping").expect("it answers").0, 200);
}

#[test]
fn flags_without_effect_are_logged_with_the_reason_and_stray_words_with_the_spelling() {
    let flags = [
        "--health-check-timeout=5",
        "--logtostderr",
        "--status_port",
        "10300",
        "--disable-catch-all",
        "false",
    ];
    let running = Running::start("fairway", &flags);
    let log = running.log();
    for said in [
        "--health-check-timeout has no effect: ingress-nginx does not read it either",
        "--logtostderr has no effect: the log goes to standard error",
        "--status-port has no effect: there is no second process to talk to",
        "\"false\" is no flag and has no effect",
    ] {
        assert_eq!(log.matches(said).count(), 1, "{said} in\n{log}");
    }
}

#[test]
fn what_cannot_start_says_why_in_one_line_and_ends_with_1() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path().to_str().expect("a path");
    let (healthz, own) = (format!("--healthz-port={port}"), ports::free().to_string());
    let cases: [(&[&str], &str); 7] = [
        (&["--http-prot=80"], "there is no flag --http-prot; did you mean --http-port?"),
        (
            &["--manifests", folder, "--http-port", &own, "--https-port", &own],
            "--http-port and --https-port are both",
        ),
        (
            &[
                "--manifests",
                folder,
                "--http-port",
                &own,
                "--validating-webhook",
                &format!(":{own}"),
            ],
            "--http-port and --validating-webhook are both",
        ),
        (
            &["--manifests", folder, "--http-port=0", "--https-port=0", &healthz],
            "choose another address or port with --healthz-port",
        ),
        (
            &[
                "--manifests",
                folder,
                "--http-port",
                &port,
                "--https-port=0",
                "--bind-address=127.0.0.1",
            ],
            "another program uses the port",
        ),
        (
            &["--manifests", folder, "--apiserver-host=https://a.test"],
            "from --manifests or from a cluster",
        ),
        (
            &[
                "--apiserver-host=https://a.test",
                "--watch-namespace=a",
                "--watch-namespace-selector=b",
                "--http-port=0",
                "--https-port=0",
                "--healthz-port=0",
            ],
            "exclude each other",
        ),
    ];
    for (flags, wanted) in cases {
        let output = ends(flags);
        let said = text(&output.stderr);
        let last = said.lines().filter(|line| line.starts_with("fairway: ")).collect::<Vec<_>>();
        assert!(matches!(last.as_slice(), [line] if line.contains(wanted)), "{flags:?}: {said}");
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
    }
}

#[test]
fn the_webhook_has_its_port_before_any_object_is_looked_at() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let folder = TempDir::new().expect("a folder");
    let pair = Certificates::shared().get("tls-demo").expect("a certificate").clone();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let (certificate, key) = (file("cert.pem", &pair.certificate), file("key.pem", &pair.key));
    let address = taken.local_addr().expect("an address").to_string();
    // Whoever looked at the objects first would say that there are none.
    let nowhere = folder.path().join("nowhere");
    let output = ends(&[
        "run",
        "--manifests",
        nowhere.to_str().expect("a path"),
        "--http-port=0",
        "--https-port=0",
        "--healthz-port=0",
        "--validating-webhook",
        &address,
        "--validating-webhook-certificate",
        &certificate,
        "--validating-webhook-key",
        &key,
    ]);
    let said = text(&output.stderr);
    assert!(said.contains("choose another address with --validating-webhook"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn version_and_help_are_answered_and_end_well() {
    for arguments in
        [&["--version"][..], &["run", "--version"], &["--v=2", "--version=true"], &["version"]]
    {
        let output = ends(arguments);
        assert!(output.status.success() && text(&output.stdout).contains("Release:"), "{output:?}");
        // It says the commit that it was built with.
        let is_unknown = text(&output.stdout).contains("Build:         unknown");
        assert_eq!(
            is_unknown,
            option_env!("FAIRWAY_COMMIT").is_none_or(str::is_empty),
            "{output:?}"
        );
    }
    // The metric says of the source what the banner does.
    let running = Running::start("fairway", &["--enable-metrics"]);
    let (_, page) = running.get("/metrics").expect("an answer");
    let known = option_env!("FAIRWAY_REPOSITORY").filter(|known| !known.is_empty());
    let repository = known.unwrap_or("unknown");
    assert!(text(&ends(&["version"]).stdout).contains(&format!("Repository:    {repository}\n")));
    assert!(text(&page).contains(&format!("repository=\"{repository}\"")), "{}", text(&page));
    let output = ends(&["run", "--help"]);
    let help = text(&output.stdout);
    assert!(output.status.success() && help.contains("--http-port <PORT>"), "{help}");
    let nothing = ends(&[]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("Flags without a command mean `run`"));
}

#[test]
fn a_time_zone_that_means_nothing_is_told() {
    let running = Running::spawn("zoned", &[], &[("TZ", "Europe/Berlin")]);
    running.until("it is told", || running.log().contains("TZ=Europe/Berlin has no effect"));
}

#[test]
fn who_cannot_write_bodies_anywhere_says_so_and_is_not_ready() {
    let running =
        Running::spawn("unwritable", &[], &[("FAIRWAY_TMPDIR", "/proc"), ("TMPDIR", "/tmp")]);
    running.until("it serves", || running.log().contains("serving, but not ready"));
    let log = running.log();
    assert!(log.contains("cannot be kept in /proc: ") && log.contains("emptyDir"), "{log}");
    let (status, page) = running.get("/healthz").expect("an answer");
    assert_eq!(status, 500);
    assert!(text(&page).contains("a folder for request bodies that can be written"));
}

impl Running {
    /// Where it serves, without TLS and with.
    fn ports(&self) -> [u16; 2] {
        // Probes may hear of it a moment earlier than the log.
        self.until("it says so", || self.log().contains(" ready "));
        let log = self.log();
        ["http=", "https="].map(|name| {
            let ready = log.lines().find(|line| line.contains(" ready ")).expect("it is ready");
            let word = ready.split(' ').find_map(|word| word.strip_prefix(name));
            word.and_then(|port| port.parse().ok()).expect("a port")
        })
    }
}

/// A host of its own namespace that takes a request a minute, and refuses that.
const LIMITED: &str = include_str!("limited.yaml");

#[test]
fn who_is_turned_away_by_a_limit_is_told_once_a_minute_for_each_namespace() {
    let running = Running::start("fairway", &[]);
    let [http, _] = running.ports();
    let limited = ["one", "two"].map(|name| LIMITED.replace("NAME", name)).concat();
    fs::write(running.folder.path().join("objects/limited.yaml"), limited).expect("a file");
    let ask = |name: &str| {
        let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, http)).ok()?;
        let request = format!("GET / HTTP/1.1\r\nHost: {name}.test\r\nConnection: close\r\n\r\n");
        tcp.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        tcp.read_to_end(&mut answer).ok()?;
        text(&answer).split(' ').nth(1).map(str::to_owned)
    };
    for name in ["one", "two"] {
        running.until("the limit is reached", || ask(name).as_deref() == Some("503"));
        let refused = (0..20).filter(|_| ask(name).as_deref() == Some("503")).count();
        assert!(refused > 10, "{refused} of 20");
        let line = format!("namespace=\"{name}\"");
        let told = || running.log().lines().filter(|said| said.contains(&line)).count();
        running.until("it is told", || told() > 0);
        // Should the test have taken longer than a minute, there may be one for each.
        assert!(told() <= 2, "{}", running.log());
    }
    assert!(running.log().contains("limit-rps or limit-rpm is exceeded"), "{}", running.log());
}

/// Without a bound a stranger writes a line with each connection.
#[test]
fn connections_that_nobody_takes_are_told_once_a_minute() {
    let running = Running::start(
        "fairway",
        &["--enable-ssl-passthrough", "--tcp-services-configmap=demo/tcp"],
    );
    let port = ports::free();
    let closed = ports::free().to_string();
    let objects = UNTAKEN.replace("PORT", &port.to_string()).replace("CLOSED", &closed);
    fs::write(running.folder.path().join("objects/untaken.yaml"), objects).expect("a file");
    let told = |what: &str| running.log().lines().filter(|said| said.contains(what)).count();
    let ends = |port: u16, opening: &[u8]| {
        let Ok(mut tcp) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
        let sent = tcp.write_all(opening).is_ok();
        sent && !matches!(tcp.read(&mut [0; 1]), Ok(1..))
    };
    let hello = client_hello();
    for (what, port, opening) in [
        ("nobody takes a connection", port, &b""[..]),
        ("nobody takes a TLS connection", running.ports()[1], &hello),
    ] {
        running.until("it is told", || ends(port, opening) && told(what) > 0);
        assert!((0..20).all(|_| ends(port, opening)));
        // Should the test have taken longer than a minute, there may be one for each.
        assert!((1..=2).contains(&told(what)), "{}", running.log());
    }
}

/// A ClientHello for `untaken.test`, by openssl: a client that hears nothing more is as good as any.
fn client_hello() -> Vec<u8> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let mut client = Command::new("openssl")
        .args(["s_client", "-servername", "untaken.test", "-connect", &address])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let (mut tcp, _) = listener.accept().expect("a connection");
    let mut head = [0; 5];
    tcp.read_exact(&mut head).expect("the head of a record");
    let mut rest = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    tcp.read_exact(&mut rest).expect("a record");
    drop(tcp);
    client.wait().expect("it ends");
    [&head[..], &rest].concat()
}

/// What curl makes of the answer to an upload.
fn upload(file: &Path, host: &str, port: u16, tls: bool) -> String {
    let (scheme, version) =
        if tls { ("https", "--http2") } else { ("http", "--http2-prior-knowledge") };
    let output = Command::new("curl")
        .args([
            "-sk",
            "--max-time",
            "30",
            "-o",
            "/dev/null",
            "-H",
            "Expect:",
            "-X",
            "POST",
            version,
        ])
        .args(["-w", "%{http_version} %{http_code} %{errormsg}"])
        .args(["--resolve", &format!("{host}:{port}:127.0.0.1"), "-T"])
        .arg(file)
        .arg(format!("{scheme}://{host}:{port}/upload"))
        .output()
        .expect("curl runs");
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

/// libcurl 7.88 (Debian 12) loses an answer that comes in one read with the reset of its stream.
#[test]
fn curl_hears_answers_that_come_before_the_end_of_its_upload() {
    let running = Running::start("fairway", &[]);
    let [http, https] = running.ports();
    let file = |name: &str, size: usize| {
        let path = running.folder.path().join(name);
        fs::write(&path, vec![b'x'; size]).expect("a file");
        path
    };
    let (small, large) = (file("small", 900_000), file("large", 6_000_000));
    for (file, host, plain, secure) in [
        (&large, "closed.test", 413, 413),
        (&small, "closed.test", 403, 403),
        (&small, "guarded.test", 308, 503),
        (&small, "unknown.test", 404, 404),
    ] {
        for (port, tls, status) in [(http, false, plain), (https, true, secure)] {
            let heard: Vec<String> = (0..20).map(|_| upload(file, host, port, tls)).collect();
            assert_eq!(heard, vec![format!("2 {status} "); 20], "{host}, TLS: {tls}");
        }
    }
}
