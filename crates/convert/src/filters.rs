//! CORS, header fields and mirrors as filters.

use model::policy::{Cors, Mirror, Origins};
use model::{Part, SetHeader, Template, Variable};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, json};

/// What the API server takes for methods.
const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"];

/// Origins, and fields, of a CORS filter.
const MOST: usize = 64;

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
    let distinct = |list: Vec<String>| {
        let mut told = std::collections::BTreeSet::new();
        let list = list.into_iter().filter(|item| told.insert(item.clone()));
        list.collect::<Vec<String>>()
    };
    if let Some(odd) = items(&cors.methods).iter().find(|one| !METHODS.contains(&one.as_str())) {
        return Err(format!("{odd} is no method that the API server takes"));
    }
    let origins = distinct(origins);
    let mut filter = json!({"allowOrigins": origins});
    let lists = [
        ("allowMethods", items(&cors.methods)),
        ("allowHeaders", items(&cors.headers)),
        ("exposeHeaders", items(cors.expose.as_deref().unwrap_or_default())),
    ];
    if origins.len() > MOST {
        return Err(format!("a filter has {MOST} origins at most"));
    }
    for (field, list) in lists {
        let list = distinct(list);
        if list.len() > MOST {
            return Err(format!("a filter has {MOST} fields at most"));
        }
        let is_any = list.iter().any(|item| item == "*");
        if is_any && list.len() > 1 && field != "exposeHeaders" {
            return Err("a filter has a star, or names beside none".to_owned());
        }
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

/// Fields of answers, of each kind so many at most; the names of those that cannot be said.
pub(crate) fn answer(fields: &[SetHeader], most: usize) -> (Option<Value>, Vec<String>) {
    let (mut set, mut unsaid): (Vec<Value>, _) = (Vec::new(), Vec::new());
    let mut remove: Vec<String> = Vec::new();
    for SetHeader { name, value } in fields {
        // Of two of one name the last one counts.
        set.retain(|field| !is_named(&field["name"], name));
        remove.retain(|field| !field.eq_ignore_ascii_case(name));
        match value.literal() {
            Some("") => remove.push(name.clone()),
            Some(text) => set.push(json!({"name": name, "value": text})),
            None => unsaid.push(name.clone()),
        }
    }
    unsaid.extend(set.split_off(set.len().min(most)).iter().map(|field| field["name"].to_string()));
    unsaid.extend(remove.split_off(remove.len().min(most)));
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

/// Whether it is the name of a field, whatever its letters.
fn is_named(field: &Value, name: &str) -> bool {
    field.as_str().is_some_and(|field| field.eq_ignore_ascii_case(name))
}

/// Adds a field to what a filter of answers sets, unless it says something of that itself, which counts.
pub(crate) fn also_set(filter: &mut Value, name: &str, value: &str) {
    let changes = &mut filter["responseHeaderModifier"];
    let set = changes["set"].as_array().into_iter().flatten().map(|field| &field["name"]);
    let removed = changes["remove"].as_array().into_iter().flatten();
    if set.chain(removed).any(|field| is_named(field, name)) {
        return;
    }
    let field = json!({"name": name, "value": value});
    match changes["set"].as_array_mut() {
        Some(set) => set.push(field),
        None => changes["set"] = json!([field]),
    }
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
