//! What is kept of a request, so that it can be told afterwards.

use http::StatusCode;
use model::{ServiceRef, UpstreamId, Url};
use serde::Serialize;
use std::cell::RefCell;
use upstream::Head;

/// The phases of a request, in nginx's order (compat/behaviour.md section 13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The client's address, and what it is believed.
    #[default]
    Client,
    /// Block lists.
    Blocks,
    /// The server and location.
    Location,
    /// `/` to the application's root.
    AppRoot,
    /// Answers to preflight requests.
    Preflight,
    /// Configured redirects.
    Redirect,
    /// The path towards the upstream.
    Rewrite,
    /// To HTTPS.
    HttpsRedirect,
    /// Whether anybody is there.
    Endpoints,
    /// Rates and connections.
    Limits,
    /// Addresses, passwords, authenticators.
    Access,
    /// The request's body.
    Body,
    /// Main side or canary, and the upstream.
    Upstream,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What was decided about.
    pub step: &'static str,
    /// What was decided.
    pub outcome: String,
    /// The annotation, key or field, and the object that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Where that nobody is there is what was decided: whoever has the objects knows why.
    #[serde(skip)]
    pub nobody: Option<Nobody>,
}

/// That nobody is where a request leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nobody {
    /// Who should be there.
    pub wanted: Wanted,
    /// What was decided, without why.
    pub decided: String,
}

/// Who should be somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Endpoints of a Service.
    Service(ServiceRef),
    /// Whoever a URL leads to.
    Url(Box<Url>),
}

/// An authenticator that was asked, or would be.
#[derive(Debug)]
pub(crate) struct Asked {
    /// As users write it.
    pub whom: String,
    /// Where it leads, if nobody is there.
    pub nobody: Option<Box<Url>>,
}

/// What is kept while a request is followed.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Nothing is sent to anybody: authenticators are taken to agree, the upstream to answer 200.
    pub dry: bool,
    /// It is a copy, and what would have become of the original is only counted.
    pub copy: bool,
    /// The id of the request, where somebody waits for its story.
    pub sampled: Option<Vec<u8>>,
    /// Whether the answer tells the story.
    pub told: bool,
    /// The head that went, or would go, to the upstream.
    pub head: RefCell<Option<String>>,
    /// The authenticators that were asked, or would be.
    pub asked: RefCell<Vec<Asked>>,
    /// The status that an error page stands in for, and whose it is; nobody's: the built-in default backend's.
    pub page: RefCell<Option<(StatusCode, Option<UpstreamId>)>>,
}

impl Trace {
    /// Keeps the head that goes to the upstream.
    pub(crate) fn note_head(&self, head: &Head) {
        let text = match head {
            Head::Http1(bytes, _) => String::from_utf8_lossy(bytes).into_owned(),
            Head::Http2(head) => {
                let (request, _) = &**head;
                let fields = request.headers().iter().map(|(name, value)| {
                    format!("\n{name}: {}", String::from_utf8_lossy(value.as_bytes()))
                });
                format!("{} {}{}", request.method(), request.uri(), fields.collect::<String>())
            }
            Head::FastCgi(_) => "FastCGI parameters".to_owned(),
        };
        *self.head.borrow_mut() = Some(text);
    }
}
