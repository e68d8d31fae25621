//! Certificates of a test cluster's control plane, and the kubeconfigs that go with them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

/// Files that make the parts of a control plane trust each other, fresh for each run.
pub(super) struct Credentials {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Who a kubeconfig speaks for.
pub(super) enum Identity {
    /// A client certificate, from `Credentials::client`.
    Certificate(PathBuf, PathBuf),
    /// A bearer token.
    Token(String),
}

impl Credentials {
    /// Makes an authority, a certificate for the API server at `addresses`, and the key that signs tokens.
    pub(super) fn create(folder: &Path, addresses: &[&str]) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        let mut authority = named("fairway-test-cluster", None)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let credentials = Self { folder: folder.to_path_buf(), issuer };
        credentials.write("ca.crt", &credentials.issuer.pem())?;
        credentials.serving(addresses)?;
        let signer = KeyPair::generate()?;
        credentials.write("tokens.key", &signer.serialize_pem())?;
        credentials.write("tokens.pub", &signer.public_key_pem())?;
        Ok(credentials)
    }

    /// The path of one of the files.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn serving(&self, addresses: &[&str]) -> Result<()> {
        let names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue("apiserver", &params)?;
        Ok(())
    }

    /// A client certificate for `user` in `group`.
    pub(super) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = named(user, group)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.issue(&user.replace(':', "-"), &params)?;
        Ok(Identity::Certificate(certificate, key))
    }

    fn issue(&self, file: &str, params: &CertificateParams) -> Result<(PathBuf, PathBuf)> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let certificate = self.write(&format!("{file}.crt"), &certificate.pem())?;
        let key = self.write(&format!("{file}.key"), &key.serialize_pem())?;
        Ok((certificate, key))
    }

    /// Writes a kubeconfig for the API server at 127.0.0.1:`port`.
    pub(super) fn kubeconfig(&self, name: &str, port: u16, who: &Identity) -> Result<PathBuf> {
        let user: Value = match who {
            Identity::Certificate(certificate, key) => {
                json!({"client-certificate": certificate, "client-key": key})
            }
            Identity::Token(token) => json!({"token": token}),
        };
        let server = format!("https://127.0.0.1:{port}");
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{
                "name": "test",
                "cluster": {"server": server, "certificate-authority": self.path("ca.crt")},
            }],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        self.write(&format!("{name}.kubeconfig"), &config.to_string())
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }
}

fn named(user: &str, group: Option<&str>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    Ok(params)
}
