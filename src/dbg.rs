//! `fairway dbg`, in the image `/dbg`: what the Fairway of this container serves, for people and for the kubectl plugin
//! of ingress-nginx, which runs it there.

use crate::admin_port;
use crate::flags::{Backends, Certs, Dbg, What};
use crate::say;
use anyhow::{Context, Result, bail, ensure};
use model::Printable;
use serde_json::Value;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

/// Asks, and prints.
pub(crate) fn run(flags: &Dbg) -> Result<()> {
    let served =
        || -> Result<Value> { Ok(serde_json::from_str(&ask(port(flags), "/configuration")?)?) };
    match &flags.what {
        What::Backends(Backends::All) => show(&Value::from(upstreams(&served()?))),
        What::Backends(Backends::List) => {
            for upstream in upstreams(&served()?) {
                say::line(text(&upstream["id"]))?;
            }
            Ok(())
        }
        What::Backends(Backends::Get { name }) => {
            let mut all = upstreams(&served()?).into_iter();
            let one = all.find(|upstream| text(&upstream["id"]) == name);
            show(&one.with_context(|| {
                format!("there is no backend {name}; `backends list` names all")
            })?)
        }
        What::Certs(Certs::Get { host }) => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_*".contains(&byte);
            ensure!(host.bytes().all(is_name), "{host} is no host");
            say::text(ask(port(flags), &format!("/certificate?{host}"))?)
        }
        What::General => show(&served()?["global"]),
        What::Conf => say::text(routes(&served()?)),
    }
}

fn show(value: &Value) -> Result<()> {
    say::json(&serde_json::to_string_pretty(value)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The upstreams, each with its name as programs for ingress-nginx look for it.
fn upstreams(served: &Value) -> Vec<Value> {
    let all = served["upstreams"].as_object().into_iter().flatten();
    let named = all.map(|(name, upstream)| {
        let mut upstream = upstream.clone();
        upstream["name"] = name.as_str().into();
        upstream["id"] = name.as_str().into();
        upstream
    });
    named.collect()
}

/// The hosts between the marks by which the plugin of ingress-nginx finds the one it is asked for.
fn routes(served: &Value) -> String {
    let mut page = String::new();
    let mut line = |line: String| page.extend([Printable(&line).to_string(), "\n".to_owned()]);
    for (name, server) in served["servers"].as_object().into_iter().flatten() {
        line(format!("## start server {name}"));
        let names: Vec<String> = items(&server["aliases"]).map(short).collect();
        if !names.is_empty() {
            line(format!("also called      {}", names.join(", ")));
        }
        for (what, value) in
            [("certificate", &server["certificate"]), ("passthrough to", &server["passthrough"])]
        {
            if !value.is_null() {
                line(format!("{what:<16} {}", short(value)));
            }
        }
        // Without the authorities of its clients nobody gets in, whoever is behind it.
        let closed = server["client_certificate"]["Closed"].as_str();
        let closed = closed.map(|reason| format!("Denied {reason} (403)"));
        for location in items(&server["locations"]) {
            let origin = &location["origin"];
            let owner = if origin.is_null() {
                "nobody's".to_owned()
            } else {
                format!("Ingress {}/{}", text(&origin["namespace"]), text(&origin["name"]))
            };
            let kind = text(&location["kind"]);
            let path = text(&location["path"]);
            let backend = closed.clone().unwrap_or_else(|| short(&location["backend"]));
            line(format!("{kind:<16} {path}  ->  {backend}  ({owner})"));
        }
        line(format!("## end server {name}"));
        line(String::new());
    }
    page
}

/// A value in few words.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.len() == 1 => {
            fields.iter().map(|(name, value)| format!("{name} {}", short(value))).collect()
        }
        Value::Object(fields) => {
            let parts = fields.values().filter(|value| !value.is_null()).map(short);
            parts.collect::<Vec<_>>().join("/")
        }
        other => other.to_string(),
    }
}

/// A page of the admin port of this machine.
fn port(flags: &Dbg) -> u16 {
    flags.healthz_port.unwrap_or_else(admin_port::here)
}

fn ask(port: u16, page: &str) -> Result<String> {
    match get(port, page)? {
        (200, body) => Ok(body),
        (_, body) => bail!("{}", body.trim()),
    }
}

/// The same with its status.
pub(crate) fn get(port: u16, page: &str) -> Result<(u16, String)> {
    let attempt = || {
        format!(
            "cannot ask the Fairway of this machine on port {port} (--healthz-port; of one in a Pod, `kubectl port-forward` \
             brings it here)"
        )
    };
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).with_context(attempt)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // The version that ends an answer by closing the connection.
    write!(stream, "GET {page} HTTP/1.0\r\nHost: localhost\r\n\r\n").with_context(attempt)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(attempt)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("that was no HTTP")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.context("that was no HTTP")?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::routes;
    use serde_json::json;

    #[test]
    fn paths_of_a_host_without_the_authorities_of_its_clients_are_shown_as_denied_and_why() {
        let upstream = json!({"Upstream": "shop-web-80"});
        let origin = json!({"namespace": "shop", "name": "web"});
        let location =
            json!({"kind": "Prefix", "path": "/", "backend": upstream, "origin": origin});
        let page = |clients: serde_json::Value| {
            let server = json!({"locations": [location], "client_certificate": clients});
            routes(&json!({"servers": {"shop.test": server}}))
        };
        let closed = page(json!({"Closed": "auth-tls-secret: Secret shop/ca does not exist"}));
        let told = "/  ->  Denied auth-tls-secret: Secret shop/ca does not exist (403)  (Ingress shop/web)";
        assert!(closed.contains(told), "{closed}");
        for clients in [json!(null), json!({"Verified": {"secret": "shop/ca"}})] {
            let open = page(clients);
            assert!(open.contains("/  ->  Upstream shop-web-80  (Ingress shop/web)"), "{open}");
        }
    }
}
