//! What nginx's connections are at (ngx_http_stub_status_module).

use crate::conf::Environment;
use crate::push::{self, Control};
use request_metrics::Connections;

/// Where it is told, on the socket for pushes.
pub(crate) const PATH: &str = "/nginx_status";

/// What connections are at now; none if nginx does not say.
pub(crate) async fn ask(environment: &Environment) -> Option<Connections> {
    let body = push::get(&Control::of(environment), PATH).await;
    let body =
        body.inspect_err(|error| tracing::debug!(%error, "nginx tells nothing about itself"));
    read(std::str::from_utf8(&body.ok()?).ok()?)
}

/// The page's seven numbers, in their order: active; accepted, handled, requests; reading, writing, waiting.
fn read(page: &str) -> Option<Connections> {
    let numbers: Vec<u64> = page.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [active, accepted, handled, requests, reading, writing, waiting] = numbers[..] else {
        return None;
    };
    let refused = accepted.saturating_sub(handled);
    Some(Connections {
        accepted,
        refused,
        requests,
        active,
        reading,
        writing,
        waiting,
        ..Connections::default()
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_page_of_nginx_is_read() {
        let page = "Active connections: 5 \nserver accepts handled requests\n 20 18 40 \nReading: 1 Writing: 3 Waiting: 2 \n";
        let now = read(page).expect("nginx's page");
        assert_eq!((now.active, now.accepted, now.refused, now.requests), (5, 20, 2, 40));
        assert_eq!((now.reading, now.writing, now.waiting), (1, 3, 2));
        assert!(read("<html>not this one</html>").is_none());
    }
}
