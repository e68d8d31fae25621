//! Leaving out whoever asks for more than nginx's memory has for his namespace: before anything is pushed, so that no
//! push is refused for it.

use super::{Fault, Instead, LeftOut, ingresses};
use crate::push::{ROUTES, routes};
use model::Configuration;

/// Whose routes find no room, and is therefore left out of a Configuration.
pub(crate) fn without_room(next: &Configuration) -> LeftOut {
    let beyond = ROUTES.beyond(&routes::of(next).items());
    if beyond.is_empty() {
        return LeftOut::new();
    }
    let ingresses = ingresses(next);
    let faults = beyond.into_iter().map(|(owner, excess)| {
        let has_paths = owner.host.is_none() && ingresses.contains(&owner.origin);
        let reason = format!(
            "what namespace {:?} asks of sessions, hashing and canaries takes {} bytes of nginx's memory, which has {} \
             for it; write a shorter upstream-hash-by, or fewer paths with affinity or a canary",
            owner.origin.namespace, excess.asked, excess.allowed
        );
        let instead = if has_paths { Instead::Closed } else { Instead::Nothing };
        (owner, Fault { reason, instead, decided: true })
    });
    faults.collect()
}
