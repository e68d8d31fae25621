//! Readiness probes: HTTP and TCP, from the Node to the Pod's address.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Container, Probe as Spec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;

use crate::cluster::Connection;

/// Until a container is ready for the first time it is asked this often, whatever its period: tests wait for it.
const EAGER: Duration = Duration::from_millis(100);

/// A readiness probe.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    target: SocketAddr,
    /// Path, host and header lines of an HTTP probe; none for TCP.
    http: Option<(String, String, Vec<String>)>,
    delay: Duration,
    period: Duration,
    patience: Duration,
    successes: i32,
    failures: i32,
}

impl Probe {
    /// The readiness probe of a container, if it has one.
    pub(super) fn of(container: &Container, address: Ipv4Addr) -> Result<Option<Self>> {
        let Some(spec) = &container.readiness_probe else { return Ok(None) };
        let (port, http) = match (&spec.http_get, &spec.tcp_socket) {
            (Some(get), _) => {
                let scheme = get.scheme.as_deref().unwrap_or("HTTP");
                ensure!(scheme == "HTTP", "readinessProbe.httpGet.scheme {scheme}: use HTTP here");
                let given = get.http_headers.iter().flatten();
                let headers = given.map(|header| format!("{}: {}", header.name, header.value));
                let host = get.host.clone().unwrap_or_else(|| address.to_string());
                let path = get.path.clone().unwrap_or_else(|| "/".to_owned());
                (&get.port, Some((path, host, headers.collect())))
            }
            (None, Some(tcp)) => (&tcp.port, None),
            (None, None) => bail!("readinessProbe: only httpGet and tcpSocket can be used here"),
        };
        Ok(Some(Self::timed(spec, (address, port_number(container, port)?).into(), http)))
    }

    fn timed(spec: &Spec, target: SocketAddr, http: Option<(String, String, Vec<String>)>) -> Self {
        let seconds = |value: Option<i32>, otherwise: i32| {
            Duration::from_secs(value.unwrap_or(otherwise).unsigned_abs().into())
        };
        Self {
            target,
            http,
            delay: seconds(spec.initial_delay_seconds, 0),
            period: seconds(spec.period_seconds, 10),
            patience: seconds(spec.timeout_seconds, 1),
            successes: spec.success_threshold.unwrap_or(1),
            failures: spec.failure_threshold.unwrap_or(3),
        }
    }

    /// Calls `changed` each time the container becomes ready or unready; never ends.
    pub(super) async fn watch(&self, mut changed: impl FnMut(bool)) {
        #[expect(clippy::disallowed_methods, reason = "initialDelaySeconds of a probe")]
        tokio::time::sleep(self.delay).await;
        let (mut ready, mut ever, mut streak) = (false, false, 0);
        loop {
            let good = matches!(tokio::time::timeout(self.patience, self.ask()).await, Ok(Ok(())));
            streak = if good == ready { 0 } else { streak + 1 };
            if streak >= if ready { self.failures } else { self.successes } && good != ready {
                (ready, streak) = (good, 0);
                ever |= ready;
                changed(ready);
            }
            #[expect(clippy::disallowed_methods, reason = "periodSeconds of a probe")]
            tokio::time::sleep(if ever { self.period } else { EAGER.min(self.period) }).await;
        }
    }

    async fn ask(&self) -> Result<()> {
        let Some((path, host, headers)) = &self.http else {
            TcpStream::connect(self.target).await.context("connect")?;
            return Ok(());
        };
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let mut connection = Connection::open(self.target).await?;
        let answer = connection.get_with(host, path, &headers).await?;
        ensure!((200..400).contains(&answer.status), "status {}", answer.status);
        Ok(())
    }
}

fn port_number(container: &Container, port: &IntOrString) -> Result<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            named
                .with_context(|| format!("readinessProbe: no port is called {name:?}"))?
                .container_port
        }
    };
    u16::try_from(number).with_context(|| format!("readinessProbe: {number} is no port"))
}
