//! What is sent to an endpoint.

use http::Method;
use model::policy::Policy;
use std::rc::Rc;
use std::sync::Arc;
use wire::{Body, Control, Interim, Length, TrailerRule, Written};

/// One request as it is sent to an upstream.
pub struct Outgoing<'a> {
    /// The method.
    pub method: &'a Method,
    /// The head, written for HTTP/1 or in parts for HTTP/2; whoever sends it takes it.
    pub head: Head,
    /// The body; read from the front at each try.
    pub body: &'a mut Body,
    /// Whether the client asked to leave HTTP (Upgrade).
    pub upgrade: bool,
    /// Takes the interim answers that come before the answer.
    pub interim: &'a dyn Fn(Interim),
    /// The location's policies.
    pub policy: &'a Policy,
    /// The namespace that it is sent for; none: the controller's own.
    pub whose: Option<&'a Arc<str>>,
    /// The request of a client that it is sent for.
    pub cause: Cause<'a>,
}

/// Whom a connection to an upstream is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whom<'a> {
    /// The namespace; none: the controller's own.
    pub(super) namespace: Option<&'a Arc<str>>,
    /// The book of the connection whose request it serves first; none: nobody's.
    pub(super) book: Option<&'a Rc<Control>>,
}

impl<'a> Whom<'a> {
    /// Somebody of this namespace, and nobody's request.
    #[cfg(test)]
    pub(super) fn of(namespace: &'a Arc<str>) -> Self {
        Self { namespace: Some(namespace), book: None }
    }
}

impl<'a> Outgoing<'a> {
    /// Whom it is sent for.
    pub(super) fn whom(&self) -> Whom<'a> {
        Whom { namespace: self.whose, book: self.cause.book }
    }
}

/// The request of a client that something is sent for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cause<'a> {
    /// How often it has come back to this process.
    pub hops: u8,
    /// The book of its connection, in which counts what came of an answer and is not whole; none: nobody's.
    pub book: Option<&'a Rc<Control>>,
}

/// The head of a request.
#[derive(Clone, Debug)]
pub enum Head {
    /// All bytes of an HTTP/1 head, and how long it says that the body is: what is known of that later does not count.
    Http1(Written, Length),
    /// The parts of an HTTP/2 one, and which trailers follow its body; none where there is no such rule.
    Http2(Box<(::http::Request<()>, Option<TrailerRule>)>),
    /// The records that begin a FastCGI request.
    FastCgi(bytes::Bytes),
}

impl Head {
    /// A head of HTTP/2, behind whose body no trailers follow.
    pub fn http2(head: ::http::Request<()>) -> Self {
        Self::Http2(Box::new((head, None)))
    }

    /// The head, of which nothing stays.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Http1(Written::default(), Length::Known(0)))
    }
}
