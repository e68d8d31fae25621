//! What annotations and ConfigMap keys name: Secrets, ConfigMaps, and the hosts of URLs.

use super::Settings;
use crate::aliases::service_named;
use crate::ingress::{Role, Target};
use crate::tenancy::{Item, remedy};
use crate::upstream::{NOT_OUTSIDE, is_dns_name, is_localhost, loopback};
use imbl::OrdMap;
use model::snippet::OtherRow;
use model::{Message, Outside, Part, Template, UpstreamId, Url, Variable, Why};
use objects::{ConfigMap, Malformed, ObjectKey, PortRef, Secret};
use std::net::IpAddr;
use std::sync::Arc;

impl<'a> Settings<'a> {
    /// The Secret that a value names: `namespace/name`, or a name in the namespace of who asks. The error completes a
    /// problem's sentence.
    pub(crate) fn secret(&self, reference: &str) -> Result<&'a Arc<Secret>, Message> {
        let key = self.named("Secret", reference, Item::Resources)?;
        let found = self.scope().secrets.get(&key);
        found.ok_or_else(|| {
            let wrong = no_secret(&key, self.scope().malformed);
            let why = (wrong == ABSENT).then_some(Why::Absent);
            Message::from(format!("Secret {} {wrong}", written(&key))).because(why)
        })
    }

    /// The ConfigMap that a value names, as [`Self::secret`].
    pub(crate) fn config_map(&mut self, reference: &str) -> Result<&'a Arc<ConfigMap>, Message> {
        self.config_map_allowed_by(Item::Resources, reference)
    }

    /// The same of an annotation that has an item of its own in `allow-cross-namespace`.
    pub(crate) fn config_map_allowed_by(
        &mut self,
        item: Item,
        reference: &str,
    ) -> Result<&'a Arc<ConfigMap>, Message> {
        let key = self.named("ConfigMap", reference, item)?;
        self.config_maps.insert(key.clone());
        let found = self.scope().config_maps.get(&key);
        found.ok_or_else(|| Why::Absent.says(format!("ConfigMap {} {ABSENT}", written(&key))))
    }

    fn named(&self, kind: &str, reference: &str, item: Item) -> Result<ObjectKey, Message> {
        let (namespace, name) =
            reference.split_once('/').unwrap_or((self.namespace().as_ref(), reference));
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(
                format!("{reference:?} does not name a {kind}: write namespace/name").into()
            );
        }
        let foreign = self.annotations.is_some() && namespace != &**self.namespace();
        let allowed = self.scope().cross_namespace;
        if foreign && !allowed.allows(Item::Resources) && !allowed.allows(item) {
            // What one key of the ConfigMap forbids either controller, and what ingress-nginx asked nobody for.
            let (why, how) = match item {
                Item::Resources => {
                    let how = "set allow-cross-namespace-resources in the ConfigMap";
                    (Why::NotAllowed, how.to_owned())
                }
                item => (Why::OtherNamespace, remedy(item)),
            };
            let message = format!("{kind} {reference} is in another namespace: move it, or {how}");
            return Err(why.says(message));
        }
        Ok(ObjectKey::new(namespace, name))
    }

    /// The upstream of a target that is not the backend of a path; from now on it is in the Configuration.
    pub(crate) fn upstream(&mut self, target: Target) -> UpstreamId {
        let id = target.id();
        self.targets.insert(target);
        id
    }

    /// Reads an `http` or `https` URL. A host that is a Service of the cluster leads to its endpoints
    /// (compat/decisions.md); one with variables is looked up for each request.
    pub(crate) fn url(&mut self, text: &str) -> Result<Url, Message> {
        let wrong = |why: &str| {
            Message::from(format!("{text:?} {why}: write a URL such as http://auth.demo.svc/check"))
        };
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => return Err(wrong("starts with neither http:// nor https://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let parsed =
            OtherRow::template(rest).map_err(|unknown| wrong(&format!("has the {unknown}")))?;
        let (authority, target) = split(&parsed);
        if authority.parts().is_empty() {
            return Err(wrong("has no host"));
        }
        let upstream = match authority.literal() {
            None if !may_be_host(&authority) => return Err(wrong("has a host that is no name")),
            None => None,
            Some(literal) => {
                let outside = self.scope().outside;
                let refuse = |why: String| match why.as_str() {
                    // It has a remedy of its own.
                    NOT_OUTSIDE => Why::TookIt.says(format!("{text:?} {why}")),
                    why => wrong(why),
                };
                let target = host_of(literal, secure, outside).map_err(refuse)?;
                Some(self.upstream(target))
            }
        };
        Ok(Url { secure, authority: authority.into(), target: target.into(), upstream })
    }
}

/// Entries at most of a ConfigMap whose values each request fills in.
pub(crate) const ENTRIES: usize = 256;

/// What is said of an object that somebody names and nobody made.
pub(crate) const ABSENT: &str = "does not exist: create it";

/// Why a Secret is not among the objects, and the remedy.
pub(crate) fn no_secret(
    key: &ObjectKey,
    malformed: &OrdMap<Arc<str>, Arc<Malformed>>,
) -> &'static str {
    if Malformed::is_among(malformed, objects::Kind::Secret, key) {
        "could not be read: mend it"
    } else {
        ABSENT
    }
}

fn written(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// Parts the authority from what follows it: a path, a query, or a variable that stands for one.
fn split(url: &Template) -> (Template, Template) {
    let is_path = |variable: &Variable| {
        matches!(variable, Variable::RequestUri | Variable::Uri | Variable::DocumentUri)
    };
    let mut authority = Vec::new();
    let mut target = Vec::new();
    for part in url.parts() {
        match part {
            _ if !target.is_empty() => target.push(part.clone()),
            Part::Text(text) => match text.find(['/', '?']) {
                Some(at) => {
                    authority.extend((at > 0).then(|| Part::Text(text[..at].to_owned())));
                    target.push(Part::Text(text[at..].to_owned()));
                }
                None => authority.push(part.clone()),
            },
            Part::Variable(variable) if is_path(variable) => target.push(part.clone()),
            Part::Variable(_) | Part::Capture(_) => authority.push(part.clone()),
        }
    }
    (Template::from_parts(authority), Template::from_parts(target))
}

/// Whether an authority with variables can become a host, with a port or without: what else it may be (`unix:/…`), an
/// engine could take for something else.
fn may_be_host(authority: &Template) -> bool {
    let parts = authority.parts().iter().map(|part| match part {
        Part::Text(text) => text,
        Part::Variable(_) | Part::Capture(_) => "1",
    });
    let text = parts.collect::<String>().to_ascii_lowercase();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (&*text, "1"),
    };
    let is_all = |text: &str, fits: fn(u8) -> bool| !text.is_empty() && text.bytes().all(fits);
    let is_name = is_all(host, |byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let six = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_six =
        six.is_some_and(|six| is_all(six, |byte| byte.is_ascii_hexdigit() || byte == b':'));
    (is_name || is_six) && is_all(port, |byte| byte.is_ascii_digit()) && !text.starts_with("unix:")
}

/// Who is behind `host` or `host:port`.
pub(crate) fn host_of(authority: &str, secure: bool, outside: &Outside) -> Result<Target, String> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = port.parse().ok().filter(|port| *port > 0);
            (host, port.ok_or("has a port that is none")?)
        }
        _ => (authority, if secure { 443 } else { 80 }),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if let Some(service) = service_named(&host) {
        return Ok(Target::Service { service, port: Some(PortRef::Number(port)), role: Role::Url });
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) if !outside.permits(address) => Err(NOT_OUTSIDE.to_owned()),
        Ok(_) => Ok(Target::Name { host: host.into(), port }),
        Err(_) if is_localhost(&host) => {
            let host = loopback(outside).ok_or(NOT_OUTSIDE)?;
            Ok(Target::Name { host: host.to_string().into(), port })
        }
        Err(_) if is_dns_name(&host) => Ok(Target::Name { host: host.into(), port }),
        Err(_) => Err("has a host that is no name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, Target, host_of, may_be_host, split};
    use model::{Outside, Template};
    use objects::{ObjectKey, PortRef};

    fn parts(text: &str) -> (String, String) {
        let (authority, target) = split(&Template::parse(text).expect("known variables"));
        (authority.to_string(), target.to_string())
    }

    #[test]
    fn the_authority_ends_where_a_path_begins() {
        let text = |authority: &str, target: &str| (authority.to_owned(), target.to_owned());
        assert_eq!(parts("a.test:80/x?y=$host"), text("a.test:80", "/x?y=${host}"));
        assert_eq!(parts("a.test$request_uri"), text("a.test", "${request_uri}"));
        assert_eq!(parts("$host/x"), text("${host}", "/x"));
        assert_eq!(parts("a.test?x"), text("a.test", "?x"));
        assert_eq!(parts("a.test"), text("a.test", ""));
    }

    #[test]
    fn an_authority_with_variables_is_a_host_or_nothing() {
        let may_be =
            |text: &str| may_be_host(&split(&Template::parse(text).expect("known variables")).0);
        for good in
            ["$host/x", "$arg_to:8080", "auth.$host:$server_port/", "a-$arg_b", "[::$arg_b]:80/"]
        {
            assert!(may_be(good), "{good}");
        }
        for bad in [
            "unix:$is_args/tmp/control.sock:/configuration",
            "UNIX:$arg_a",
            "$arg_a:80:80/",
            "$arg_a:http/",
            "user@$host/",
            "$arg_a$is_args&x/",
            "$host:/",
            "[$host/",
        ] {
            assert!(!may_be(bad), "{bad}");
        }
    }

    fn name(host: &str, port: u16) -> Result<Target, String> {
        Ok(Target::Name { host: host.into(), port })
    }

    #[test]
    fn services_of_the_cluster_are_told_from_other_hosts() {
        let host = |text, secure| host_of(text, secure, &Outside::default());
        let service = ObjectKey::new("demo", "auth");
        let target = Target::Service { service, port: Some(PortRef::Number(443)), role: Role::Url };
        assert_eq!(host("auth.demo.svc", true), Ok(target));
        assert_eq!(host("Auth.Example:8080", false), name("auth.example", 8080));
        assert_eq!(host("192.0.2.1", false), name("192.0.2.1", 80));
        assert_eq!(host("[2001:db8::1]:81", false), name("[2001:db8::1]", 81));
        for bad in
            ["127.0.0.1", "169.254.169.254", "localhost", "[::1]:80", "a..b", "a:0", "a:http", "-a"]
        {
            assert!(host(bad, false).is_err(), "{bad}");
        }
        let allowed = Outside::and(["127.0.0.0/8".parse().expect("a network")]);
        for name in ["localhost", "a.localhost."] {
            assert_eq!(host_of(name, false, &allowed), self::name("127.0.0.1", 80), "{name}");
        }
    }
}
