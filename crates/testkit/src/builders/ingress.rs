//! Ingresses.

use serde_json::{Value, json};

use super::{object, push};

/// An Ingress of class `nginx` without rules.
#[must_use]
pub fn ingress(name: &str) -> Ingress {
    let mut value = object("networking.k8s.io/v1", "Ingress", name);
    value["spec"] = json!({"ingressClassName": "nginx"});
    Ingress(value)
}

/// An Ingress on its way.
#[derive(Clone, Debug)]
pub struct Ingress(Value);

impl Ingress {
    /// The class.
    #[must_use]
    pub fn class(mut self, name: &str) -> Self {
        self.0["spec"]["ingressClassName"] = json!(name);
        self
    }

    /// One more host; paths that follow are its paths.
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        push(&mut self.0["spec"]["rules"], json!({"host": host}));
        self
    }

    /// One more path with everything below it, served by `service:port`.
    #[must_use]
    pub fn path(self, path: &str, backend: &str) -> Self {
        self.typed_path("Prefix", path, backend)
    }

    /// One more path alone.
    #[must_use]
    pub fn exact(self, path: &str, backend: &str) -> Self {
        self.typed_path("Exact", path, backend)
    }

    /// One more path of the given type; before any host it is for all hosts.
    #[must_use]
    pub fn typed_path(mut self, path_type: &str, path: &str, backend: &str) -> Self {
        let rules = &mut self.0["spec"]["rules"];
        if rules.is_null() {
            *rules = json!([{}]);
        }
        if let Some(rule) = rules.as_array_mut().and_then(|rules| rules.last_mut()) {
            let path =
                json!({"path": path, "pathType": path_type, "backend": self::backend(backend)});
            push(&mut rule["http"]["paths"], path);
        }
        self
    }

    /// What serves requests that no rule matches.
    #[must_use]
    pub fn default_backend(mut self, backend: &str) -> Self {
        self.0["spec"]["defaultBackend"] = self::backend(backend);
        self
    }

    /// A certificate for these hosts.
    #[must_use]
    pub fn tls(mut self, secret: &str, hosts: &[&str]) -> Self {
        push(&mut self.0["spec"]["tls"], json!({"secretName": secret, "hosts": hosts}));
        self
    }

    /// An annotation; a name without prefix gets that of ingress-nginx.
    #[must_use]
    pub fn annotate(mut self, key: &str, value: &str) -> Self {
        let key = if key.contains('/') {
            key.to_owned()
        } else {
            format!("nginx.ingress.kubernetes.io/{key}")
        };
        self.0["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// When it was created, as RFC 3339: older Ingresses win conflicts.
    #[must_use]
    pub fn created(mut self, time: &str) -> Self {
        self.0["metadata"]["creationTimestamp"] = json!(time);
        self
    }

    /// The object.
    #[must_use]
    pub fn build(self) -> Value {
        self.0
    }
}

/// `service:80` or `service:name`.
fn backend(text: &str) -> Value {
    let (name, port) = text.split_once(':').unwrap_or((text, "80"));
    let port = match port.parse::<u16>() {
        Ok(number) => json!({"number": number}),
        Err(_) => json!({"name": port}),
    };
    json!({"service": {"name": name, "port": port}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_belong_to_the_host_before_them() {
        let built = ingress("demo/web")
            .host("a.test")
            .path("/", "echo:80")
            .host("b.test")
            .exact("/x", "echo:http");
        let built = built.annotate("use-regex", "true").tls("tls-demo", &["a.test"]).build();
        let rules = &built["spec"]["rules"];
        assert_eq!(
            rules[0]["http"]["paths"][0]["backend"]["service"]["port"],
            json!({"number": 80})
        );
        assert_eq!(rules[1]["http"]["paths"][0]["pathType"], "Exact");
        assert_eq!(
            rules[1]["http"]["paths"][0]["backend"]["service"]["port"],
            json!({"name": "http"})
        );
        assert_eq!(
            built["metadata"]["annotations"]["nginx.ingress.kubernetes.io/use-regex"],
            "true"
        );
        assert_eq!(built["spec"]["tls"][0]["hosts"], json!(["a.test"]));
    }

    #[test]
    fn paths_without_a_host_are_for_all_hosts() {
        let built = ingress("web").path("/", "echo").build();
        assert_eq!(built["spec"]["rules"].as_array().map(Vec::len), Some(1));
        assert!(built["spec"]["rules"][0]["host"].is_null());
    }
}
