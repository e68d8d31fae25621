//! Which locations have the error pages of the ConfigMap: one with an `error_page` of its own inherits none of them,
//! nor does any of a server with one (ngx_http_core_module; compat/behaviour.md section 17).

use super::Host;
use model::Backend;
use model::policy::{ClientCertificate, Errors, Policy};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

impl Host<'_> {
    /// Takes those of the ConfigMap from who has others. A denied location has none of its Ingress's, and no page for
    /// those who should sign in.
    pub(super) fn pages(&mut self, clients: Option<&ClientCertificate>) {
        let are_hidden = clients.is_some_and(ClientCertificate::has_error_page);
        let of_all = self.ground.policy.errors.as_ref().filter(|_| !are_hidden);
        // Paths of an Ingress share their policy. What was there is kept, so that nothing else is where it is.
        let mut known: HashMap<(*const Policy, bool), [Arc<Policy>; 2]> = HashMap::new();
        for location in &mut self.locations {
            let is_denied = matches!(location.backend, Backend::Denied(_));
            let old = &location.policy;
            let stays = match &old.errors {
                errors if is_denied => errors.as_ref() == of_all,
                Some(errors) => !errors.of_all || !are_hidden && !signs_in(old),
                None => true,
            };
            if stays {
                continue;
            }
            let wanted = if is_denied { of_all.cloned() } else { left(old) };
            let [_, new] = known.entry((Arc::as_ptr(old), is_denied)).or_insert_with(|| {
                let new = Policy { errors: wanted, ..Policy::clone(old) };
                [Arc::clone(old), Arc::new(new)]
            });
            let new = Arc::clone(new);
            Arc::make_mut(location).policy = new;
        }
    }
}

/// Whether those who may not come in are led to a page for signing in.
fn signs_in(policy: &Policy) -> bool {
    policy.auth_external.as_ref().is_some_and(|asked| asked.sign_in.is_some())
}

/// What is left of the pages of the ConfigMap beside one of the location's own. That answers of upstreams are looked at
/// is inherited all the same: the page for signing in takes the place of an application's own 401, too.
fn left(policy: &Policy) -> Option<Errors> {
    let errors = policy.errors.as_ref()?;
    let looks = errors.intercept && signs_in(policy);
    looks.then(|| Errors { statuses: BTreeSet::new(), ..errors.clone() })
}
