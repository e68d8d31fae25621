//! Gateways behind Services of type LoadBalancer: what their Services say is where they are served.

use crate::builders::of_gateways;
use model::Transport;
use objects::{ObjectKey, Snapshot};
use translate::gateway::{GatewayStatus, ServiceKind};
use translate::{GatewayServices, Options, Translation, Translator};

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: web, uid: first, generation: 1}
spec:
  gatewayClassName: fairway
  listeners:
  - {name: http, protocol: HTTP, port: 80}
  - {name: udp, protocol: UDP, port: 53}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: web}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {namespace: shop, name: web}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: web, port: 53}]}]}
---
";

/// The Service of the Gateway with this uid.
fn service(uid: &str, status: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata:
  namespace: shop
  name: gateway-web
  labels: {{app.kubernetes.io/managed-by: fairway}}
  ownerReferences: [{{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: {uid}}}]
spec:
  type: LoadBalancer
  ports: [{{port: 80, targetPort: 20007}}, {{port: 53, protocol: UDP, targetPort: 20008}}]
status: {status}
"
    )
}

fn snapshot(service: &str) -> Snapshot {
    of_gateways(&format!("{GATEWAY}{service}"))
}

fn options() -> Options {
    Options { gateway_services: GatewayServices::LoadBalancer, ..Options::default() }
}

fn status(made: &Translation) -> &GatewayStatus {
    &made.statuses.gateways[&ObjectKey::new("shop", "web")]
}

/// Reason of `Programmed` of the Gateway and of its first listener.
fn programmed(made: &Translation) -> [&'static str; 2] {
    let status = status(made);
    [&status.conditions, &status.listeners[0].conditions].map(|conditions| {
        let found = conditions.iter().find(|one| one.kind == "Programmed");
        found.expect("it is told").reason
    })
}

#[test]
fn nothing_is_served_before_there_is_a_service_and_then_at_the_ports_that_it_names() {
    let mut translator = Translator::new(options());
    let made = translator.update(&snapshot(""));
    assert_eq!(programmed(&made), ["AddressNotAssigned", "Pending"]);
    let configuration = &made.configuration;
    assert!(configuration.listeners.is_empty() && configuration.streams.is_empty());
    assert!(configuration.routes.is_empty(), "nor is it served with what all share");
    let wanted = status(&made).service.clone().expect("a Service");
    assert_eq!((wanted.kind, wanted.ports.len()), (ServiceKind::LoadBalancer(None), 2));
    assert_eq!(status(&made).own.as_deref(), Some(&[][..]));
    // Another choice is as good, if the Service says so.
    let made = translator.update(&snapshot(&service("first", "{}")));
    assert_eq!(programmed(&made), ["AddressNotAssigned", "Programmed"]);
    let listener = made.configuration.listeners.values().next().expect("a listener");
    assert_eq!(listener.id.address.to_string(), "0.0.0.0:20007");
    assert_eq!(listener.port, Some(80));
    let routes: Vec<_> = made.configuration.routes.keys().map(ToString::to_string).collect();
    assert_eq!(routes, ["0.0.0.0:20007 _/_"]);
    let streams: Vec<_> = made.configuration.streams.keys().map(ToString::to_string).collect();
    assert_eq!(streams, ["20008/udp"]);
    let wanted = status(&made).service.clone().expect("a Service");
    assert_eq!(wanted.ports[&(Transport::Tcp, 80)], 20_007);
    let given = "{loadBalancer: {ingress: [{ip: 192.0.2.7}, {hostname: lb.test}]}}";
    let made = translator.update(&snapshot(&service("first", given)));
    assert_eq!(programmed(&made), ["Programmed", "Programmed"]);
    assert_eq!(status(&made).own, Some(vec!["192.0.2.7".to_owned(), "lb.test".to_owned()]));
    let whole = translate::translate(&snapshot(&service("first", given)), &options());
    assert_eq!(whole.configuration, made.configuration);
    // A Service of a Gateway that was there before says nothing of this one.
    let made = translator.update(&snapshot(&service("another", given)));
    assert_eq!(programmed(&made), ["AddressNotAssigned", "Pending"]);
    assert!(made.configuration.listeners.is_empty() && made.configuration.streams.is_empty());
}

#[test]
fn with_the_nginx_engine_there_is_no_service() {
    let made = translate::translate(&snapshot(""), &Options { raw: true, ..options() });
    assert!(status(&made).service.is_none() && made.configuration.listeners.is_empty());
}
