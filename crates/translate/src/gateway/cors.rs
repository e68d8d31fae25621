//! The CORS filter of a route: which origins may read answers, and what they are told.

use super::texts::is_token;
use crate::ingress::is_host;
use model::policy::{AllowedOrigin, Cors, Origins};
use objects::gateway::CorsFilter;

/// Reads the filter; what is wrong with it otherwise.
pub(super) fn read(filter: &CorsFilter) -> Result<Cors, String> {
    let CorsFilter { origins, credentials, methods, headers, expose, max_age } = filter;
    let mut expose = list(expose, "exposeHeaders")?;
    if *credentials && expose == "*" {
        // Browsers take it for a name there, which means nothing.
        expose.clear();
    }
    Ok(Cors {
        origins: allowed(origins)?,
        credentials: *credentials,
        methods: list(methods, "allowMethods")?,
        headers: list(headers, "allowHeaders")?,
        expose: Some(expose).filter(|expose| !expose.is_empty()),
        max_age: i64::from(*max_age),
    })
}

fn allowed(origins: &[String]) -> Result<Origins, String> {
    match origins {
        [only] if only == "*" => Ok(Origins::Any),
        all => all.iter().map(|one| origin(one)).collect::<Result<_, _>>().map(Origins::Listed),
    }
}

/// An origin as browsers write it: without the usual port of its scheme.
fn origin(text: &str) -> Result<AllowedOrigin, String> {
    let wrong = || {
        format!(
            "allowOrigins: {text:?} is no origin; write https://shop.example, https://*.shop.example, or * alone"
        )
    };
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let usual = match scheme {
        "http" => "80",
        "https" => "443",
        _ => return Err(wrong()),
    };
    let (host, port) = match rest.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (rest, None),
    };
    let is_number = |port: &str| {
        let plain = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
        plain && port.parse::<u16>().is_ok()
    };
    if (host != "*" && !is_host(host)) || !port.is_none_or(is_number) {
        return Err(wrong());
    }
    let port = port.filter(|port| *port != usual).map(|port| format!(":{port}"));
    let origin = format!("{scheme}://{host}{}", port.unwrap_or_default());
    Ok(AllowedOrigin::at_any_depth(&origin))
}

/// Names of methods or header fields in one line; `*` stands alone.
fn list(names: &[String], field: &str) -> Result<String, String> {
    let wrong = names.iter().find(|name| !is_token(name) || (*name == "*" && names.len() > 1));
    match wrong {
        Some(wrong) => Err(format!("{field}: {wrong:?} is no name; write names, or * alone")),
        None => Ok(names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{list, origin};

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port_that_is_not_the_usual_one() {
        let matches = |text: &str, asked: &str| {
            origin(text).is_ok_and(|origin| origin.matches(asked.as_bytes()))
        };
        for (text, asked) in [
            ("https://a.test:443", "https://a.test"),
            ("http://a.test:8080", "http://a.test:8080"),
            ("http://*:8080", "http://a.test:8080"),
            ("https://*.a.test", "https://x.y.a.test"),
        ] {
            assert!(matches(text, asked), "{text}");
        }
        assert!(!matches("https://*", "https://a.test:8443"));
        for bad in [
            "",
            "*",
            "a.test",
            "ftp://a.test",
            "https://",
            "https://a.*.test",
            "https://*a.test",
            "https://a.test:0",
            "https://a.test:99999",
            "https://a.test:+1",
            "https://a.test/",
            "https://a\r\nb",
        ] {
            assert!(origin(bad).is_err_and(|why| why.contains("is no origin")), "{bad:?}");
        }
    }

    #[test]
    fn a_star_stands_alone_and_nothing_ends_a_line() {
        let all = |names: &[&str]| {
            list(&names.iter().map(ToString::to_string).collect::<Vec<_>>(), "allowMethods")
        };
        assert_eq!(all(&["GET", "PUT"]), Ok("GET, PUT".to_owned()));
        assert_eq!((all(&["*"]), all(&[])), (Ok("*".to_owned()), Ok(String::new())));
        for bad in [&["*", "GET"][..], &["a\r\nb"], &[""], &["a,b"]] {
            assert!(all(bad).is_err_and(|why| why.contains("is no name")), "{bad:?}");
        }
    }
}
