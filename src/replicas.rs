//! The replicas of this Deployment or DaemonSet, for the page: their Pods as the API server tells of them, and the
//! first part of each one's page of metrics, which is for everybody and needs no token.

use console::{AskReplicas, Replica, Says};
use controller::lease::Leadership;
use controller::{OwnPod, Sibling};
use kubernetes::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a replica may take to say something of itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// As much of its page is read: what follows is about requests by path, of which there may be very much.
const MOST: u64 = 64 << 10;

/// Asks the API server with this client, and the replicas at this port.
pub(crate) fn asking(
    pod: OwnPod,
    client: Client,
    leadership: Option<Leadership>,
    port: u16,
) -> AskReplicas {
    let known = Arc::new((pod, client, leadership));
    Box::new(move || {
        let known = known.clone();
        Box::pin(async move {
            let (pod, client, leadership) = &*known;
            let siblings = pod.siblings(client).await?;
            let leader = leadership.as_ref().and_then(Leadership::leader);
            let mut asked = JoinSet::new();
            for sibling in siblings {
                let leads = leader.as_ref().map(|leader| **leader == *sibling.name);
                asked.spawn(replica(sibling, leads, port));
            }
            let mut all = asked.join_all().await;
            all.sort_by(|a, b| a.pod.cmp(&b.pod));
            Ok(all)
        })
    })
}

async fn replica(sibling: Sibling, leads: Option<bool>, port: u16) -> Replica {
    let says = sibling.page((port, "/metrics"), MOST, PATIENCE).await;
    let Sibling { name, node, ready, since, address: _ } = sibling;
    let (since, says) = (since.map(|at| at as f64), says.map(|page| said(&page)));
    Replica { pod: name, node, ready, since, leads, says }
}

fn said(page: &str) -> Says {
    let whole = page.rfind('\n').map_or("", |end| &page[..end]);
    Says {
        version: label(whole, "fairway_build_info", "version"),
        requests: number(whole, "nginx_ingress_controller_nginx_process_requests_total"),
        connections: active(whole),
        memory: number(whole, "process_resident_memory_bytes"),
        configuration: values(whole, "nginx_ingress_controller_config_hash")
            .next()
            .map(|(_, value)| value.to_owned()),
    }
}

/// The lines of a family: labels and value.
fn values<'a>(page: &'a str, family: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    page.lines().filter_map(move |line| {
        let rest = line.strip_prefix(family).filter(|rest| rest.starts_with(['{', ' ']))?;
        rest.rsplit_once(' ')
    })
}

fn number(page: &str, family: &str) -> Option<u64> {
    let value: f64 = values(page, family).next()?.1.trim().parse().ok()?;
    (value >= 0.0).then_some(value as u64)
}

fn active(page: &str) -> Option<u64> {
    let mut all = values(page, "nginx_ingress_controller_nginx_process_connections");
    let value = all.find(|(labels, _)| labels.contains("state=\"active\""))?.1;
    value.trim().parse::<f64>().ok().map(|value| value as u64)
}

fn label(page: &str, family: &str, name: &str) -> Option<String> {
    let (labels, _) = values(page, family).next()?;
    let (_, rest) = labels.split_once(&format!("{name}=\""))?;
    rest.split('"').next().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{active, label, number};

    #[test]
    fn what_a_replica_says_is_found_on_its_page() {
        let page = "HTTP/1.1 200 OK\r\n\r\n# HELP x y\nfairway_build_info{version=\"0.1.0\",commit=\"c\"} 1\n\
            nginx_ingress_controller_nginx_process_requests_total{controller_pod=\"a b\"} 17\n\
            nginx_ingress_controller_nginx_process_connections_total{state=\"active\"} 9\n\
            nginx_ingress_controller_nginx_process_connections{state=\"reading\"} 1\n\
            nginx_ingress_controller_nginx_process_connections{state=\"active\"} 3\n\
            process_resident_memory_bytes 1.5e+07\n";
        assert_eq!(number(page, "nginx_ingress_controller_nginx_process_requests_total"), Some(17));
        assert_eq!(
            (active(page), number(page, "process_resident_memory_bytes")),
            (Some(3), Some(15_000_000))
        );
        assert_eq!(label(page, "fairway_build_info", "version").as_deref(), Some("0.1.0"));
        assert_eq!(number(page, "process_resident"), None);
    }
}
