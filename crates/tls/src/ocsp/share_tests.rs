//! Certificates of one namespace whose responder never answers, beside that of another namespace.

use super::Staples;
use crate::{Certificates, self_signed};
use arc_swap::ArcSwap;
use model::{Certificate, CertificateId, Changes, Configuration, Outside, PrivateKey};
use rcgen::{BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;

async fn responder() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

/// A certificate that names a responder.
fn certificate(id: &str, responder: SocketAddr) -> Certificate {
    let key = KeyPair::generate().expect("keys can be made");
    let mut root = CertificateParams::default();
    root.distinguished_name.push(DnType::CommonName, "authority");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_der = root.self_signed(&key).expect("certificates can be made").der().to_vec();
    let url = format!("http://{responder}/ocsp");
    // AuthorityInfoAccessSyntax with one AccessDescription: id-ad-ocsp and a URI.
    let wrapped = |tag: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).expect("it is short");
        [&[tag, length], bytes].concat()
    };
    let method = [6, 8, 0x2b, 6, 1, 5, 5, 7, 0x30, 1];
    let description = [&method[..], &wrapped(0x86, url.as_bytes())].concat();
    let access = wrapped(0x30, &wrapped(0x30, &description));
    let mut leaf = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
    leaf.custom_extensions =
        vec![CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], access)];
    let leaf = leaf.signed_by(&key, &Issuer::from_params(&root, &key)).expect("it can be made");
    Certificate {
        id: CertificateId::new(id),
        chain: vec![leaf.der().to_vec(), root_der],
        key: PrivateKey(key.serialize_der()),
        names: vec!["a.test".to_owned()].into(),
        not_after: i64::MAX,
    }
}

#[tokio::test]
async fn responders_that_never_answer_leave_another_namespace_its_question() {
    let ((silent, silent_at), (other, other_at)) = (responder().await, responder().await);
    let bad = (0..32).map(|of| certificate(&format!("bad/{of}"), silent_at));
    let all: Vec<_> = bad.chain([certificate("good/tls", other_at)]).collect();
    let mut configuration = Configuration::default();
    for certificate in &all {
        configuration.certificates.insert(certificate.id.clone(), Arc::new(certificate.clone()));
    }
    let changes = Changes::between(&Configuration::default(), &configuration);
    let none = Certificates::new(Arc::new(self_signed().expect("a certificate")));
    let served = none.follow(&configuration, &changes);
    let keys: Vec<_> = all.iter().filter_map(|one| served.key(&one.id).cloned()).collect();
    let outside = Outside::and(["127.0.0.0/8".parse().expect("a network")]);
    let served = Arc::new(ArcSwap::from_pointee(served));
    let staples = Staples::start(served, outside).expect("there is a runtime");
    let (good, bad) = keys.split_last().expect("there are some");
    for key in bad {
        staples.staple(key.clone());
    }
    // They are being asked when the other one comes, and what they were asked stays without an answer.
    let mut asked = vec![silent.accept().await.expect("it is asked")];
    staples.staple(good.clone());
    loop {
        tokio::select! {
            biased;
            one = silent.accept() => asked.push(one.expect("it is asked")),
            one = other.accept() => break drop(one.expect("it is asked")),
        }
    }
    assert!(asked.len() <= 4, "{} questions of one namespace went before", asked.len());
}
