//! Hosts that depend on what surprises many users of ingress-nginx. It is the same here, and changes nothing.

use super::Remark;
use model::{Configuration, Location, Origin, PathKind, Server};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be known about the Ingresses with locations.
pub(super) fn by_ingress(configuration: &Configuration) -> BTreeMap<Origin, Vec<Remark>> {
    let mut found: BTreeMap<Origin, Vec<Remark>> = BTreeMap::new();
    for server in configuration.servers.values() {
        for location in &server.locations {
            let Some(origin) = &location.origin else { continue };
            let remarks = about(server, location)
                .into_iter()
                .map(|message| Remark { key: Some("spec.rules".to_owned()), message });
            found.entry(origin.clone()).or_default().extend(remarks);
        }
    }
    found
}

fn about(server: &Server, location: &Arc<Location>) -> Option<String> {
    let (path, host) = (&location.path, &server.name);
    if server.regex && !location.whole && path != "/" {
        return Some(format!(
            "path {path} of host {host} is a regular expression without regard to case, because another path of the \
             host is one (use-regex or rewrite-target)"
        ));
    }
    let slash = location.kind == PathKind::Prefix && path.len() > 1 && path.ends_with('/');
    (slash && !server.regex).then(|| {
        format!("{} of host {host} is redirected to {path} (301)", path.trim_end_matches('/'))
    })
}
