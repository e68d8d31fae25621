//! `proxy_ssl_…` and `grpc_ssl_…`: TLS towards the upstream, as the policy that the engine knows.

use model::policy::{Protocol, UpstreamTls};
use model::snippet::{Piece, Settings, Template, UpstreamTls as Said};
use model::{Backend, Location, Server, TlsSettings, TlsVersion, Variable};
use std::sync::Arc;

/// Makes settings count in the policy of a location. Who asks for a good certificate gets one, whatever else is said.
pub(super) fn lower(location: &mut Arc<Location>, settings: &Settings, server: &Server) {
    let said = match location.policy.protocol {
        Protocol::Grpc | Protocol::Grpcs => &settings.grpc.tls,
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => &settings.proxy.tls,
        Protocol::Fcgi => return,
    };
    if *said == Said::default() {
        return;
    }
    let mut new = Location::clone(location);
    let name = said.name.as_ref().and_then(|name| known(name, location, server));
    let tls = &mut Arc::make_mut(&mut new.policy).upstream_tls;
    let possible = obey(tls, said, name);
    if !possible {
        new.backend = Backend::Denied("no version of TLS that there is may be spoken".to_owned());
        new.canary = None;
    }
    *location = Arc::new(new);
}

/// Whether any version is left.
fn obey(tls: &mut UpstreamTls, said: &Said, name: Option<String>) -> bool {
    tls.verify |= said.verify.unwrap_or(false);
    tls.server_name = said.server_name.unwrap_or(tls.server_name);
    tls.depth = said.verify_depth.unwrap_or(tls.depth);
    if name.is_some() {
        tls.name = name;
    }
    if let Some(suites) = &said.ciphers {
        // Words such as HIGH or !aNULL mean what every suite is that there is.
        let there_are = TlsSettings::default().ciphers;
        let names = suites.split([':', ' ', ',']).map(str::to_owned);
        tls.ciphers = names.filter(|name| there_are.contains(name)).collect();
    }
    let Some(versions) = &said.protocols else { return true };
    let version = |name: &String| match name.as_str() {
        "TLSv1.2" => Some(TlsVersion::Tls12),
        "TLSv1.3" => Some(TlsVersion::Tls13),
        _ => None,
    };
    tls.versions = versions.iter().filter_map(version).collect();
    !tls.versions.is_empty()
}

/// The name, where it is the same for every request.
fn known(name: &Template, location: &Location, server: &Server) -> Option<String> {
    let piece = |piece: &Piece| {
        let service = location.service.as_deref();
        match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Known(Variable::Host | Variable::ServerName | Variable::BestHttpHost) => {
                let own = server.name.as_str();
                let alone = server.aliases.is_empty() && !own.contains('*') && own != "_";
                alone.then(|| own.to_owned())
            }
            Piece::Known(Variable::ProxyHost) => Some("upstream_balancer".to_owned()),
            Piece::Known(Variable::ServiceName) => service.map(|service| service.name.to_string()),
            Piece::Known(Variable::Namespace) => {
                let own = location.origin.as_deref().map(|origin| origin.namespace.to_string());
                own.or_else(|| service.map(|service| service.namespace.to_string()))
            }
            Piece::Known(_) | Piece::Other(_) | Piece::Own(_) | Piece::Capture(_) => None,
        }
    };
    name.pieces.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::lower;
    use crate::snippet::fixture::location as scope;
    use model::policy::{Policy, Protocol, UpstreamTls};
    use model::{Backend, Location, PathKind, Server, ServerName, ServiceRef, TlsVersion};
    use std::sync::Arc;

    fn lowered(text: &str, protocol: Protocol, upstream_tls: UpstreamTls) -> Arc<Location> {
        let service = ServiceRef { namespace: "n".into(), name: "s".into(), port: "80".into() };
        let mut location = Arc::new(Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::NotFound,
            canary: None,
            service: Some(service.into()),
            origin: None,
            policy: Arc::new(Policy { protocol, upstream_tls, ..Policy::default() }),
        });
        let server = Server::new(ServerName::new("a.test"));
        lower(&mut location, &scope(text).settings, &server);
        location
    }

    #[test]
    fn names_and_versions_count_where_the_protocol_is_spoken() {
        let text =
            "proxy_ssl_server_name on; proxy_ssl_name $host; proxy_ssl_protocols TLSv1.1 TLSv1.3;
            proxy_ssl_ciphers HIGH:ECDHE-RSA-AES128-GCM-SHA256:!aNULL; proxy_ssl_verify_depth 3;";
        let location = lowered(text, Protocol::Https, UpstreamTls::default());
        let tls = &location.policy.upstream_tls;
        assert!(tls.server_name && !tls.verify && tls.depth == 3);
        assert_eq!(tls.name.as_deref(), Some("a.test"));
        assert_eq!(tls.versions, [TlsVersion::Tls13].into());
        assert_eq!(tls.ciphers, ["ECDHE-RSA-AES128-GCM-SHA256"]);
        let other = lowered(text, Protocol::Grpcs, UpstreamTls::default());
        assert_eq!(other.policy.upstream_tls, UpstreamTls::default());
        let name = "grpc_ssl_name $service_name.$namespace.svc; grpc_ssl_server_name on;";
        let grpc = lowered(name, Protocol::Grpcs, UpstreamTls::default());
        assert_eq!(grpc.policy.upstream_tls.name.as_deref(), Some("s.n.svc"));
    }

    #[test]
    fn nothing_opens_what_is_verified_and_what_is_impossible_is_closed() {
        let verified = UpstreamTls { verify: true, ..UpstreamTls::default() };
        let location = lowered("proxy_ssl_verify off;", Protocol::Https, verified);
        assert!(location.policy.upstream_tls.verify);
        let location = lowered("proxy_ssl_verify on;", Protocol::Https, UpstreamTls::default());
        assert!(location.policy.upstream_tls.verify);
        let text = "proxy_ssl_protocols TLSv1.2;";
        let mut location = lowered("", Protocol::Https, UpstreamTls::default());
        let mut settings = scope(text).settings;
        settings.proxy.tls.protocols = Some(vec!["TLSv1".to_owned()]);
        lower(&mut location, &settings, &Server::new(ServerName::new("a.test")));
        assert!(matches!(location.backend, Backend::Denied(_)));
    }
}
