//! Which certificates may have signed those of clients, and which may be a client's, as OpenSSL decides it (`check_ca`
//! and `check_purpose_ssl_client` of v3_purp.c): its order, and what it makes of certificates that say little.

use x509_parser::extensions::{NSCertType, ParsedExtension};
use x509_parser::prelude::{X509Certificate, X509Version};

/// Makes sure that a certificate may sign those of clients; a reason in OpenSSL's words if not. One of version 3 says
/// so by CA:TRUE or, without basicConstraints, by its key usage; one of version 1 cannot say what it is, and counts.
pub(super) fn clients(one: &X509Certificate<'_>) -> Result<(), &'static str> {
    const NONE: Result<(), &str> = Err("invalid CA certificate");
    let (Ok(usage), Ok(constraints)) = (one.key_usage(), one.basic_constraints()) else {
        return NONE;
    };
    if !is_for_clients(one) {
        return Err("unsuitable certificate purpose");
    }
    let says_so = match (&usage, &constraints) {
        (Some(usage), _) if !usage.value.key_cert_sign() => false,
        (_, Some(constraints)) => constraints.value.ca,
        (Some(_), None) => true,
        (None, None) => {
            one.version() == X509Version::V1 || old_type(one).is_some_and(NSCertType::ssl_ca)
        }
    };
    if says_so { Ok(()) } else { NONE }
}

/// Makes sure that a certificate may be a client's by its usages and the old type of Netscape; a reason in OpenSSL's
/// words if not.
pub(super) fn as_client(one: &X509Certificate<'_>) -> Result<(), &'static str> {
    let usage = one.key_usage().ok().flatten().map(|usage| *usage.value);
    let signs = usage.is_none_or(|usage| usage.digital_signature() || usage.key_agreement());
    if signs && is_for_clients(one) && old_type(one).is_none_or(NSCertType::ssl_client) {
        Ok(())
    } else {
        Err("unsuitable certificate purpose")
    }
}

/// Whether extendedKeyUsage, where it is there, names clients: anything, as it may say, is not enough.
fn is_for_clients(one: &X509Certificate<'_>) -> bool {
    let usage = one.extended_key_usage();
    usage.is_ok_and(|usage| usage.is_none_or(|usage| usage.value.client_auth))
}

fn old_type<'a>(one: &'a X509Certificate<'_>) -> Option<&'a NSCertType> {
    one.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::NSCertType(old) => Some(old),
        _ => None,
    })
}
