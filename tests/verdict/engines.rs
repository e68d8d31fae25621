//! `fairway compare` between running controllers: both engines, two versions, and planted differences.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;
use testkit::builders;
use testkit::certificates::Certificates;
use testkit::client::Client;
use testkit::exchange::Request;
use testkit::fairway::Started;
use testkit::manifests::Manifests;
use testkit::upstreams::Upstreams;
use testkit::{eventually, fixtures, ports};

/// How long a controller may take to serve: generous, since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);
/// What both are asked.
const LIST: &str = "# a list\nhttp://compared.test/a?q=1\nHEAD http://compared.test/b\nhttp://compared.test/moved\n\
    OPTIONS http://compared.test/a\nhttp://compared.test/planted\nhttp://nobody.test/\nDELETE http://compared.test/a\n";

/// A running Fairway on objects of its own.
struct Side {
    _fairway: Started,
    _manifests: Manifests,
    url: String,
    secure: String,
}

fn ingress(name: &str, path: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "namespace": "demo", "annotations": annotations},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "compared.test", "http": {"paths": [
            {"path": path, "pathType": "Prefix", "backend": {"service": {"name": "echo-b", "port": {"number": 80}}}}
        ]}}]},
    })
}

/// The program that these tests were built with.
fn this() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_fairway"))
}

impl Side {
    async fn start(
        binary: &Path,
        upstreams: &Upstreams,
        folder: &Path,
        name: &str,
        nginx: bool,
        planted: Value,
    ) -> Result<Self> {
        let manifests = Manifests::new()?;
        let moved = json!({"nginx.ingress.kubernetes.io/permanent-redirect": "http://elsewhere.test/x?token=1"});
        let own = [
            builders::ingress_class("nginx", "k8s.io/ingress-nginx"),
            ingress("all", "/", json!({})),
            ingress("moved", "/moved", moved),
            ingress("planted", "/planted", planted),
        ];
        let fixed = fixtures::objects(&Certificates::shared(), &upstreams.places);
        fixed.iter().chain(&own).try_for_each(|object| manifests.apply(object))?;
        let [http, https, admin] = std::array::from_fn(|_| ports::free());
        let mut flags = vec![
            "--worker-threads=1".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--healthz-host=127.0.0.1".to_owned(),
            format!("--http-port={http}"),
            format!("--https-port={https}"),
            format!("--healthz-port={admin}"),
        ];
        if nginx {
            let nginx = folder.join(name);
            flags.extend(["--engine=nginx".to_owned(), "--sync-rate-limit=0".to_owned()]);
            flags.push(format!("--nginx-directory={}", nginx.display()));
        }
        let log = folder.join(format!("{name}.log"));
        let fairway = Started::on_folder(binary, manifests.folder(), &flags, &log)?;
        let client = Client::new(IpAddr::V4(Ipv4Addr::LOCALHOST), http, https);
        let request =
            Request { url: "http://compared.test/ready".to_owned(), ..Request::default() };
        let served = || async { (client.send(&request).await.status == Some(200)).then_some(()) };
        eventually(PATIENCE, served).await.with_context(|| fairway.logs())?;
        Ok(Self {
            _fairway: fairway,
            _manifests: manifests,
            url: format!("http://127.0.0.1:{http}"),
            secure: format!("https://127.0.0.1:{https}"),
        })
    }
}

fn compared(old: &str, new: &str, folder: &Path, more: &[&str]) -> Output {
    let list = folder.join("list.txt");
    // What is asked for in another scheme than the sides' is left out.
    let is_secure = old.starts_with("https://");
    let text = if is_secure { LIST.replace("http://", "https://") } else { LIST.to_owned() };
    std::fs::write(&list, text).expect("a list");
    Command::new(this())
        .args(["compare", "--old", old, "--new", new, "--rate", "1000", "--requests"])
        .arg(list)
        .args(more)
        .output()
        .expect("the binary runs")
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {said}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_answer_alike() {
    let folder = TempDir::new().expect("a folder");
    let upstreams = Upstreams::local().await.expect("fixtures");
    let start =
        |name, nginx| Side::start(this(), &upstreams, folder.path(), name, nginx, json!({}));
    let (native, nginx) =
        tokio::try_join!(start("native", false), start("nginx", true)).expect("both serve");
    let output = compared(&nginx.url, &native.url, folder.path(), &["--report", "json"]);
    let report = report(&output);
    assert_eq!(
        (report["requests"].as_u64(), report["different"].as_u64()),
        (Some(6), Some(0)),
        "{report:#}"
    );
    assert_eq!(report["unsafe-methods"], 1, "{report:#}");
    assert_eq!(output.status.code(), Some(0));
    over_tls_and_http2(&nginx, &native, folder.path());
}

/// The other version is the program that `FAIRWAY_OLD` names (`make versions OLD=…`); without it, one more of this one.
#[tokio::test(flavor = "multi_thread")]
async fn two_versions_answer_alike() {
    let other = std::env::var_os("FAIRWAY_OLD").map(std::path::PathBuf::from);
    let (folder, other) = (TempDir::new().expect("a folder"), other.as_deref().unwrap_or(this()));
    let upstreams = Upstreams::local().await.expect("fixtures");
    let start =
        |binary, name| Side::start(binary, &upstreams, folder.path(), name, false, json!({}));
    let (old, new) =
        tokio::try_join!(start(other, "old"), start(this(), "new")).expect("both serve");
    let output = compared(&old.url, &new.url, folder.path(), &["--report", "json"]);
    let report = report(&output);
    let counts = ["alike", "different", "not-compared"].map(|key| report[key].as_u64());
    assert_eq!(counts, [Some(6), Some(0), Some(0)], "{report:#}");
    assert_eq!(output.status.code(), Some(0));
    over_tls_and_http2(&old, &new, folder.path());
}

/// The same over TLS, by HTTP/1.1 and by HTTP/2; what does not agree to that is not compared.
fn over_tls_and_http2(old: &Side, new: &Side, folder: &Path) {
    for flags in [&["--insecure"][..], &["--insecure", "--http2"]] {
        let flags = [flags, &["--report", "json"]].concat();
        let output = compared(&old.secure, &new.secure, folder, &flags);
        let report = report(&output);
        let counts = ["alike", "different", "not-compared"].map(|key| report[key].as_u64());
        assert_eq!(counts, [Some(6), Some(0), Some(0)], "{flags:?}: {report:#}");
        assert_eq!(output.status.code(), Some(0), "{flags:?}");
    }
    // Certificates are looked at unless that is not wanted, and nothing is proven then.
    let output = compared(&old.secure, &new.secure, folder, &["--report", "json"]);
    let refused = report(&output);
    assert_eq!(
        (output.status.code(), refused["not-compared"].as_u64()),
        (Some(1), Some(6)),
        "{refused:#}"
    );
    let why = refused["outcomes"][0]["not-compared"].as_str().unwrap_or_default();
    assert!(why.contains("TLS: ") && why.contains("--insecure takes any certificate"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_differences_are_found_told_and_end_a_comparison() {
    let folder = TempDir::new().expect("a folder");
    let upstreams = Upstreams::local().await.expect("fixtures");
    let planted = json!({"nginx.ingress.kubernetes.io/temporal-redirect": "http://elsewhere.test/?token=secret"});
    let start =
        |name, planted| Side::start(this(), &upstreams, folder.path(), name, false, planted);
    let (old, new) =
        tokio::try_join!(start("old", json!({})), start("new", planted)).expect("both serve");
    let state = folder.path().join("state.jsonl");
    let resume = ["--resume", state.to_str().expect("a path")];
    // What nobody listens on fails where the old one does not: that ends it.
    let gone = format!("http://127.0.0.1:{}", ports::free());
    let flags = ["--report", "json", "--stop-after", "2", "--concurrency", "1"];
    let output = compared(&old.url, &gone, folder.path(), &flags);
    let stopped = report(&output);
    assert_eq!(
        (output.status.code(), stopped["stopped"]["harms"].as_u64()),
        (Some(2), Some(2)),
        "{stopped:#}"
    );
    assert_eq!(stopped["stopped"]["left"], 4, "{stopped:#}");
    let output =
        compared(&old.url, &new.url, folder.path(), &[&resume[..], &["--report", "json"]].concat());
    let first = report(&output);
    assert_eq!(
        (output.status.code(), first["different"].as_u64()),
        (Some(2), Some(1)),
        "{first:#}"
    );
    let one = first["outcomes"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|it| !it["differences"].as_object().expect("a map").is_empty());
    let one = one.expect("the planted one");
    assert_eq!(one["request"], "GET compared.test/planted", "{one:#}");
    assert_eq!(one["differences"]["status"], "old 200, new 302", "{one:#}");
    assert!(
        !first.to_string().contains("secret") && !first.to_string().contains("token"),
        "{first:#}"
    );
    every_form_tells(&old.url, &new.url, folder.path(), &resume);
    // A state of other controllers is not taken for this one's.
    let output = compared(&old.url, &gone, folder.path(), &resume);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("belongs to other requests"),
        "{said}"
    );
}

/// With a whole state nothing is sent any more; half a line at its end is no harm.
fn every_form_tells(old: &str, new: &str, folder: &Path, resume: &[&str]) {
    use std::io::Write;
    let mut state = std::fs::OpenOptions::new().append(true).open(resume[1]).expect("a state");
    write!(state, "{{\"number\":").expect("half a line");
    for (form, words) in [
        ("markdown", "| GET compared.test/planted | old 200, new 302 |"),
        ("html", "<td>GET compared.test/planted</td><td>old 200, new 302</td>"),
        ("junit", "<testcase name=\"GET compared.test/planted\"><failure message="),
    ] {
        let output = compared(old, new, folder, &[resume, &["--report", form]].concat());
        let page = String::from_utf8_lossy(&output.stdout);
        assert!(page.contains(words), "{form}: {page}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn where_nothing_was_compared_the_exit_code_says_so() {
    let folder = TempDir::new().expect("a folder");
    let nobody = || format!("http://127.0.0.1:{}", ports::free());
    let output = compared(&nobody(), &nobody(), folder.path(), &["--report", "json"]);
    let report = report(&output);
    let counts = ["alike", "different", "not-compared"].map(|key| report[key].as_u64());
    assert_eq!(counts, [Some(0), Some(0), Some(6)], "{report:#}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn mistakes_are_said_in_one_line() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("wrong");
    std::fs::write(&path, "https://a.test/\nnonsense here\n").expect("a file");
    let path = path.to_str().expect("a path");
    let over_tls = folder.path().join("over-tls");
    std::fs::write(&over_tls, "https://a.test/\n").expect("a file");
    let over_tls = over_tls.to_str().expect("a path");
    for (arguments, words) in [
        (&["--old", "a", "--new", "http://b", "--requests", path][..], "names no controller"),
        (&["--old", "http://a", "--new", "http://b", "--requests", path], "wrong:2"),
        (&["--old", "http://a", "--new", "http://b", "--har", path], "it is no HAR file"),
        (
            &["--old", "http://a", "--new", "http://b", "--requests", "/dev/null"],
            "there is no request in what was read",
        ),
        (
            &["--old", "http://a", "--new", "http://b", "--requests", over_tls],
            "no request to send: 1 not sent: they were asked for over https://",
        ),
        (&["--old", "http://a", "--new", "http://b"], "--log"),
    ] {
        let output = Command::new(this()).arg("compare").args(arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(words), "{arguments:?}: {said}");
    }
}
