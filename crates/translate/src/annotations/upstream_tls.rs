//! `proxy-ssl-*`: TLS towards the upstream.

use super::Family;
use crate::certificate::{self, Trust};
use crate::settings::{Key, Lines, OnBad, Risk, Settings, on_off, parse};
use model::policy::{Policy, Protocol, SubjectName, UpstreamTls};
use model::{Message, Severity, TlsSettings, TlsVersion};
use std::collections::BTreeSet;

pub(super) const FAMILY: Family = Family {
    name: "upstream_tls",
    keys: &[&SECRET, &VERIFY, &DEPTH, &NAME, &SERVER_NAME, &PROTOCOLS, &CIPHERS],
    apply,
};

static SECRET: Key<String> = Key::annotation("proxy-ssl-secret", reference)
    .says(
        "namespace/name",
        "none",
        "Secret with the certificate shown to the upstream (tls.crt, tls.key) and the authorities that its certificate must \
         descend from (ca.crt). The other proxy-ssl annotations count only beside it.",
    )
    .risk(Risk::Medium)
    .on_bad(OnBad::Reject);

static VERIFY: Key<bool> = Key::annotation("proxy-ssl-verify", parse::on_off).says(
    "on or off",
    "off",
    "The upstream's certificate is verified against ca.crt of the Secret.",
);

static DEPTH: Key<u32> = Key::annotation("proxy-ssl-verify-depth", parse::count).number(
    "number",
    "1",
    "Certificates at most between the upstream's one and the authority; 0 is the default.",
);

static NAME: Key<String> = Key::annotation("proxy-ssl-name", name)
    .says(
        "host name",
        "the name of the upstream",
        "The name that the upstream's certificate must have.",
    )
    .risk(Risk::High);

static SERVER_NAME: Key<bool> = Key::annotation("proxy-ssl-server-name", parse::on_off).says(
    "on or off",
    "off",
    "The name is sent as SNI.",
);

static PROTOCOLS: Key<BTreeSet<TlsVersion>> = Key::annotation("proxy-ssl-protocols", protocols)
    .says("words: TLSv1.2, TLSv1.3", "TLSv1.2", "TLS versions towards the upstream.");

static CIPHERS: Key<Vec<String>> = Key::annotation("proxy-ssl-ciphers", ciphers)
    .says(
        "OpenSSL names, colon separated",
        "all that there are",
        "Cipher suites of TLS 1.2 towards the upstream in order of preference; those of ssl-ciphers in the ConfigMap \
         exist, others are left out.",
    )
    .risk(Risk::Medium);

/// Bytes of a host name at most (RFC 1035 section 2.3.4).
const LONGEST_NAME: usize = 255;

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let Some(reference) = settings.get(&SECRET) else { return };
    let name = settings.get(&NAME);
    let server_name = settings.get_or(&SERVER_NAME, false);
    let verify = settings.get_or(&VERIFY, false);
    let versions = settings.get(&PROTOCOLS);
    let depth = settings.get_or(&DEPTH, 0);
    let ciphers = settings.get(&CIPHERS);
    let (authorities, identity) = match trust(settings, &reference) {
        Ok(found) => found,
        Err(reason) => return settings.deny(SECRET.about.name, reason),
    };
    if policy.protocol == Protocol::Grpcs {
        // As recorded: nginx has other directives for gRPC, which ingress-nginx never sets.
        let message = "has no effect with backend-protocol GRPCS, whose upstreams are not verified"
            .to_owned();
        return settings.note(SECRET.about.name, Severity::Warning, message);
    }
    let mut tls = UpstreamTls { name, server_name, ..UpstreamTls::default() };
    if !authorities.is_empty() {
        tls.verify = verify;
        tls.depth = depth;
        tls.ciphers = known(settings, ciphers.unwrap_or_default());
        tls.versions = versions.unwrap_or_else(|| BTreeSet::from([TlsVersion::Tls12]));
        tls.identity = identity;
        tls.authorities = authorities.into();
    } else if verify {
        // Nothing to verify against: better no answer than a stranger's.
        let reason = format!(
            "Secret {reference} has no ca.crt to verify the upstream's certificate against: add it"
        );
        return settings.deny(VERIFY.about.name, &reason);
    }
    policy.upstream_tls = tls;
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(tls: &UpstreamTls, lines: &mut Lines) {
    let UpstreamTls {
        authorities,
        verify,
        name,
        system,
        names,
        server_name,
        identity,
        depth,
        versions,
        ciphers,
    } = tls;
    let names: Vec<&str> = names
        .iter()
        .map(|name| match name {
            SubjectName::Dns(name) | SubjectName::Uri(name) => name.as_str(),
        })
        .collect();
    let versions: Vec<&str> = versions
        .iter()
        .map(|version| match version {
            TlsVersion::Tls12 => "TLSv1.2",
            TlsVersion::Tls13 => "TLSv1.3",
        })
        .collect();
    let authorities = match authorities.len() {
        0 => "none".to_owned(),
        number => format!("{number} of the Secret"),
    };
    let identity = identity.as_ref().map(|_| "that of the Secret");
    let (policy, first) = ("BackendTLSPolicy", lines.0.len());
    lines.add("upstream_tls.authorities", authorities).by(&[&SECRET]).of_route(policy);
    lines.add("upstream_tls.system", system).of_route(policy);
    lines.add("upstream_tls.verify", on_off(*verify)).by(&[&VERIFY]).of_route(policy);
    lines.add("upstream_tls.depth", depth).by(&[&DEPTH]);
    lines.add("upstream_tls.name", name).by(&[&NAME]).of_route(policy);
    lines.add("upstream_tls.names", names).of_route(policy);
    lines
        .add("upstream_tls.server_name", on_off(*server_name))
        .by(&[&SERVER_NAME])
        .of_route(policy);
    lines
        .add("upstream_tls.identity", identity)
        .by(&[&SECRET])
        .of_route("tls.backend of the Gateway");
    lines.add("upstream_tls.versions", versions.join(" ")).by(&[&SECRET, &PROTOCOLS]);
    lines.add("upstream_tls.ciphers", ciphers.join(":")).by(&[&CIPHERS]);
    lines.0.iter_mut().skip(first).for_each(|line| line.of_host = true);
}

fn trust(settings: &Settings<'_>, reference: &str) -> Result<Trust, Message> {
    if !reference.contains('/') {
        return Err(format!("{reference:?} does not name a Secret: write namespace/name").into());
    }
    let secret = settings.secret(reference)?;
    certificate::trust(secret).map_err(|wrong| wrong.within(format!("Secret {reference} {wrong}")))
}

/// The suites that exist. Keywords and exclusions speak of suites that do not.
fn known(settings: &mut Settings<'_>, names: Vec<String>) -> Vec<String> {
    let all = TlsSettings::default().ciphers;
    let (known, other): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| all.contains(name));
    let other: Vec<String> = other
        .into_iter()
        .filter(|name| name != "DEFAULT" && !name.starts_with(['!', '-']))
        .collect();
    if !other.is_empty() {
        let rest = if known.is_empty() { "all that exist are used" } else { "they are left out" };
        let message = format!("{} are no suites that exist here; {rest}", other.join(", "));
        settings.note(CIPHERS.about.name, Severity::Warning, message);
    }
    known
}

fn ciphers(text: &str) -> Result<Vec<String>, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "+:_-!".contains(c);
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if plain.chars().all(valid) {
        return Ok(plain.split(':').filter(|name| !name.is_empty()).map(str::to_owned).collect());
    }
    Err("is no list of cipher suites: write OpenSSL names, colon separated".to_owned())
}

fn reference(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._~/:".contains(c);
    if text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("is not the name of a Secret: write namespace/name".to_owned())
}

fn name(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if text.len() <= LONGEST_NAME && text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("is not a host name: write one such as echo.example".to_owned())
}

fn protocols(text: &str) -> Result<BTreeSet<TlsVersion>, String> {
    let version = |word: &str| match word {
        "TLSv1.2" => Ok(TlsVersion::Tls12),
        "TLSv1.3" => Ok(TlsVersion::Tls13),
        _ => Err(format!(
            "has the word \"{word}\": write TLSv1.2, TLSv1.3 or both, separated by a space"
        )),
    };
    text.split_ascii_whitespace().map(version).collect()
}
