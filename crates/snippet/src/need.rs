//! What a snippet takes for granted: whoever fills a place of the Configuration with it has to make sure of that.

use crate::Position;
use crate::syntax::Directive;
use crate::typed::LocationKind;
use model::snippet::PassTarget;

/// Something that must be there, or be allowed, where a snippet counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Where.
    pub at: Position,
    /// The directive.
    pub directive: String,
    /// What.
    pub what: Needed,
}

/// What is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// A `limit_req_zone` of this name.
    RequestZone(String),
    /// A `limit_conn_zone` of this name.
    ConnectionZone(String),
    /// A Service that requests are passed to.
    Service(PassTarget),
    /// The upstream that `$proxy_upstream_name` is set to.
    Upstream(String),
    /// A port of its own.
    Port(u16),
    /// To answer on a port to hosts that none has.
    DefaultOf(u16),
    /// Passwords, as one is asked for.
    Passwords,
    /// A location that may have one of this kind within.
    Around(LocationKind),
}

impl Need {
    pub(crate) fn of(directive: &Directive, what: Needed) -> Self {
        Self { at: directive.at(), directive: directive.name().to_owned(), what }
    }

    /// What is wrong if it is not there: `text` says what, and how to mend it.
    pub fn unmet(&self, text: impl Into<String>) -> crate::Mistake {
        crate::Mistake::refused(self.at, text)
    }
}
