//! What the API server is told about a Pod.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::container::{End, Observed, State};
use super::network::GATEWAY;

/// The conditions that the kubelet answers for; all others of a Pod are somebody else's.
const OURS: [&str; 5] =
    ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];

/// The status of a Pod with these containers, as a merge patch; `leaving` Pods are never ready.
pub(super) fn status(pod: &Pod, addresses: &[IpAddr], seen: &[Observed], leaving: bool) -> Value {
    let containers_ready = !leaving && seen.iter().all(|container| container.ready);
    let ready = containers_ready && gates_open(pod);
    let standings = [true, true, true, containers_ready, ready];
    let mut conditions: Vec<Value> = foreign_conditions(pod);
    conditions.extend(OURS.iter().zip(standings).map(|(kind, now)| condition(pod, kind, now)));
    json!({
        "phase": phase(seen),
        "hostIP": GATEWAY,
        "hostIPs": [{"ip": GATEWAY}],
        "podIP": addresses.first(),
        "podIPs": addresses.iter().map(|address| json!({"ip": address})).collect::<Vec<_>>(),
        "startTime": started(pod),
        "conditions": conditions,
        "containerStatuses": containers(pod, seen),
    })
}

/// The status of a Pod that this kubelet cannot run.
pub(super) fn failed(message: &str) -> Value {
    json!({"phase": "Failed", "reason": "NotRunnableHere", "message": message})
}

/// Running as long as one container may still run; else by how they ended.
fn phase(seen: &[Observed]) -> &'static str {
    let ended = seen.iter().map(|container| match &container.state {
        State::Ended(end) => Some(end.code),
        _ => None,
    });
    let codes: Option<Vec<i32>> = ended.collect();
    match codes {
        None => "Running",
        Some(codes) if codes.iter().all(|code| *code == 0) => "Succeeded",
        Some(_) => "Failed",
    }
}

fn gates_open(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_ref());
    gates.into_iter().flatten().all(|gate| known(pod, &gate.condition_type) == Some("True"))
}

/// The status that a condition of the Pod has at the API server.
fn known<'a>(pod: &'a Pod, kind: &str) -> Option<&'a str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    Some(conditions.iter().find(|condition| condition.type_ == kind)?.status.as_str())
}

fn foreign_conditions(pod: &Pod) -> Vec<Value> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let foreign = conditions.into_iter().flatten().filter(|c| !OURS.contains(&c.type_.as_str()));
    foreign.map(|condition| json!(condition)).collect()
}

fn condition(pod: &Pod, kind: &str, now: bool) -> Value {
    let status = if now { "True" } else { "False" };
    let mut condition = json!({"type": kind, "status": status});
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let before = conditions.into_iter().flatten().find(|before| before.type_ == kind);
    condition["lastTransitionTime"] = match before {
        Some(before) if before.status == status => json!(before.last_transition_time),
        _ => json!(second(Timestamp::now())),
    };
    condition
}

fn started(pod: &Pod) -> Value {
    match pod.status.as_ref().and_then(|status| status.start_time.as_ref()) {
        Some(time) => json!(time),
        None => json!(second(Timestamp::now())),
    }
}

fn containers(pod: &Pod, seen: &[Observed]) -> Vec<Value> {
    let specs = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses = specs.zip(seen).map(|(spec, container)| {
        let mut status = json!({
            "name": spec.name,
            "image": spec.image,
            "imageID": spec.image,
            "ready": container.ready,
            "started": matches!(container.state, State::Running { .. }),
            "restartCount": container.restarts,
            "state": match &container.state {
                State::Waiting { reason, message } => {
                    json!({"waiting": {"reason": reason, "message": message}})
                }
                State::Running { since } => json!({"running": {"startedAt": second(*since)}}),
                State::Ended(end) => ended(end),
            },
        });
        if let Some(last) = &container.last {
            status["lastState"] = ended(last);
        }
        status
    });
    statuses.collect()
}

fn ended(end: &End) -> Value {
    json!({"terminated": {
        "exitCode": end.code,
        "reason": if end.code == 0 { "Completed" } else { "Error" },
        "startedAt": second(end.from),
        "finishedAt": second(end.to),
    }})
}

/// Times of the API have whole seconds.
fn second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
