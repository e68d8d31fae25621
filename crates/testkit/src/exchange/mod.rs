//! Exchanges as data: requests, what came back, what the upstreams saw; made comparable and compared.

mod compare;
mod normalise;
mod step;

pub use self::{
    compare::{Comparison, compare},
    normalise::Normaliser,
    step::{Answer, Body, Grpc, Line, Outcome, Request, Seen, SeenTls, Step, Tls},
};
