//! An Ingress that waits for room in the budget of its namespace: what it guards must be open to nobody, and what it
//! owns no stranger's, only because an older one has grown. Its hosts and paths are closed, its hosts keep their
//! certificates and are no stranger's, and nothing else of it is read.

use super::beside::guard;
use super::{Context, Draft, HostGuards, Reader, Role, Standing, inspect, origin};
use crate::annotations;
use crate::settings::Settings;
use crate::snippets;
use model::Problem;
use model::policy::{Access, Policy, guard as word_of_guard};
use objects::Ingress;
use std::sync::Arc;

/// That an Ingress waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Whether it may guard its paths, or the ConfigMap does.
    pub(crate) guards: bool,
    /// Whether its hosts have their certificates, for which there is room once more; else they have the default one.
    pub(crate) certificates: bool,
}

impl Draft {
    /// Whether its paths may have guards: nobody knows that of one that is closed, but of one that waits it is looked
    /// after.
    pub(crate) fn may_guard(&self) -> bool {
        self.waits.is_none_or(|waits| waits.guards)
    }

    /// An Ingress that waits, for the reason of a problem; none of a canary, which has no paths. `certificates`: see
    /// [`Waits`].
    pub(crate) fn waiting(
        ingress: &Arc<Ingress>,
        context: Context<'_>,
        problem: Problem,
        certificates: bool,
    ) -> Option<Self> {
        let ground = context.ground;
        let mut settings = Settings::of_ingress(
            context.scope,
            origin(&ingress.meta.key),
            &ingress.meta.annotations,
        );
        let (rewriting, names) = annotations::read_waiting(&mut settings)?;
        let snippets_count = ground.permissions.limits.snippets;
        let host_guards = HostGuards::of(|name| settings.raw(name), snippets_count);
        let has_word = |name: &&str| {
            settings.raw(name).is_some_and(|text| word_of_guard(name, &text).is_some())
        };
        let own = guard(ingress).is_some()
            || annotations::asks_for_modsecurity(&settings)
            || snippets_count && snippets::ANNOTATIONS.iter().any(has_word);
        let is_exempt = annotations::exempt_from_global_auth(&settings);
        let passthrough = annotations::is_passed_through(&mut settings);
        let asked = if is_exempt { Ok(None) } else { annotations::global_auth(&mut settings) };
        let closed = ground.denied.is_some() || asked.is_err();
        let policy = match asked {
            Ok(Some(asked)) if !own && !closed => {
                let auth_external = Some(Arc::new(asked));
                Arc::new(Policy { auth_external, ..Policy::clone(&ground.policy) })
            }
            Ok(None) if !own && !closed => Arc::clone(&ground.policy),
            // Nor does anybody know whom a guard of the ConfigMap lets in that cannot be read.
            _ => of_unknown_guards(&ground.policy),
        };
        let guards = own || closed || policy.is_guarded();
        let reader = Reader {
            inspects: context.deep_inspect && inspect::find(ingress).is_some(),
            open: (&[], Arc::clone(&policy)),
            denied: Some("its Ingress waits for room in the budget of its namespace".to_owned()),
            policy,
            origin: Arc::new(origin(&ingress.meta.key)),
            rewriting,
            role: Role::Backend,
            waits: true,
        };
        let draft = reader.draft(ingress, Standing::Rejected, Vec::new());
        let waits = Some(Waits { guards, certificates });
        let problems = vec![problem];
        Some(Self { problems, names, host_guards, passthrough, waits, ..draft })
    }
}

/// The policy of paths that have other guards besides, of which nobody knows: they are like those of no other path.
fn of_unknown_guards(policy: &Arc<Policy>) -> Arc<Policy> {
    if !policy.is_guarded() {
        return Arc::clone(policy);
    }
    Arc::new(Policy {
        auth_basic: None,
        auth_external: None,
        access: Access::default(),
        client_certificate: None,
        snippet: None,
        raw: None,
        ..Policy::clone(policy)
    })
}
