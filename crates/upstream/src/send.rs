//! One try of a request.

use super::{Failed, Head, Outgoing, Pool, Target, Try, fastcgi, http1, http2};
use std::rc::Rc;
use wire::Response;

/// Sends a request to an endpoint and gives back the head of the answer with its body still to come.
pub async fn send(
    pool: &Rc<Pool>,
    target: &Target,
    request: &mut Outgoing<'_>,
    journal: &Rc<Try>,
) -> Result<Response, Failed> {
    match request.head {
        Head::Http1(..) => http1::send(pool, target, request, journal).await,
        // Boxed: their room would be moved with every plain request.
        Head::Http2(_) => Box::pin(http2::send(pool, target, request, journal)).await,
        Head::FastCgi(_) => Box::pin(fastcgi::send(pool, target, request, journal)).await,
    }
}
