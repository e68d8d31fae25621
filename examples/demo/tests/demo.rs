//! `make run`, as somebody would try it who just cloned the repository: the printed lines work, and so does editing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Demos that start at the same moment choose the same ports.
static ONE_AFTER_ANOTHER: Mutex<()> = Mutex::new(());

/// The demo, running; ended when dropped.
struct Demo {
    child: Child,
    lines: Vec<String>,
}

impl Demo {
    /// Starts it on a folder and reads what it prints until it is ready.
    fn start(manifests: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
        command.arg(manifests).env_remove("PORT").env_remove("TLS_PORT").stdout(Stdio::piped());
        let mut child = command.spawn().expect("cargo made it");
        let mut output = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let mut demo = Self { child, lines: Vec::new() };
        let mut joined = String::new();
        for line in output.by_ref() {
            let line = line.expect("the demo writes UTF-8");
            let last = line.contains("Ctrl-C");
            joined.push_str(line.strip_suffix('\\').unwrap_or(&line));
            if !line.ends_with('\\') {
                demo.lines.push(std::mem::take(&mut joined));
            }
            if last {
                // The access log goes on, and a pipe that nobody reads would end it.
                std::thread::spawn(move || output.count());
                return demo;
            }
        }
        panic!("the demo ended before it was ready: {:?}", demo.child.wait());
    }

    /// What the command prints that stands below the heading, the `index`th of them.
    fn run(&self, heading: &str, index: usize) -> String {
        let below = self.lines.iter().skip_while(|line| !line.starts_with(heading)).skip(1);
        let mut commands = below.take_while(|line| line.starts_with("  "));
        let command = commands
            .nth(index)
            .unwrap_or_else(|| panic!("no line below {heading}: {:?}", self.lines));
        let output = Command::new("sh").args(["-c", command]).output().expect("there is a shell");
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if !asked.is_ok_and(|status| status.success()) {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

#[test]
fn every_printed_line_works_and_an_edit_changes_the_answer() {
    let _turn = ONE_AFTER_ANOTHER.lock().unwrap_or_else(PoisonError::into_inner);
    let manifests = copy_of_the_manifests();
    let demo = Demo::start(&manifests);
    let expectations = [
        ("HTTP", 0, "hello from blue"),
        ("HTTP", 1, "hello from green"),
        ("HTTPS", 0, "hello from blue"),
        ("HTTP/2", 0, "spoken: HTTP/2"),
        ("WebSocket", 0, "101 Switching Protocols"),
        ("WebSocket", 0, "hello from chat"),
        ("gRPC", 0, "^Ehello"),
        ("gRPC", 0, "grpc-status: 0"),
    ];
    for (heading, index, expected) in expectations {
        let output = demo.run(heading, index);
        assert!(output.contains(expected), "{heading}: no `{expected}` in\n{output}");
    }

    let site = manifests.join("site.yaml");
    let text = std::fs::read_to_string(&site).expect("the demo has a site");
    std::fs::write(&site, text.replacen("name: blue\n", "name: green\n", 1))
        .expect("the copy can be written");
    let edited = Instant::now();
    while !demo.run("HTTP", 0).contains("hello from green") {
        assert!(edited.elapsed() < Duration::from_secs(5), "the edit did not take effect");
    }
    drop(demo);
    std::fs::remove_dir_all(manifests).expect("the copy is ours");
}

/// The folder that a demo writes, and takes away at its end.
fn folder_of(child: &Child) -> PathBuf {
    let build = Path::new(env!("CARGO_BIN_EXE_demo")).parent().and_then(Path::parent);
    build.expect("a folder of builds").join("demo").join(child.id().to_string())
}

#[test]
fn a_port_that_is_given_and_taken_is_told_and_nothing_is_promised() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    for name in ["PORT", "TLS_PORT"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
        command.env_remove("PORT").env_remove("TLS_PORT").env(name, port.to_string());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("cargo made it");
        let folder = folder_of(&child);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let remedy = format!("{name}={port} cannot be had; give another port by {name}=");
        assert!(said.contains(&remedy) && output.stdout.is_empty(), "{said}");
        assert!(!folder.exists(), "it leaves {}", folder.display());
    }
}

#[test]
fn who_reads_nothing_is_served_and_the_folder_goes_at_the_end() {
    let _turn = ONE_AFTER_ANOTHER.lock().unwrap_or_else(PoisonError::into_inner);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command.env_remove("PORT").env_remove("TLS_PORT").stdout(writer).stderr(Stdio::piped());
    let mut child = command.spawn().expect("cargo made it");
    let folder = folder_of(&child);
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut lines = stderr.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("demo: nobody reads")), "{:?}", child.wait());
    assert!(folder.exists());
    let asked = Command::new("kill").arg(child.id().to_string()).status();
    assert!(asked.expect("there is kill").success());
    let said = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{said}");
    assert!(!folder.exists(), "it leaves {}", folder.display());
}

fn copy_of_the_manifests() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("demo-{}", std::process::id()));
    std::fs::create_dir_all(&copy).expect("the folder for temporary files can be written");
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    for entry in std::fs::read_dir(original).expect("the demo has manifests") {
        let entry = entry.expect("a folder that opened can be read");
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("manifests can be copied");
    }
    copy
}
