//! CORS, header fields and mirrors as filters.

use model::policy::{Cors, Mirror, Origins};
use model::{Part, SetHeader, Template, Variable};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, json};

/// What the API server takes for methods.
const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"];

/// A CORS filter, or why there is none.
pub(crate) fn cors(cors: &Cors) -> Result<Value, String> {
    let origins = match &cors.origins {
        Origins::Any => vec!["*".to_owned()],
        Origins::Listed(origins) => {
            origins.iter().map(model::policy::AllowedOrigin::text).collect()
        }
    };
    let is_web = |origin: &String| origin.starts_with("http://") || origin.starts_with("https://");
    if let Some(odd) = origins.iter().find(|origin| *origin != "*" && !is_web(origin)) {
        return Err(format!("an origin begins with http:// or https://, and {odd} does not"));
    }
    if origins.is_empty() {
        return Err("none of the origins can be used".to_owned());
    }
    let items = |text: &str| -> Vec<String> {
        let items = text.split(',').map(|item| item.trim().to_owned());
        items.filter(|item| !item.is_empty()).collect()
    };
    if let Some(odd) = items(&cors.methods).iter().find(|one| !METHODS.contains(&one.as_str())) {
        return Err(format!("{odd} is no method that the API server takes"));
    }
    let mut filter = json!({"allowOrigins": origins});
    let lists = [
        ("allowMethods", items(&cors.methods)),
        ("allowHeaders", items(&cors.headers)),
        ("exposeHeaders", items(cors.expose.as_deref().unwrap_or_default())),
    ];
    for (field, list) in lists {
        if !list.is_empty() {
            filter[field] = json!(list);
        }
    }
    if cors.credentials {
        filter["allowCredentials"] = json!(true);
    }
    match i32::try_from(cors.max_age) {
        Ok(age) if age > 0 => filter["maxAge"] = json!(age),
        _ => return Err("cors-max-age is not between 1 and 2147483647".to_owned()),
    }
    Ok(json!({"type": "CORS", "cors": filter}))
}

/// Fields of answers; the names of those whose values cannot be said.
pub(crate) fn answer(fields: &[SetHeader], hsts: Option<&str>) -> (Option<Value>, Vec<String>) {
    let (mut set, mut unsaid) = (Vec::new(), Vec::new());
    let mut remove = Vec::new();
    set.extend(hsts.map(|value| json!({"name": "Strict-Transport-Security", "value": value})));
    for SetHeader { name, value } in fields {
        match value.literal() {
            Some("") => remove.push(name.clone()),
            Some(text) => set.push(json!({"name": name, "value": text})),
            None => unsaid.push(name.clone()),
        }
    }
    // A filter has 16 of each at most.
    unsaid.extend(set.split_off(set.len().min(16)).iter().map(|field| field["name"].to_string()));
    let mut changes = json!({});
    if !set.is_empty() {
        changes["set"] = json!(set);
    }
    if !remove.is_empty() {
        changes["remove"] = json!(remove);
    }
    let is_any = changes.as_object().is_some_and(|changes| !changes.is_empty());
    let filter = json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": changes});
    (is_any.then_some(filter), unsaid)
}

/// Fields of requests.
pub(crate) fn request(name: &str, value: &str) -> Value {
    let set = json!([{"name": name, "value": value}]);
    json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": set}})
}

/// Copies to a Service of the cluster that get the path of the request, or why there are none.
pub(crate) fn mirror(
    mirror: &Mirror,
    namespace: &str,
    snapshot: &Snapshot,
) -> Result<Value, String> {
    let outside =
        || "a RequestMirror names a Service of the cluster; make one for the target".to_owned();
    let is_path = |target: &Template| {
        target.parts().is_empty()
            || matches!(target.parts(), [Part::Variable(Variable::RequestUri)])
    };
    if !is_path(&mirror.url.target) {
        return Err("copies have the path of the request, and no other one".to_owned());
    }
    if mirror.url.secure {
        return Err("copies are sent in clear".to_owned());
    }
    let authority = mirror.url.authority.literal().ok_or_else(outside)?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let port: u16 = port.parse().map_err(|_| outside())?;
    let mut labels = host.split('.');
    let name = labels.next().unwrap_or_default();
    let of = labels.next().unwrap_or(namespace);
    if labels.next().is_some_and(|label| label != "svc") {
        return Err(outside());
    }
    if of != namespace {
        return Err("it is a Service of another namespace, which a ReferenceGrant there would have to allow".to_owned());
    }
    let key = ObjectKey::new(of, name);
    snapshot.services.get(&key).ok_or_else(outside)?;
    let reference = json!({"name": name, "port": port});
    Ok(json!({"type": "RequestMirror", "requestMirror": {"backendRef": reference}}))
}
