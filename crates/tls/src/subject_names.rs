//! Whether a certificate has one of several alternative names (BackendTLSPolicy, `subjectAltNames`).

use model::policy::SubjectName;
use rustls::pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Whether a certificate has one of these names among its alternative names. Its common name is none of them.
pub(super) fn has_one(certificate: &CertificateDer<'_>, names: &[SubjectName]) -> bool {
    let Ok((_, read)) = X509Certificate::from_der(certificate) else { return false };
    let own = read.subject_alternative_name().ok().flatten();
    let own = own.map_or(&[][..], |own| &own.value.general_names);
    let end = EndEntityCert::try_from(certificate);
    let is_for = |host: &str| {
        let name = ServerName::try_from(host).ok().filter(|_| !own.is_empty());
        let checked = name.zip(end.as_ref().ok());
        checked.is_some_and(|(name, end)| end.verify_is_valid_for_subject_name(&name).is_ok())
    };
    names.iter().any(|name| match name {
        SubjectName::Dns(host) => {
            let is_it = |one: &GeneralName<'_>| matches!(one, GeneralName::DNSName(own) if own.eq_ignore_ascii_case(host));
            own.iter().any(is_it) || is_for(host)
        }
        SubjectName::Uri(uri) => {
            own.iter().any(|one| matches!(one, GeneralName::URI(own) if own == uri))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn certificate(common: &str, names: &[SanType]) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, common);
        params.subject_alt_names = names.to_vec();
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().clone()
    }

    fn dns(name: &str) -> SanType {
        SanType::DnsName(name.to_owned().try_into().expect("a name"))
    }

    #[test]
    fn one_of_the_names_is_enough_and_must_be_an_alternative_name() {
        let uri = "spiffe://demo/ns/a/sa/b";
        let found = certificate(
            "common.test",
            &[dns("a.test"), dns("*.w.test"), SanType::URI(uri.try_into().expect("a URI"))],
        );
        let host = |name: &str| SubjectName::Dns(name.to_owned());
        let uri = |name: &str| SubjectName::Uri(name.to_owned());
        for good in
            [host("a.test"), host("x.w.test"), host("*.w.test"), uri("spiffe://demo/ns/a/sa/b")]
        {
            assert!(has_one(&found, std::slice::from_ref(&good)), "{good:?}");
            assert!(has_one(&found, &[host("b.test"), good]));
        }
        for bad in [
            host("common.test"),
            host("y.x.w.test"),
            host("*.a.test"),
            host("spiffe://demo/ns/a/sa/b"),
            uri("spiffe://demo/ns/a/sa/c"),
            uri("spiffe://demo/ns/a"),
            uri("a.test"),
        ] {
            assert!(!has_one(&found, std::slice::from_ref(&bad)), "{bad:?}");
        }
        assert!(!has_one(&found, &[]));
        assert!(!has_one(&certificate("a.test", &[]), &[host("a.test")]));
    }
}
