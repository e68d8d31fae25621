//! A page of a Pod, through the API server's proxy: for tools that a person runs where kubectl runs.

use crate::client::deepest;
use crate::{Client, Error};
use http::Request;
use kube::client::Body;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of an answer at most.
const LONGEST: usize = 16 << 20;

/// A Pod, and a port of it.
#[derive(Clone, Debug)]
pub struct PodPort {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// The port.
    pub port: u16,
}

/// Status and body of a page. `field` is a header field to send: the proxy keeps `Authorization` for itself.
pub async fn pod_page(
    client: &Client,
    from: &PodPort,
    page: &str,
    field: Option<(&str, &str)>,
) -> Result<(u16, String), Error> {
    let PodPort { namespace, pod, port } = from;
    let wrong = |reason: String| Error::Pod { pod: format!("{namespace}/{pod}"), reason };
    let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{page}");
    let mut request = Request::get(uri);
    if let Some((name, value)) = field {
        request = request.header(name, value);
    }
    let request = request.body(Body::empty()).map_err(|error| wrong(error.to_string()))?;
    let ask = async {
        let answer = client.send(request).await.map_err(|error| wrong(deepest(&error)))?;
        let status = answer.status().as_u16();
        let body =
            answer.into_body().collect_bytes().await.map_err(|error| wrong(deepest(&error)))?;
        if body.len() > LONGEST {
            return Err(wrong("its answer is too long".to_owned()));
        }
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    let answer = tokio::time::timeout(PATIENCE, ask).await;
    answer.unwrap_or_else(|_| Err(wrong("it does not answer".to_owned())))
}
