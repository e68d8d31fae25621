//! BackendTLSPolicies for backends that are spoken to under TLS, with the authorities in ConfigMaps.

use crate::made::{API, Made};
use model::ServiceRef;
use model::policy::UpstreamTls;
use objects::ObjectKey;
use pem::{EncodeConfig, LineEnding, Pem};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The policies, by Service: two Ingresses of one Service have to agree.
#[derive(Debug, Default)]
pub(crate) struct Policies(BTreeMap<ObjectKey, Wanted>);

/// The name and the authorities of a Service, and the Ingress that asks for them first.
type Wanted = (String, Arc<[Arc<[u8]>]>, ObjectKey);

impl Policies {
    /// Has a Service spoken to under TLS, or says why that is not possible.
    pub(crate) fn add(
        &mut self,
        service: &ServiceRef,
        tls: &UpstreamTls,
        of: &ObjectKey,
    ) -> Result<(), &'static str> {
        if !tls.verify || tls.authorities.is_empty() {
            return Err("a BackendTLSPolicy always verifies, and no authority is named");
        }
        let is_name = |name: &&str| !name.is_empty() && !name.contains([':', '$', '/']);
        let Some(name) = tls.name.as_deref().filter(is_name) else {
            return Err("a BackendTLSPolicy verifies a host name, and proxy-ssl-name names none");
        };
        if tls.identity.is_some() {
            return Err(
                "the certificate that is shown to backends is the Gateway's, for all of them",
            );
        }
        let key = ObjectKey::new(service.namespace.clone(), service.name.clone());
        let wanted = (name.to_ascii_lowercase(), tls.authorities.clone());
        let known =
            self.0.entry(key).or_insert_with(|| (wanted.0.clone(), wanted.1.clone(), of.clone()));
        let is_same = (&known.0, &known.1) == (&wanted.0, &wanted.1);
        is_same
            .then_some(())
            .ok_or("another Ingress of the same Service asks for other names or authorities")
    }

    /// The objects.
    pub(crate) fn objects(self) -> Vec<Made> {
        let both = self.0.into_iter().flat_map(|(service, (hostname, authorities, of))| {
            let name = format!("{}-backend-tls", service.name);
            let meta = json!({"name": name, "namespace": &*service.namespace});
            let pem: String = authorities.iter().map(|der| pem(der)).collect();
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": pem},
            });
            let policy = json!({
                "apiVersion": API, "kind": "BackendTLSPolicy", "metadata": meta,
                "spec": {
                    "targetRefs": [{"group": "", "kind": "Service", "name": &*service.name}],
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
