//! Measures Snapshots of many Ingresses from a folder: reading them, taking one, following one change, memory.
//! Each Ingress has two paths, and a Service, an EndpointSlice and a Secret with it. Run it with `--release`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let counts = std::env::args().skip(1).map(|count| count.parse());
    let mut counts: Vec<usize> = counts.collect::<Result<_, _>>()?;
    if counts.is_empty() {
        counts = vec![1_000, 5_000, 10_000];
    }
    println!("ingresses     read  snapshot   change p50   change max    memory");
    for count in counts {
        measure(count).await?;
    }
    Ok(())
}

async fn measure(count: usize) -> Result<(), Box<dyn Error>> {
    const TAKEN: u32 = 100_000;
    const CHANGES: usize = 21;
    let folder = tempfile::tempdir()?;
    for index in 0..count {
        write(folder.path(), index, "/")?;
    }
    let before = resident();
    let begin = Instant::now();
    let mut feed = kubernetes::manifests(vec![folder.path().to_owned()]).await?;
    let read = begin.elapsed();
    assert_eq!(feed.snapshots.borrow().ingresses.len(), count, "every file is read");
    let memory = resident().saturating_sub(before);
    let begin = Instant::now();
    for _ in 0..TAKEN {
        std::hint::black_box(feed.snapshots.borrow().clone());
    }
    let taken = begin.elapsed() / TAKEN;
    let mut changes = Vec::new();
    for change in 0..CHANGES {
        feed.snapshots.borrow_and_update();
        write(folder.path(), change * 7 % count, &format!("/changed-{change}"))?;
        let begin = Instant::now();
        feed.snapshots.changed().await?;
        changes.push(begin.elapsed());
    }
    changes.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{count:>9} {:>6.0} ms {:>6} ns {:>9.1} ms {:>9.1} ms {:>5} MiB",
        milliseconds(read),
        taken.as_nanos(),
        milliseconds(changes[CHANGES / 2]),
        milliseconds(changes[CHANGES - 1]),
        memory / 1024,
    );
    Ok(())
}

fn write(folder: &Path, index: usize, path: &str) -> std::io::Result<()> {
    let certificate = "certificate ".repeat(150);
    let text = format!(
        r#"apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web-{index}
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/proxy-body-size: 8m
spec:
  ingressClassName: nginx
  tls:
  - hosts: [host-{index}.test]
    secretName: tls-{index}
  rules:
  - host: host-{index}.test
    http:
      paths:
      - {{path: {path}, pathType: Prefix, backend: {{service: {{name: web-{index}, port: {{number: 80}}}}}}}}
      - {{path: /api, pathType: Prefix, backend: {{service: {{name: web-{index}, port: {{name: http}}}}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web-{index}, namespace: shop}}
spec:
  ports: [{{name: http, port: 80, targetPort: 8080}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-{index}-a
  namespace: shop
  labels: {{kubernetes.io/service-name: web-{index}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints:
- addresses: [10.0.0.1]
- addresses: [10.0.0.2]
---
apiVersion: v1
kind: Secret
metadata: {{name: tls-{index}, namespace: shop}}
type: kubernetes.io/tls
stringData: {{tls.crt: "{certificate}", tls.key: "{certificate}"}}
"#
    );
    fs::write(folder.join(format!("{index}.yaml")), text)
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
