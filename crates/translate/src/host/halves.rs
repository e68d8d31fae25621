//! Lists of the ConfigMap that have the lower half of a path (`no-auth-locations`, `no-tls-redirect-locations`).

use super::Host;
use model::policy::Policy;
use model::{Kind, Location, PathKind};
use std::sync::Arc;

/// Whether a list has what is below the slash of a path, and not the path itself.
fn cuts(list: &[String], path: &str) -> bool {
    list.iter().any(|item| item.strip_suffix('/') == Some(path))
        && !list.iter().any(|item| path.starts_with(item.as_str()))
}

impl Host<'_> {
    /// A prefix without a slash at its end is two places (compat/behaviour.md section 5). They become two locations
    /// where a list has one of them. The path itself is somebody else's where an Exact one is written.
    pub(super) fn cut(&mut self) {
        let open = &self.ground.permissions.open_paths;
        let in_clear = &self.ground.global.no_tls_redirect;
        let mut below = Vec::new();
        for at in 0..self.locations.len() {
            let Location { path, kind, whole, origin, policy, .. } = &*self.locations[at];
            let is_ingress = origin.as_ref().is_some_and(|origin| origin.kind == Kind::Ingress);
            let is_prefix = *kind == PathKind::Prefix && !path.ends_with('/');
            let may_be_two = is_ingress && is_prefix && !whole;
            if !may_be_two || !(cuts(open, path) || cuts(in_clear, path)) {
                continue;
            }
            let policy = if cuts(open, path) {
                Arc::new(Policy::clone(policy).unauthenticated())
            } else {
                Arc::clone(policy)
            };
            let lower = Location {
                path: format!("{path}/"),
                policy,
                ..Location::clone(&self.locations[at])
            };
            let has = |kind: PathKind, path: &str| {
                self.locations.iter().any(|other| other.kind == kind && other.path == path)
            };
            let (is_exact, is_lower) =
                (has(PathKind::Exact, path), has(PathKind::Prefix, &lower.path));
            let here = &mut self.locations[at];
            match (is_exact, is_lower) {
                // The lower half is another's.
                (_, true) => {}
                (true, false) => *here = Arc::new(lower),
                (false, false) => {
                    Arc::make_mut(here).kind = PathKind::Exact;
                    below.push(Arc::new(lower));
                }
            }
        }
        self.locations.append(&mut below);
    }
}
