//! The addresses of Gateways, each with listeners whose hosts and certificates are theirs alone.

use model::{Listener, Speaks};
use route::RouteTable;
use std::collections::BTreeSet;
use std::sync::Arc;
use tls::{ListenersTls, Profile, Verifier};
use upstream::Group;

/// An address where connections come in for listeners of a Gateway.
#[derive(Debug)]
pub(crate) struct Door<T> {
    /// The port that clients know, where it is another one.
    pub(crate) port: Option<u16>,
    /// What is spoken with clients: of listeners that carry on, as one of them does.
    pub(crate) speaks: Speaks,
    /// The listeners by their hosts; the most special one has a request.
    pub(crate) listeners: RouteTable<Inside<T>>,
    /// How TLS is spoken, where it is.
    pub(crate) tls: Option<ListenersTls>,
    /// What certificates of its clients are worth, where each must show a good one.
    pub(crate) clients: Option<Arc<Verifier>>,
    /// All listeners, as they were when `tls` was made.
    pub(crate) made_of: Vec<Arc<Listener>>,
}

/// A listener compiled for serving; `T` is a host as it is compiled.
#[derive(Debug)]
pub(crate) struct Inside<T> {
    /// The hosts of its routes.
    pub(crate) routes: RouteTable<T>,
    /// Hosts whose connections are carried on.
    pub(crate) carried: RouteTable<Carried>,
    /// Whether TLS ends here.
    pub(crate) is_ended: bool,
}

/// Where connections to a host are carried on, by weight.
#[derive(Debug)]
pub(crate) struct Carried(pub(crate) Vec<(u32, Option<Onward>)>);

/// To whom a connection is carried on.
#[derive(Clone, Debug)]
pub(crate) struct Onward {
    /// Who it is.
    pub(crate) group: Arc<Group>,
    /// TLS towards it; none: what comes is carried on as it is.
    pub(crate) tls: Option<Arc<Profile>>,
    /// The namespace that asks for it, whose places its connections take.
    pub(crate) namespace: Arc<str>,
    /// Whether a connection ends where nothing moves for as long as TCP services may be silent.
    pub(crate) tires: bool,
}

impl<T> Default for Inside<T> {
    fn default() -> Self {
        Self { routes: RouteTable::default(), carried: RouteTable::default(), is_ended: false }
    }
}

impl<T> Clone for Inside<T> {
    fn clone(&self) -> Self {
        let Self { routes, carried, is_ended } = self;
        Self { routes: routes.clone(), carried: carried.clone(), is_ended: *is_ended }
    }
}

impl<T> Clone for Door<T> {
    fn clone(&self) -> Self {
        let Self { port, speaks, listeners, tls, clients, made_of } = self;
        let (listeners, tls, made_of) = (listeners.clone(), tls.clone(), made_of.clone());
        let (port, speaks, clients) = (*port, *speaks, clients.clone());
        Self { port, speaks, listeners, tls, clients, made_of }
    }
}

impl<T> Door<T> {
    /// One without listeners.
    pub(crate) fn new(speaks: Speaks) -> Self {
        let listeners = RouteTable::default();
        Self { port: None, speaks, listeners, tls: None, clients: None, made_of: Vec::new() }
    }

    /// The most special listener for a host.
    pub(crate) fn listener<'a>(&'a self, host: &'a str) -> Option<&'a Arc<Inside<T>>> {
        self.listeners.find(host).next()
    }

    /// Whether one of its listeners shows a certificate.
    pub(crate) fn shows(&self, certificates: &BTreeSet<&model::CertificateId>) -> bool {
        let mut shown = self.made_of.iter().filter_map(|listener| listener.certificate.as_ref());
        shown.any(|id| certificates.contains(id))
    }
}
