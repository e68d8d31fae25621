//! `auth-tls-*`: certificates of clients, decided for the whole host.

use super::Family;
use crate::certificate;
use crate::settings::{Key, Lines, OnBad, Risk, Settings, parse};
use model::policy::{ClientCertificate, ClientDemand, ClientErrorPage, ClientVerification, Policy};
use model::{Message, Pattern, Severity};
use std::sync::Arc;

pub(super) const FAMILY: Family = Family {
    name: "client_certificate",
    keys: &[&SECRET, &DEMAND, &DEPTH, &ERROR_PAGE, &SUBJECT, &PASS],
    apply,
};

static SECRET: Key<String> = Key::annotation("auth-tls-secret", reference)
    .says(
        "namespace/name",
        "none",
        "Secret with the authorities (ca.crt) that certificates of clients must descend from, and perhaps their \
         revocation lists (ca.crl). It counts for the whole host, which answers 403 while the Secret cannot be used. \
         The other auth-tls annotations count only beside it.",
    )
    .risk(Risk::Medium)
    .on_bad(OnBad::Reject);

static DEMAND: Key<ClientDemand> = Key::annotation("auth-tls-verify-client", demand)
    .says(
        "on, off, optional or optional_no_ca",
        "on",
        "Whether a client must show a certificate (on), may (optional), may show one of an unknown authority, too \
         (optional_no_ca), or is not asked (off). Unless off, what is refused gets 400.",
    )
    .risk(Risk::Medium);

static DEPTH: Key<u32> = Key::annotation("auth-tls-verify-depth", parse::count).number(
    "number",
    "1",
    "Intermediate certificates between that of the client and a root, at most; 0 means 1.",
);

static ERROR_PAGE: Key<ClientErrorPage> = Key::annotation("auth-tls-error-page", error_page)
    .may_be_blank()
    .says(
        "URL",
        "none",
        "Where clients without a good certificate are redirected to, instead of 400. A path of the host itself is as \
         closed to them as all others: 403.",
    )
    .risk(Risk::High)
    .on_bad(OnBad::Reject);

static SUBJECT: Key<Pattern> = Key::annotation("auth-tls-match-cn", subject)
    .says(
        "CN= and a regular expression",
        "none",
        "Must be found in the subject of the client's certificate as RFC 2253 writes it, else 403.",
    )
    .risk(Risk::High)
    .on_bad(OnBad::Reject);

static PASS: Key<bool> = Key::annotation("auth-tls-pass-certificate-to-upstream", parse::boolean)
    .switch(
        false,
        "The upstream gets the certificate of the client in ssl-client-cert: PEM, percent-encoded.",
    )
    .on_bad(OnBad::Reject);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let Some(reference) = settings.get(&SECRET) else { return without_authorities(settings) };
    let demand = settings.get_or(&DEMAND, ClientDemand::Required);
    let depth = settings.get_or(&DEPTH, 1).max(1);
    let error_page = settings.get_or(&ERROR_PAGE, ClientErrorPage::Plain);
    let subject = settings.get(&SUBJECT);
    let pass_certificate = settings.get_or(&PASS, false);
    let trusted = match authorities(settings, &reference) {
        Ok(found) => found,
        Err(reason) => {
            let message = format!("{reason}; what it guards is closed until it is mended");
            settings.note(SECRET.about.name, Severity::Error, reason.within(message));
            let reason = format!("{}: {reason}", SECRET.about.name);
            policy.client_certificate = Some(ClientCertificate::Closed(reason));
            return;
        }
    };
    if demand != ClientDemand::Off {
        note_idle(settings, &reference, &trusted);
    }
    if let Some(why) = match error_page {
        ClientErrorPage::Forbidden => Some(
            "is a path of the host, which is closed to clients without a good certificate: they get 403",
        ),
        ClientErrorPage::Missing => {
            Some("names a location that does not exist: clients without a good certificate get 500")
        }
        ClientErrorPage::Plain | ClientErrorPage::Redirect(_) => None,
    } {
        let message = format!("{why}; write the address of a page on another host");
        settings.note(ERROR_PAGE.about.name, Severity::Warning, message);
    }
    policy.client_certificate = Some(ClientCertificate::Verified(Arc::new(ClientVerification {
        secret: reference,
        authorities: trusted.certificates,
        revocations: trusted.lists,
        demand,
        depth,
        subject,
        error_page,
        pass_certificate,
    })));
}

/// Says which certificates of the Secret let nobody in.
fn note_idle(settings: &mut Settings<'_>, reference: &str, trusted: &certificate::Authorities) {
    const NEEDED: &str = "CA:TRUE in its basicConstraints, keyCertSign where it has a keyUsage, clientAuth where it has an \
        extendedKeyUsage";
    let mut note = |message: String| {
        let message = format!("Secret {reference} has {message}");
        settings.note(SECRET.about.name, Severity::Warning, message);
    };
    if let Some(why) = trusted.unseen {
        note(format!("a certificate in ca.crt that does not count: {why}"));
    }
    match &trusted.idle {
        _ if !trusted.may_sign => note(format!(
            "no authority in ca.crt ({NEEDED}): put the certificate that signs those of clients there"
        )),
        Some((number, first)) => note(format!(
            "certificates in ca.crt that may sign none of clients ({number}, the first is {first}): what they have signed \
             gets 400; renew them ({NEEDED}), or leave those alone there that clients show themselves"
        )),
        None => {}
    }
}

/// Says what guards nothing, since nobody is asked for a certificate.
fn without_authorities(settings: &mut Settings<'_>) {
    let text = |name: &str| settings.raw(name).filter(|text| !text.is_empty());
    if text(SECRET.about.name).is_some() {
        // It is told what is wrong with it.
        return;
    }
    let asks = text(DEMAND.about.name).is_some_and(|demand| demand != "off");
    let demand = asks.then_some(DEMAND.about.name);
    let subject = text(SUBJECT.about.name).map(|_| SUBJECT.about.name);
    for name in demand.into_iter().chain(subject) {
        let message = "has no effect without auth-tls-secret, this Ingress asks nobody for a certificate: name the Secret with \
                       the authorities there";
        settings.note(name, Severity::Warning, message.to_owned());
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(asked: Option<&ClientCertificate>, lines: &mut Lines) {
    let ClientVerification {
        secret,
        authorities,
        revocations,
        demand,
        depth,
        subject,
        error_page,
        pass_certificate,
    } = match asked {
        None => return,
        Some(ClientCertificate::Closed(why)) => {
            lines.add("client_certificate", format!("closed: {why}")).by(&[&SECRET]).of_host();
            return;
        }
        Some(ClientCertificate::Verified(verification)) => &**verification,
    };
    let demand = match demand {
        ClientDemand::Required => "on",
        ClientDemand::Off => "off",
        ClientDemand::Optional => "optional",
        ClientDemand::OptionalUnknown => "optional_no_ca",
    };
    let page = match error_page {
        ClientErrorPage::Plain => "400",
        ClientErrorPage::Redirect(to) => to,
        ClientErrorPage::Forbidden => "403",
        ClientErrorPage::Missing => "500",
    };
    let (trusted, revoked) = (authorities.len(), revocations.len());
    let secret = format!("{secret}: {trusted} authorities, {revoked} revocation lists");
    lines.add("client_certificate.secret", secret).by(&[&SECRET]).of_host();
    lines.add("client_certificate.demand", demand).by(&[&DEMAND]).by(&[&SECRET]).of_host();
    lines.add("client_certificate.depth", depth).by(&[&DEPTH]).of_host();
    lines.add("client_certificate.subject", subject).by(&[&SUBJECT]).of_host();
    lines.add("client_certificate.error_page", page).by(&[&ERROR_PAGE]).of_host();
    lines.add("client_certificate.pass_certificate", pass_certificate).by(&[&PASS]).of_host();
}

fn authorities(
    settings: &Settings<'_>,
    reference: &str,
) -> Result<certificate::Authorities, Message> {
    if !reference.contains('/') {
        return Err(format!("{reference:?} does not name a Secret: write namespace/name").into());
    }
    let secret = settings.secret(reference)?;
    let found = settings.scope().files.authorities(secret);
    found.map_err(|wrong| wrong.within(format!("Secret {reference} {wrong}")))
}

fn reference(text: &str) -> Result<String, String> {
    let text: String = text.chars().filter(|c| *c != ' ').collect();
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._~/:".contains(c);
    if text.chars().all(valid) {
        return Ok(text);
    }
    Err("is not the name of a Secret: write namespace/name".to_owned())
}

fn demand(text: &str) -> Result<ClientDemand, String> {
    match text {
        "on" => Ok(ClientDemand::Required),
        "off" => Ok(ClientDemand::Off),
        "optional" => Ok(ClientDemand::Optional),
        "optional_no_ca" => Ok(ClientDemand::OptionalUnknown),
        _ => {
            Err("is not on, off, optional or optional_no_ca, so a certificate is required"
                .to_owned())
        }
    }
}

/// `@name`, a path, or an address with or without `http(s)://`, without query (compat/annotations.csv).
fn error_page(text: &str) -> Result<ClientErrorPage, String> {
    let text: String = text.chars().filter(|c| *c != ' ').collect();
    let wrong = || "is no address: write one such as https://help.example/certificate".to_owned();
    let of =
        |allowed: &'static str| move |c: char| c.is_ascii_alphanumeric() || allowed.contains(c);
    if let Some(name) = text.strip_prefix('@') {
        let valid = !name.is_empty() && name.chars().all(of("_-"));
        return valid.then_some(ClientErrorPage::Missing).ok_or_else(wrong);
    }
    let schemes = ["https://", "http://"];
    let bare = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
    let rest = bare.unwrap_or(&text);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let has_host = !host.is_empty() && host.chars().all(of("-."));
    let segments = path.strip_prefix('/').unwrap_or_default();
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    let is_path = (segments.is_empty() && path.len() <= 1)
        || segments.split('/').all(|part| !part.is_empty() && part.chars().all(of("-_.")));
    match (is_path, has_host, bare) {
        (true, true, _) if port.is_none_or(is_port) => Ok(ClientErrorPage::Redirect(text)),
        (true, false, None) if authority.is_empty() && !path.is_empty() => {
            Ok(ClientErrorPage::Forbidden)
        }
        _ => Err(wrong()),
    }
}

fn subject(text: &str) -> Result<Pattern, String> {
    if !text.starts_with("CN=") {
        return Err("does not begin with CN=: write CN= and a regular expression".to_owned());
    }
    Pattern::new(text, false).map_err(|error| format!("is no regular expression: {}", error.reason))
}

#[cfg(test)]
mod tests {
    use super::error_page;
    use model::policy::ClientErrorPage::{Forbidden, Missing, Redirect};

    #[test]
    fn error_pages_are_addresses_paths_or_names() {
        for address in ["https://help.test/cert", "help.test:8443/cert", "http://a.test", "a.test/"]
        {
            assert_eq!(error_page(address), Ok(Redirect(address.to_owned())));
        }
        for path in ["/", "/cert-help", "/a/b.html/"] {
            assert_eq!(error_page(path), Ok(Forbidden), "{path}");
        }
        assert_eq!(error_page("@nowhere"), Ok(Missing));
        let wrong =
            ["https://a.test/x?a=b", "ftp://a.test/", "@", "", "//a.test", "a.test:x/", "/a//b"];
        for text in wrong {
            assert!(error_page(text).is_err(), "{text}");
        }
    }
}
