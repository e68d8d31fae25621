//! `backend-protocol` and `proxy-http-version`: how the upstream is spoken to.

use super::Family;
use crate::settings::{Key, Lines, Settings};
use model::policy::{HttpVersion, Policy, Protocol};

pub(super) const FAMILY: Family =
    Family { name: "protocol", keys: &[&PROTOCOL, &HTTP_VERSION], apply };

static PROTOCOL: Key<Protocol> = Key::annotation("backend-protocol", protocol).says(
    "HTTP, HTTPS, AUTO_HTTP, GRPC, GRPCS or FCGI",
    "HTTP",
    "How the upstream is spoken to: HTTP/1, HTTP/1 over TLS, either as the client does, HTTP/2 for gRPC, HTTP/2 over TLS, \
     FastCGI.",
);

static HTTP_VERSION: Key<HttpVersion> = Key::both("proxy-http-version", http_version).says(
    "1.0 or 1.1",
    "1.1",
    "HTTP version towards the upstream; 1.0 has neither keep-alive nor upgrades.",
);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    policy.http_version = settings.get_or(&HTTP_VERSION, policy.http_version);
    policy.protocol = settings.get_or(&PROTOCOL, policy.protocol);
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(protocol: Protocol, version: HttpVersion, lines: &mut Lines) {
    let word = match protocol {
        Protocol::Http => "HTTP",
        Protocol::Https => "HTTPS",
        Protocol::AutoHttp => "AUTO_HTTP",
        Protocol::Grpc => "GRPC",
        Protocol::Grpcs => "GRPCS",
        Protocol::Fcgi => "FCGI",
    };
    let who = "a GRPCRoute, appProtocol of the Service's port, or a BackendTLSPolicy";
    lines.add("protocol", word).by(&[&PROTOCOL]).of_route(who);
    let version = match version {
        HttpVersion::Http10 => "1.0",
        HttpVersion::Http11 => "1.1",
    };
    lines.add("http_version", version).by(&[&HTTP_VERSION]);
}

fn protocol(text: &str) -> Result<Protocol, String> {
    Ok(match text.to_ascii_uppercase().as_str() {
        "HTTP" => Protocol::Http,
        "HTTPS" => Protocol::Https,
        "AUTO_HTTP" => Protocol::AutoHttp,
        "GRPC" => Protocol::Grpc,
        "GRPCS" => Protocol::Grpcs,
        "FCGI" => Protocol::Fcgi,
        _ => {
            return Err(
                "is no protocol: write HTTP, HTTPS, AUTO_HTTP, GRPC, GRPCS or FCGI".to_owned()
            );
        }
    })
}

fn http_version(text: &str) -> Result<HttpVersion, String> {
    match text {
        "1.0" => Ok(HttpVersion::Http10),
        "1.1" => Ok(HttpVersion::Http11),
        _ => Err("is neither 1.0 nor 1.1".to_owned()),
    }
}
