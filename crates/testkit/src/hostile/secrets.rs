//! Secrets of tenants: good ones, and some that are broken where only a library notices.

use fastrand::Rng;
use openssl::base64;
use serde_json::Value;

use super::secret;
use crate::certificates::Certificates;

/// All Secrets of a namespace, some with the same names as good ones elsewhere.
pub(super) fn of(rng: &mut Rng, namespace: &str) -> Vec<Value> {
    let all = Certificates::shared();
    let identity = |name: &str| all.get(name).expect("a fixture");
    let (ca, pair, other) = (identity("ca"), identity("tls-demo"), identity("tls-other"));
    let text = |text: &str| text.as_bytes().to_vec();
    let named = |name: &str| format!("{namespace}/{name}");
    let no_der = pem("CERTIFICATE", &[0x30, 0x03, 0x02, 0x01, 0x01]);
    let lists =
        [("ca.crt", text(&ca.certificate)), ("ca.crl", flipped(rng, "X509 CRL", &all.revocations))];
    let whole = [
        ("ca.crt", text(&ca.certificate)),
        ("ca.crl", text(&all.revocations)),
        ("tls.crt", text(&pair.certificate)),
        ("tls.key", text(&pair.key)),
    ];
    let broken = [
        ("ca.crt", flipped(rng, "CERTIFICATE", &ca.certificate)),
        ("tls.crt", flipped(rng, "CERTIFICATE", &pair.certificate)),
        ("tls.key", text(&pair.key)),
    ];
    let keyless = [
        ("ca.crt", text(&ca.certificate)),
        ("tls.crt", text(&pair.certificate)),
        ("tls.key", flipped(rng, "PRIVATE KEY", &pair.key)),
    ];
    let mismatched = [("tls.crt", text(&pair.certificate)), ("tls.key", text(&other.key))];
    let odd = b"me:{PLAIN}x\n\xff\xfe:$apr1$x$y\n:\nyou:$2y$99$zz\nthey:{SSHA}!!\nthem:$5$rounds=9$\0$x\n";
    vec![
        secret(&named("authorities"), &whole),
        secret(&named("lists"), &lists),
        secret(&named("no-der"), &[("ca.crt", no_der.into_bytes())]),
        secret(&named("flipped"), &broken),
        secret(&named("keyless"), &keyless),
        secret(&named("pair"), &whole[2..]),
        secret(&named("mismatched"), &mismatched),
        secret(&named("passwords"), &[("auth", text("me:{PLAIN}secret\n"))]),
        secret(&named("odd-passwords"), &[("auth", odd.to_vec())]),
    ]
}

/// A PEM in which one byte of the DER is another one, or the end is missing.
fn flipped(rng: &mut Rng, label: &str, text: &str) -> Vec<u8> {
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let mut der = base64::decode_block(&body).unwrap_or_default();
    let at = rng.usize(..der.len().max(1));
    match rng.u8(..4) {
        0 => der.truncate(at),
        _ => {
            if let Some(byte) = der.get_mut(at) {
                *byte ^= rng.u8(1..);
            }
        }
    }
    pem(label, &der).into_bytes()
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", base64::encode_block(der))
}
