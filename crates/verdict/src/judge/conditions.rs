//! What a decision hangs on and a log does not show.

use super::{Decision, If};
use crate::known::Known;
use crate::log::Record;
use model::policy::{ClientCertificate, ClientDemand};
use model::snippet::{Program, Scope};
use std::collections::BTreeSet;

/// What is taken for granted about a request that both let pass.
pub(super) fn of_passing(record: &Record, answer: &Decision, known: &Known) -> BTreeSet<If> {
    let mut conditions = of_program(answer, known);
    let Some((server, index)) = answer.place.as_ref().filter(|_| !answer.routed) else {
        return conditions;
    };
    let asks = |asked: Option<&ClientCertificate>| match asked {
        Some(ClientCertificate::Verified(how)) => how.demand != ClientDemand::Off,
        Some(ClientCertificate::Closed(_)) | None => false,
    };
    if known.server(server).is_some_and(|server| asks(server.client_certificate.as_ref())) {
        conditions.insert(If::ClientCertificate);
    }
    let Some(location) = known.location(server, *index) else { return conditions };
    let policy = &location.policy;
    if asks(policy.client_certificate.as_ref()) {
        conditions.insert(If::ClientCertificate);
    }
    if policy.auth_basic.is_some() {
        conditions.insert(If::Password);
    }
    if policy.auth_external.is_some() {
        conditions.insert(If::Authenticator);
    }
    // Where the log names the canary, it says which side was chosen; why it was chosen, it never does.
    if location.canary.is_some() || record.alternative.as_deref().is_some_and(is_name) {
        conditions.insert(If::Canary);
    }
    if answer.upstream.as_deref().is_some_and(|name| known.is_vacant(name)) {
        conditions.insert(If::Endpoints);
    }
    conditions
}

/// Programs of snippets that may look at anything.
pub(super) fn of_program(answer: &Decision, known: &Known) -> BTreeSet<If> {
    let Some((server, index)) = &answer.place else { return BTreeSet::new() };
    let runs = |scope: Option<&Scope>| {
        scope
            .is_some_and(|scope| scope.program != Program::default() || !scope.locations.is_empty())
    };
    let of_server = known.server(server).and_then(|server| server.snippet.as_deref());
    // A number beyond those of the Ingresses is a location that a snippet has.
    let of_location = match known.location(server, *index) {
        Some(location) => runs(location.policy.snippet.as_deref()),
        None => true,
    };
    let any = of_location || runs(of_server);
    any.then_some(If::Snippet).into_iter().collect()
}

/// Whether a variable with the name of an upstream has one.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "-")
}
