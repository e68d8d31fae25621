//! Files in Secrets: passwords, and authorities of clients. Each is read and kept once, however many Ingresses name its
//! Secret.

use crate::certificate::{self, Authorities};
use crate::passwords::PasswordFile;
use model::Message;
use model::policy::Users;
use objects::{ObjectKey, Secret};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a Secret is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// `auth-type: basic` with a file.
    Htpasswd,
    /// `auth-type: basic` with a key for each user.
    Map,
    /// `auth-type: digest` with a file, for this realm.
    Htdigest(String),
    /// `auth-type: digest` with a key for each user, for this realm.
    DigestMap(String),
}

/// What was read of Secrets. It is shared by those that serve it: nothing else keeps it.
#[derive(Debug, Default)]
pub(crate) struct SecretFiles {
    passwords: Mutex<BTreeMap<(ObjectKey, Form), Read>>,
    authorities: Mutex<BTreeMap<ObjectKey, Trust>>,
}

/// Whom one version of a Secret trusts, or what is wrong with it.
#[derive(Debug)]
struct Trust {
    secret: Arc<Secret>,
    found: Result<Authorities, Message>,
}

/// One version of a Secret, read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    secret: Arc<Secret>,
    /// Who may come in.
    pub(crate) users: Arc<Users>,
    /// What is wrong with lines that let nobody in.
    pub(crate) wrong: Arc<[Message]>,
    /// What is odd about lines of those who may.
    pub(crate) odd: Arc<[String]>,
    /// How many further lines there are with something wrong.
    pub(crate) untold: usize,
}

impl SecretFiles {
    /// The users of a Secret in one form. The error completes a sentence that begins with the Secret.
    pub(crate) fn users(&self, secret: &Arc<Secret>, form: Form) -> Result<Read, &'static str> {
        let key = (secret.meta.key.clone(), form);
        if let Some(known) = self.passwords.lock().get(&key)
            && Arc::ptr_eq(&known.secret, secret)
        {
            return Ok(known.clone());
        }
        let PasswordFile { users, wrong, odd, untold } = parse(secret, &key.1)?;
        let (wrong, odd) = (wrong.into(), odd.into());
        let read = Read { secret: secret.clone(), users: Arc::new(users), wrong, odd, untold };
        self.passwords.lock().insert(key, read.clone());
        Ok(read)
    }

    /// The authorities of clients in a Secret. The error completes a sentence that begins with the Secret.
    pub(crate) fn authorities(&self, secret: &Arc<Secret>) -> Result<Authorities, Message> {
        let mut all = self.authorities.lock();
        let known = all.get(&secret.meta.key);
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.secret, secret)) {
            return known.found.clone();
        }
        let mut found = certificate::authorities(secret);
        if let Some(same) = known.filter(|known| known.found == found) {
            found = same.found.clone();
        }
        let trust = Trust { secret: secret.clone(), found: found.clone() };
        all.insert(secret.meta.key.clone(), trust);
        found
    }

    /// Forgets what nobody uses any more.
    pub(crate) fn forget(&self) {
        self.passwords.lock().retain(|_, read| Arc::strong_count(&read.users) > 1);
        self.authorities.lock().retain(|_, trust| match &trust.found {
            Ok(trusted) => Arc::strong_count(&trusted.certificates) > 1,
            Err(_) => Arc::strong_count(&trust.secret) > 1,
        });
    }
}

fn parse(secret: &Secret, form: &Form) -> Result<PasswordFile, &'static str> {
    let empty = Default::default();
    let data = secret.data.as_ref().unwrap_or(&empty);
    let text = || data.get("auth").ok_or("has no key auth: put the password file there");
    match form {
        Form::Htpasswd => Ok(PasswordFile::htpasswd(text()?)),
        Form::Map => Ok(PasswordFile::map(data)),
        Form::Htdigest(realm) => Ok(PasswordFile::htdigest(text()?, realm)),
        Form::DigestMap(realm) => {
            // Each value is what follows the user in a file.
            let lines = data.iter().map(|(user, rest)| [user.as_bytes(), b":", rest].concat());
            let text = lines.collect::<Vec<_>>().join(&b'\n');
            Ok(PasswordFile::htdigest(&text, realm))
        }
    }
}
