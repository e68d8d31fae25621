//! Authenticators, compiled, and what they said.

mod answers;
mod guard;

pub(crate) use answers::{Answers, Entry, Tag};
pub(crate) use guard::Guard;

use crate::snippet::{Towards, transferred};
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use http::StatusCode;
use imbl::OrdMap;
use model::policy::{AuthExternal, Policy};
use model::{Location, Secret, ServerName, Template, UpstreamId, revealed};
use std::sync::Arc;
use tls::Profiles;
use upstream::{Destination, Group};
use wire::Headers;

/// The authenticator of a location.
#[derive(Debug)]
pub struct Authenticator {
    /// What it was made of.
    pub policy: Arc<AuthExternal>,
    /// Where it is.
    pub destination: Destination,
    /// Time-outs and bounds towards it: those of nginx but for `proxy-buffer-size`, as the original has them.
    pub towards: Policy,
    /// What tells its answers from those of others besides the path: the host, and everything that it is asked with.
    pub id: (ServerName, Arc<Tag>),
    /// Which fields `auth-proxy-set-headers` gives.
    pub(crate) given: Given,
    /// What `auth-snippet` tells it.
    pub(crate) told: Towards,
    /// Whether it gets the client's header section.
    pub passes_headers: bool,
}

/// Names of fields, to be found among many.
#[derive(Debug)]
pub(crate) struct Given(Vec<Box<[u8]>>);

impl Given {
    fn new(fields: &[(String, Secret<Template>)]) -> Self {
        let names = fields.iter().map(|(name, _)| name.to_ascii_lowercase().into_bytes().into());
        let mut names: Vec<Box<[u8]>> = names.collect();
        names.sort_unstable();
        Self(names)
    }

    /// Whether a field is among them.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        let lower = || name.iter().map(u8::to_ascii_lowercase);
        self.0.binary_search_by(|known| known.iter().copied().cmp(lower())).is_ok()
    }
}

/// What counts of an answer.
#[derive(Debug)]
pub(crate) struct Said {
    /// Its status.
    pub status: StatusCode,
    /// What the application gets.
    pub headers: Vec<(Bytes, Bytes)>,
    /// WWW-Authenticate, for the client.
    pub challenges: Vec<Bytes>,
    /// Lines of Set-Cookie, for the client.
    pub cookies: Vec<Bytes>,
    /// What variables of snippets ask for (`auth_request_set`).
    pub asked: Headers,
}

impl Authenticator {
    /// The authenticator of a location, if it has one. Its upstream is in `groups` already.
    pub fn new(
        location: &Location,
        groups: &OrdMap<UpstreamId, Arc<Group>>,
        profiles: &Profiles,
        id: impl FnOnce(&Arc<AuthExternal>) -> (ServerName, Arc<Tag>),
    ) -> Result<Option<Arc<Self>>, rustls::Error> {
        let Some(policy) = &location.policy.auth_external else { return Ok(None) };
        let mut towards = Policy { body: location.policy.body, ..Policy::default() };
        let settings = policy.snippet.as_ref().map(|scope| &scope.settings);
        if let Some(settings) = settings {
            transferred(&mut towards, &settings.proxy);
        }
        Ok(Some(Arc::new(Self {
            destination: Destination::new(&policy.url, groups, profiles)?,
            towards,
            id: id(policy),
            told: settings
                .map(|settings| Towards::new(&settings.headers.proxy_set))
                .unwrap_or_default(),
            passes_headers: settings
                .and_then(|settings| settings.proxy.pass_request_headers)
                .unwrap_or(true),
            given: Given::new(&policy.request_headers),
            policy: policy.clone(),
        })))
    }
}

/// Tells authenticators apart, by all that they are asked with.
#[expect(clippy::disallowed_methods, reason = "it is hashed, and told to nobody")]
pub(crate) fn identity(policy: &AuthExternal) -> Tag {
    let mut tag = Tag::default();
    tag.copy_from_slice(digest(&SHA256, revealed(|| format!("{policy:?}")).as_bytes()).as_ref());
    tag
}

impl Said {
    /// About how many bytes it takes to remember it. Each text has an entry of a list, up to twice that where the list
    /// has grown, and memory of its own, however short.
    pub(crate) fn size(&self) -> usize {
        const EACH: usize = 2 * size_of::<Bytes>() + 16;
        let text = |text: &Bytes| EACH + text.len();
        let headers: usize =
            self.headers.iter().map(|(name, value)| text(name) + text(value)).sum();
        let challenges: usize = self.challenges.iter().map(text).sum();
        let asked = self.asked.iter().map(|field| EACH + field.name.len() + field.value.len());
        let cookies: usize = self.cookies.iter().map(text).sum();
        256 + headers + challenges + asked.sum::<usize>() + cookies
    }
}
