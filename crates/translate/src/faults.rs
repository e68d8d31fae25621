//! Why nobody is where an Ingress or a route leads, where that is somebody's mistake; and the remedy.

use crate::endpoint_budget::too_many;
use crate::ingress::{Role, Target};
use crate::settings::host_of;
use crate::upstream::behind;
use crate::{Options, Problems};
use model::{ServiceRef, Url};
use objects::{ObjectKey, PortRef, Snapshot};
use std::sync::Arc;

/// Why nobody is behind a Service port. The `problems` say which Services have to wait for others of their namespace.
pub fn fault_behind(
    service: &ServiceRef,
    snapshot: &Snapshot,
    options: &Options,
    problems: &Problems,
) -> Option<String> {
    let ServiceRef { namespace, name, port } = service;
    let port = match port.parse() {
        Ok(number) => PortRef::Number(number),
        Err(_) => PortRef::Name(port.to_string()),
    };
    let service = ObjectKey::new(Arc::clone(namespace), Arc::clone(name));
    let target = Target::Service { service, port: Some(port), role: Role::Backend };
    fault(&target, snapshot, options, problems)
}

/// The same of the host of a URL, if that is a Service.
pub fn fault_at(
    url: &Url,
    snapshot: &Snapshot,
    options: &Options,
    problems: &Problems,
) -> Option<String> {
    let target = host_of(url.authority.literal()?, url.secure, &options.outside).ok()?;
    fault(&target, snapshot, options, problems)
}

fn fault(
    target: &Target,
    snapshot: &Snapshot,
    options: &Options,
    problems: &Problems,
) -> Option<String> {
    let waits = target.service().map(too_many);
    let waits = waits.filter(|it| problems.iter().any(|problem| problem.message.starts_with(it)));
    waits.or_else(|| behind(target, snapshot, options).fault)
}
