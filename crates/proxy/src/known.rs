//! What was found for the request before on the same connection. Most requests of a connection name the same host,
//! under the same Configuration: nothing of that has to be looked for again.

use bytes::Bytes;
use std::any::Any;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// What is passed on about how the client came in (compat/behaviour.md section 15).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// "best host": with its port, if it has one.
    pub host: Bytes,
    /// "effective scheme".
    pub scheme: Bytes,
    /// "pass port".
    pub port: Bytes,
}

/// What a request towards an upstream says of how its client came in.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The line of `Host`.
    pub host: Box<[u8]>,
    /// Those of `X-Real-IP` to `X-Scheme`.
    pub way: Box<[u8]>,
}

/// An authority that a client named, under one Configuration. What is not found yet is found by the phase that asks
/// for it, and kept where it is the same for each request of the connection that names this authority.
#[derive(Debug)]
pub(crate) struct Known {
    /// The number of the Configuration.
    generation: u64,
    /// The host, as servers are named.
    pub host: Rc<str>,
    /// The authority, where that is not the same text.
    authority: Option<Box<[u8]>>,
    /// How the client came in, where no header may say so. A copy: nothing of a head stays with it.
    pub forwarded: OnceCell<Rc<Forwarded>>,
    /// The site that answers, where names alone say so. It does not keep it: others may be in force while the
    /// connection is idle. Of whatever type: a connection need not know what a Configuration is.
    site: OnceCell<Weak<dyn Any + Send + Sync>>,
    /// Whether that has a certificate for the host.
    pub certified: OnceCell<bool>,
    /// What upstreams are told of that.
    pub lines: OnceCell<Lines>,
}

impl Known {
    /// Nothing but the name.
    pub(crate) fn new(authority: &[u8], host: Rc<str>, generation: u64) -> Self {
        let authority = (host.as_bytes() != authority).then(|| authority.into());
        let (forwarded, site) = (OnceCell::new(), OnceCell::new());
        let (certified, lines) = (OnceCell::new(), OnceCell::new());
        Self { generation, host, authority, forwarded, site, certified, lines }
    }

    /// The authority as it came.
    pub(crate) fn authority(&self) -> &[u8] {
        self.authority.as_deref().unwrap_or(self.host.as_bytes())
    }

    /// Whether it is known by the Configuration of this number.
    pub(crate) fn is_of(&self, generation: u64) -> bool {
        self.generation == generation
    }

    /// Who answers, if that is known.
    pub(crate) fn site<Site: Any + Send + Sync>(&self) -> Option<Arc<Site>> {
        self.site.get()?.upgrade()?.downcast().ok()
    }

    /// This one answers whoever names the authority.
    pub(crate) fn answers<Site: Any + Send + Sync>(&self, site: &Arc<Site>) {
        let site: &Arc<dyn Any + Send + Sync> = &(site.clone() as _);
        self.site.get_or_init(|| Arc::downgrade(site));
    }

    /// Whether this one does.
    pub(crate) fn is_at<Site>(&self, site: &Arc<Site>) -> bool {
        self.site.get().is_some_and(|known| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(site)))
    }

    /// Whether a client came in as is known.
    pub(crate) fn came(&self, forwarded: &Rc<Forwarded>) -> bool {
        self.forwarded.get().is_some_and(|known| Rc::ptr_eq(known, forwarded))
    }
}
