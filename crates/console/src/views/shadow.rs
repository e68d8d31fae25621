//! Copies of requests: what would have become of the originals.

use super::json;
use crate::now::Now;
use crate::query::{Query, Refusal, shown};
use exposition::Copied;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was decided about copies.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Shadow {
    /// How many came, by decision: `upstream`, `redirect`, `refusal` or `answer`.
    pub(crate) copies: BTreeMap<&'static str, u64>,
    /// Those that did not say whose request they are of, so that whoever sent the copy was judged.
    pub(crate) without_client: u64,
    /// Those of groups beyond the ones that are kept apart.
    pub(crate) beyond: u64,
    /// The most frequent first.
    pub(crate) groups: Vec<Group>,
}

/// Copies about which the same was decided.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Group {
    /// `upstream`, `redirect`, `refusal` or `answer`.
    pub(crate) decision: &'static str,
    /// The host that answers; `_` for all that no Ingress names.
    pub(crate) host: String,
    /// `namespace/name` of the Ingress whose path it is.
    pub(crate) ingress: Option<String>,
    /// The upstream that they would have gone to.
    pub(crate) upstream: Option<String>,
    /// The status that they would have been answered with, where no upstream would have been asked.
    pub(crate) status: Option<u16>,
    /// What decided it.
    pub(crate) by: &'static str,
    /// How many.
    pub(crate) count: u64,
    /// The first of them: method, host and path.
    pub(crate) example: String,
    /// When it came.
    pub(crate) first: f64,
    /// When the last one came.
    pub(crate) last: f64,
}

impl From<&Copied> for Group {
    fn from(of: &Copied) -> Self {
        Self {
            decision: of.decision,
            host: shown(&of.host),
            ingress: of.ingress.as_ref().map(shown),
            upstream: of.upstream.as_ref().map(shown),
            status: of.status,
            by: of.by,
            count: of.count,
            example: shown(&of.example),
            first: of.times.0,
            last: of.times.1,
        }
    }
}

pub(crate) fn make(now: &Now, _: &Query) -> Result<String, Refusal> {
    let Some(copies) = &now.copies else {
        let remedy =
            "this Fairway serves real requests: one that gets copies is started with --shadow";
        return Err(Refusal::Missing(remedy.to_owned()));
    };
    json(&Shadow {
        copies: copies.sums.into_iter().collect(),
        without_client: copies.without_client,
        beyond: copies.beyond,
        groups: copies.groups.iter().map(Group::from).collect(),
    })
}
