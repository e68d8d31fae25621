//! A list that is streamed is the newest one.

use http::{Request, Uri};

/// Asks for the newest version where kube asks for any.
///
/// kube begins a streamed list at the version `0`: an API server may answer that with what it knew long ago, and one
/// that has just been told something may not know it yet. No version at all is the newest one, as for a list that is
/// not streamed: <https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists>.
pub(crate) fn newest<B>(mut request: Request<B>) -> Request<B> {
    if let Some(uri) = without_version(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn without_version(uri: &Uri) -> Option<Uri> {
    let (path, query) = uri.path_and_query()?.as_str().split_once('?')?;
    let is_streamed = query.split('&').any(|pair| pair == "sendInitialEvents=true");
    if !is_streamed {
        return None;
    }
    let kept: Vec<&str> = query.split('&').filter(|pair| *pair != "resourceVersion=0").collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{path}?{}", kept.join("&")).parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_streamed_list_loses_its_version() {
        let asked = |uri: &str| {
            let request = Request::get(uri).body(()).expect("a request");
            newest(request).uri().to_string()
        };
        let streamed = "https://host/api?watch=true&sendInitialEvents=true\
                        &resourceVersionMatch=NotOlderThan&resourceVersion=0";
        assert_eq!(asked(streamed), streamed.replace("&resourceVersion=0", ""));
        for other in [
            "https://host/api?watch=true&resourceVersion=0",
            "https://host/api?watch=true&sendInitialEvents=true&resourceVersion=07",
            "https://host/api",
        ] {
            assert_eq!(asked(other), other);
        }
    }
}
