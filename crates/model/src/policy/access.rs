//! `allowlist-source-range`, `denylist-source-range` and `satisfy`: who may use a location by address, and how that
//! goes together with the other guards of the access phase.

use crate::Networks;
use serde::Serialize;

/// Address lists (ngx_http_access_module) and how the guards of the access phase are combined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Access {
    /// Addresses that are refused; they are looked at first.
    pub deny: Networks,
    /// The only addresses that are let in; none: any that is not denied.
    pub allow: Option<Networks>,
    /// `satisfy`, if it is said: then what stands around the location says nothing of it.
    pub satisfy: Option<Satisfy>,
}

impl Access {
    /// Whether there is a list of addresses, be it empty.
    pub fn has_lists(&self) -> bool {
        !self.deny.is_empty() || self.allow.is_some()
    }
}

/// How many guards of the access phase have to let a request pass (ngx_http_core_module, satisfy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Satisfy {
    /// All of them.
    #[default]
    All,
    /// One of them.
    Any,
}
