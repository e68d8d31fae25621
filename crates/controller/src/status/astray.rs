//! What is left of the Services of Gateways: those that nobody needs, and EndpointSlices that lead on for a Service
//! that is no Gateway's any more. Whoever leads next finds them here, since nobody tells him what was there before.

use objects::{Kind, ObjectKey, Snapshot};
use translate::gateway::{named_by, own_slices, service_name, stand_in};

/// Whether a Gateway that should have no Service has one, and nobody else has its class: whoever led before may have
/// left it so. Or whether EndpointSlices of ours lead on for one that is not its own.
pub(super) fn is_left(snapshot: &Snapshot, gateway: &ObjectKey, ours: &str) -> bool {
    let ObjectKey { namespace, name } = gateway;
    let called = ObjectKey::new(namespace.clone(), service_name(name));
    let is_made = snapshot.services.get(&called).is_some_and(|found| found.made_for.is_some());
    let class = snapshot.gateways.get(gateway).map(|found| ObjectKey::new("", &*found.class));
    let class = class.and_then(|class| snapshot.gateway_classes.get(&class));
    let is_known = !snapshot.unlisted.contains(&Kind::GatewayClass);
    let is_unneeded = is_made && class.map_or(is_known, |class| *class.controller == *ours);
    is_unneeded || leads_astray(snapshot, &called)
}

/// The name of a Gateway that is gone, by which its Service is written, if EndpointSlices of ours lead on for it.
pub(super) fn of_nobody(service: &ObjectKey, snapshot: &Snapshot) -> Option<ObjectKey> {
    let is_left = leads_astray(snapshot, service) && named_by(service, snapshot).next().is_none();
    stand_in(service).filter(|_| is_left)
}

/// Whether EndpointSlices of ours are there for a Service that is gone, or is no Gateway's: somebody took its owner or
/// its label away.
fn leads_astray(snapshot: &Snapshot, service: &ObjectKey) -> bool {
    let found = snapshot.services.get(service).and_then(|found| found.made_for.as_ref());
    let is_owned = found.is_some_and(|made| service_name(&made.name) == *service.name);
    !is_owned && own_slices(service, snapshot).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::super::services::touched;
    use super::*;
    use crate::Known;
    use std::path::Path;

    const OURS: &str = "fairway/gateway-controller";
    const SERVICE: &str = "---
apiVersion: v1
kind: Service
metadata:
  namespace: shop
  name: gateway-web
  labels: {app.kubernetes.io/managed-by: fairway}
  ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u}]
spec: {ports: [{port: 80}]}
";
    const SLICE: &str = "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: shop
  name: gateway-web-v4
  labels: {kubernetes.io/service-name: gateway-web, endpointslice.kubernetes.io/managed-by: fairway}
addressType: IPv4
endpoints: []
ports: [{port: 20000}]
";

    fn known(text: &str) -> Known {
        let snapshot = objects::snapshot_of([(Path::new("in.yaml"), text)]);
        Known { snapshot, ..Known::default() }
    }

    #[test]
    fn whoever_leads_next_takes_slices_that_lead_astray_and_no_others() {
        let web = ObjectKey::new("shop", "web");
        let lost = SERVICE.replace("  ownerReferences", "  annotations: {x: y}\n  #");
        let renamed = SERVICE.replace("name: web,", "name: other,");
        let relabelled = SERVICE.replace("managed-by: fairway", "managed-by: Helm");
        let theirs = SLICE.replace("managed-by: fairway", "managed-by: somebody");
        let further = SLICE.replace("gateway-web-v4", "gateway-web-x");
        for (service, slice, is_astray) in [
            (&*lost, SLICE, true),
            (&renamed, SLICE, true),
            (&relabelled, SLICE, true),
            ("", SLICE, true),
            (SERVICE, SLICE, false),
            (&lost, &theirs, false),
            (&lost, &further, false),
            (&lost, "", false),
        ] {
            let known = known(&format!("{service}{slice}"));
            let mut found = touched(&Known::default(), &known, None);
            let all: &[ObjectKey] = if is_astray { std::slice::from_ref(&web) } else { &[] };
            found.dedup();
            assert_eq!(found, all, "{service}{slice}");
            let is_unneeded = service == SERVICE;
            assert_eq!(is_left(&known.snapshot, &web, OURS), is_astray || is_unneeded);
        }
    }
}
