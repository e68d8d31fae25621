//! BackendTLSPolicies for backends that are spoken to under TLS, with the authorities in ConfigMaps.

use crate::backends::Port;
use crate::made::{API, Made};
use model::policy::UpstreamTls;
use objects::ObjectKey;
use pem::{EncodeConfig, LineEnding, Pem};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The policies, by Service and port: two Ingresses of one port have to agree.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    tls: BTreeMap<Port, Wanted>,
    /// Ports that are spoken to in clear, with the first Ingress that leads there.
    clear: BTreeMap<Port, ObjectKey>,
}

/// The name and the authorities of a port, and the Ingress that asks for them first.
type Wanted = (String, Arc<[Arc<[u8]>]>, ObjectKey);

/// What is known of a port: by its own name, or that of all ports of its Service.
fn known<'m, T>(all: &'m BTreeMap<Port, T>, port: &Port) -> Option<&'m T> {
    let of_service = all.range((port.0.clone(), None)..).take_while(|(other, _)| other.0 == port.0);
    let mut meets =
        of_service.filter(|(other, _)| other.1.is_none() || port.1.is_none() || other.1 == port.1);
    meets.next().map(|(_, one)| one)
}

impl Policies {
    /// Has a port spoken to in clear, or says why that is not possible.
    pub(crate) fn in_clear(&mut self, port: Port, of: &ObjectKey) -> Result<(), String> {
        if let Some((.., other)) = known(&self.tls, &port) {
            return Err(format!(
                "Ingress {}/{} has the same port of Service {} spoken to under TLS, by a BackendTLSPolicy for all",
                other.namespace, other.name, port.0.name
            ));
        }
        self.clear.entry(port).or_insert_with(|| of.clone());
        Ok(())
    }

    /// Has a port spoken to under TLS, or says why that is not possible.
    pub(crate) fn add(
        &mut self,
        port: Port,
        tls: &UpstreamTls,
        of: &ObjectKey,
    ) -> Result<(), String> {
        if !tls.verify || tls.authorities.is_empty() {
            return Err("a BackendTLSPolicy always verifies, and no authority is named".to_owned());
        }
        let is_name = |name: &&str| !name.is_empty() && !name.contains([':', '$', '/']);
        let Some(name) = tls.name.as_deref().filter(is_name) else {
            let why = "a BackendTLSPolicy verifies a host name, and proxy-ssl-name names none";
            return Err(why.to_owned());
        };
        if tls.identity.is_some() {
            let why = "the certificate that is shown to backends is the Gateway's, for all of them";
            return Err(why.to_owned());
        }
        if let Some(other) = known(&self.clear, &port) {
            return Err(format!(
                "Ingress {}/{} has the same port of Service {} spoken to in clear, and a BackendTLSPolicy is for all",
                other.namespace, other.name, port.0.name
            ));
        }
        let wanted = (name.to_ascii_lowercase(), tls.authorities.clone());
        let known = self
            .tls
            .entry(port)
            .or_insert_with(|| (wanted.0.clone(), wanted.1.clone(), of.clone()));
        let is_same = (&known.0, &known.1) == (&wanted.0, &wanted.1);
        let why = "another Ingress of the same Service asks for other names or authorities";
        is_same.then_some(()).ok_or_else(|| why.to_owned())
    }

    /// The objects.
    pub(crate) fn objects(self) -> Vec<Made> {
        let mut ports: BTreeMap<ObjectKey, usize> = BTreeMap::new();
        for (service, _) in self.tls.keys() {
            *ports.entry(service.clone()).or_default() += 1;
        }
        let mut taken = BTreeSet::new();
        let both = self.tls.into_iter().flat_map(|((service, port), wanted)| {
            let (hostname, authorities, of) = wanted;
            // The only policy of a Service is called by it alone.
            let of_port = port.as_ref().filter(|_| ports[&service] > 1);
            let of_port = of_port.map(|port| format!("-{port}")).unwrap_or_default();
            let mut name = format!("{}{of_port}-backend-tls", service.name);
            while !taken.insert((service.namespace.clone(), name.clone())) {
                name += "-2";
            }
            let mut target = json!({"group": "", "kind": "Service", "name": &*service.name});
            if let Some(port) = port {
                target["sectionName"] = json!(port);
            }
            let meta = json!({"name": name, "namespace": &*service.namespace});
            let pem: String = authorities.iter().map(|der| pem(der)).collect();
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": pem},
            });
            let policy = json!({
                "apiVersion": API, "kind": "BackendTLSPolicy", "metadata": meta,
                "spec": {
                    "targetRefs": [target],
                    "validation": {
                        "hostname": hostname,
                        "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": name}],
                    },
                },
            });
            [map, policy].map(|value| Made { value, of: Some(of.clone()) })
        });
        both.collect()
    }
}

fn pem(der: &[u8]) -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der), lines)
}
