//! A walk through configurations with snippets: both engines get the same random texts, and answer the same requests
//! alike. `FAIRWAY_WALK` says how many Ingresses (24 unless said), `FAIRWAY_SEED` from where.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use testkit::{
    namespace,
    runner::{self, Engine, Options},
};

/// Ingresses of a walk that nobody asked to be longer.
const SHORT: usize = 24;
/// Requests to each.
const REQUESTS: usize = 6;

#[test]
fn both_engines_answer_alike_whatever_snippets_say() {
    let name = "both_engines_answer_alike_whatever_snippets_say";
    if !namespace::run_test(module_path!(), name).expect("the walk runs in a namespace") {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("FAIRWAY_SEED").unwrap_or(1);
    let cases = number("FAIRWAY_WALK").map_or(SHORT, |cases| cases as usize);
    let corpus = tempfile::tempdir().expect("a folder for the walk");
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for case in 0..cases {
        write(corpus.path(), case, &mut random);
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_fairway"));
    let native = Options { overlay: None, ..Options::new(corpus.path(), binary) };
    let nginx = Options { engine: Engine::Nginx, ..native.clone() };
    let (native, nginx) = tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(async { tokio::try_join!(runner::run(&native), runner::run(&nginx)) })
        .unwrap_or_else(|error| panic!("the walk does not run: {error:#}"));
    let steps = native.steps.len();
    assert_eq!((steps, nginx.steps.len()), (cases * REQUESTS, cases * REQUESTS));
    let served = |status| native.steps.iter().filter(|step| has_status(step, status)).count();
    assert!(served(200) > steps / 4 && served(503) < steps / 4, "the texts are understood");
    let differing = runner::disagreements(&native, &nginx);
    for step in &differing {
        let text = fs::read_to_string(corpus.path().join(&step.case).join("in.yaml"));
        println!("{}: {}\n  {}", step.case, step.step, step.differences.join("\n  "));
        println!("{}", text.unwrap_or_default());
    }
    assert!(differing.is_empty(), "{} of {steps} steps differ, seed {seed}", differing.len());
}

fn has_status(step: &runner::StepResult, status: u16) -> bool {
    step.got.answer.as_ref().is_some_and(|answer| answer.status == Some(status))
}

/// A sequence of numbers that is the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Text with variables.
fn text(random: &mut Random) -> String {
    const PIECES: [&str; 13] = [
        "a",
        "-",
        "b c",
        "${uri}",
        "${arg_q}",
        "${v0}",
        "${v1}",
        "${http_x_in}",
        "${host}",
        "${args}",
        "${request_method}",
        "${request_uri}",
        "$1",
    ];
    (0..1 + random.below(3)).map(|_| random.one(&PIECES)).collect()
}

fn rewrite(random: &mut Random, flags: &[&str]) -> String {
    let regex = random.one(&["^/a/(.*)$", "^/(\\w+)/(\\d+)$", "/x$", "^/b", "^/(?<named>n.*)$"]);
    let to = random.one(&[
        "/c/$1",
        "/d?n=$1",
        "/e?",
        "/own/$1",
        "/z$uri",
        "/own/x",
        "https://x.test/$1",
    ]);
    format!("rewrite {regex} {to}{};", random.one(flags))
}

fn condition(random: &mut Random) -> &'static str {
    random.one(&[
        "$arg_q",
        "$arg_q = one",
        "$arg_q != one",
        "$request_method = POST",
        "$uri ~ \"^/(\\w)(.*)$\"",
        "$http_x_in ~* (B|c)",
        "$v1 !~ a",
        "$cookie_c",
    ])
}

/// What stands in a location or an `if` of one.
fn setting(random: &mut Random) -> String {
    let (number, value) = (random.below(3), text(random));
    match random.below(5) {
        0 | 1 => format!("add_header X-A{number} \"{value}\" always;"),
        2 => format!("more_set_headers \"X-M{number}: {value}\";"),
        3 => format!("more_set_headers -s 404 \"X-S{number}: {value}\";"),
        _ => format!("set $v{number} \"{value}\";"),
    }
}

/// A block `if`; in a server it has no settings of its own.
fn branch(random: &mut Random, in_location: bool) -> String {
    let condition = condition(random);
    let inner = match random.below(6) {
        0 => format!("return {} \"{}\";", random.one(&["200", "403", "404"]), text(random)),
        1 => rewrite(random, &[" break", " last", " redirect"]),
        2 => "break;".to_owned(),
        _ if in_location => setting(random),
        _ => format!("set $v{} \"{}\";", random.below(3), text(random)),
    };
    format!("if ({condition}) {{ {inner} }}")
}

/// `configuration-snippet`.
fn of_location(random: &mut Random) -> String {
    let mut snippet = String::new();
    for _ in 0..2 + random.below(5) {
        let line = match random.below(8) {
            0 | 1 => branch(random, true),
            2 => rewrite(random, &["", " last", " break", " redirect", " permanent"]),
            3 => format!("proxy_set_header X-P{} \"{}\";", random.below(3), text(random)),
            _ => setting(random),
        };
        // Two of one name are two fields in nginx, and one here.
        if !line.starts_with("proxy_set_header") || !snippet.contains(&line[..20]) {
            let _ = writeln!(snippet, "{line}");
        }
    }
    if random.below(8) == 0 {
        let _ = writeln!(snippet, "return 200 \"{}\";", text(random));
    }
    snippet
}

/// `server-snippet`.
fn of_server(random: &mut Random) -> String {
    let mut snippet = String::from("set $v0 zero; set $v1 \"\"; set $v2 2;\n");
    for _ in 0..random.below(3) {
        let line = match random.below(3) {
            0 => branch(random, false),
            1 => rewrite(random, &["", " last", " break", " permanent"]),
            _ => format!("more_set_headers \"X-Server: {}\";", text(random)),
        };
        let _ = writeln!(snippet, "{line}");
    }
    for place in ["= /own/x", "/own/", "~ \\.(php|js)$", "^~ /fin/", "~* ^/(C|d)/"] {
        if random.below(3) > 0 {
            continue;
        }
        let content = match random.below(4) {
            0 => "deny all;".to_owned(),
            1 => rewrite(random, &[" last", " permanent"]) + " return 404;",
            _ => format!("return 200 \"own {}\";", text(random)),
        };
        let _ = writeln!(snippet, "location {place} {{ {} {content} }}", setting(random));
    }
    snippet
}

/// Writes one Ingress, and requests to it. Nobody has recorded what comes of them: they are held against each other.
fn write(corpus: &Path, case: usize, random: &mut Random) {
    let folder = corpus.join(format!("walk/w{case}"));
    fs::create_dir_all(&folder).expect("a folder for a case");
    let indented =
        |text: String| text.lines().map(|line| format!("      {line}\n")).collect::<String>();
    let (server, location) = (indented(of_server(random)), indented(of_location(random)));
    let objects = format!(
        "{CONFIG_MAP}---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: w{case}
  namespace: demo
  annotations:
    nginx.ingress.kubernetes.io/server-snippet: |
{server}    nginx.ingress.kubernetes.io/configuration-snippet: |
{location}spec:
  ingressClassName: nginx
  rules:
  - host: w{case}.test
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {{service: {{name: echo-b, port: {{number: 80}}}}}}
"
    );
    let mut steps = String::new();
    for _ in 0..REQUESTS {
        let path = random.one(&[
            "/",
            "/a/x",
            "/a/1.php",
            "/b/22",
            "/own/x",
            "/own/y",
            "/fin/a.js",
            "/nest",
            "/C/1",
        ]);
        let query = random.one(&["", "?q=one", "?q=two&r=%20x", "?q"]);
        let method = random.one(&["GET", "GET", "POST", "HEAD"]);
        let header =
            random.one(&["", "    - [X-In, bc]\n", "    - [X-In, '0']\n", "    - [Cookie, c=1]\n"]);
        let headers = if header.is_empty() { "" } else { "    headers:\n" };
        let _ = write!(
            steps,
            "- request:\n    url: http://w{case}.test{path}{query}\n    method: {method}\n{headers}{header}  \
             answer:\n    status: 299\n"
        );
    }
    let files = [
        ("in.yaml", objects),
        ("exchange.yaml", steps),
        ("case.yaml", "differs: 'nobody recorded it'\n".to_owned()),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file of a case");
    }
}

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: ingress-nginx-controller
  namespace: ingress-nginx
data:
  allow-snippet-annotations: 'true'
  annotations-risk-level: Critical
";
