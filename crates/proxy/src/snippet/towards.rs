//! `proxy_set_header` and `grpc_set_header`: what upstreams and authenticators are told, in place of what Fairway says
//! by itself and of what the client says (ngx_http_proxy_module).

use super::text::{Fill, Text};
use bytes::Bytes;
use model::is_of_connection;
use model::snippet::SetHeader;
use snippet::run::Exceeded;

/// The fields that one level sets, compiled.
#[derive(Debug, Default)]
pub(crate) struct Towards(Vec<(Bytes, Text)>);

/// The same with the values of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(Vec<(Bytes, Bytes)>);

impl Towards {
    /// Compiles what one level says.
    pub(crate) fn new(fields: &[SetHeader]) -> Self {
        let name = |field: &SetHeader| Bytes::copy_from_slice(field.name.as_bytes());
        Self(fields.iter().map(|field| (name(field), Text::new(&field.value))).collect())
    }

    /// Whether nothing is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values for a request.
    pub(crate) fn told(&self, fill: &mut dyn Fill) -> Result<Told, Exceeded> {
        let fields = self.0.iter().map(|(name, value)| Ok((name.clone(), value.value(fill)?)));
        Ok(Told(fields.collect::<Result<_, _>>()?))
    }
}

impl Told {
    /// Whether snippets say nothing to the upstream.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a field of this name is set or taken away: nobody else says it.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// The fields to send. What frames the message or belongs to the connection is ours to say.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        let sent = |(name, value): &&(Bytes, Bytes)| !value.is_empty() && !is_of_connection(name);
        self.0.iter().filter(sent).map(|(name, value)| (name, value))
    }

    /// The host that is told, where it is one: nothing else than a host and a port can stand there.
    pub(crate) fn host(&self) -> Option<&Bytes> {
        self.value("host").filter(|host| is_authority(host))
    }

    /// Whether the client's wish for another protocol is kept from the upstream.
    pub(crate) fn forbids_upgrade(&self) -> bool {
        self.value("upgrade").is_some_and(Bytes::is_empty)
    }

    /// Whether the connection is to end after this request.
    pub(crate) fn closes(&self) -> bool {
        self.value("connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"))
    }

    fn value(&self, name: &str) -> Option<&Bytes> {
        let named = |(known, _): &&(Bytes, Bytes)| known.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().find(named).map(|(_, value)| value)
    }
}

/// Whether a text can be a host with a port: it has nothing in it that ends one.
pub(crate) fn is_authority(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:[]!$&'()*+,;=%".contains(byte);
    !text.is_empty() && text.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::{Told, Towards};
    use crate::snippet::fixture::{Fixed, location, with_machine};

    fn told(text: &str, request: &Fixed) -> Told {
        let towards = Towards::new(&location(text).settings.headers.proxy_set);
        let told = with_machine(request, |machine| towards.told(machine));
        told.expect("within bounds")
    }

    fn lines(told: &Told) -> Vec<String> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        told.fields().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
    }

    #[test]
    fn what_is_set_replaces_and_what_is_empty_takes_away() {
        let request = Fixed::of(&[("http_x", "1")]);
        let text =
            "proxy_set_header X-A $http_x; proxy_set_header X-B ''; proxy_set_header X-C $http_y;";
        let told = told(text, &request);
        assert_eq!(lines(&told), ["X-A: 1"]);
        assert!(told.has(b"x-a") && told.has(b"X-B") && told.has(b"x-c") && !told.has(b"X-D"));
    }

    #[test]
    fn the_framing_and_the_connection_are_not_for_snippets() {
        let text = "proxy_set_header Content-Length 5; proxy_set_header Transfer-Encoding chunked;
            proxy_set_header Connection upgrade; proxy_set_header Upgrade h2c; proxy_set_header TE trailers;
            proxy_set_header Keep-Alive 1; proxy_set_header Host b.test:80;";
        let told = told(text, &Fixed::default());
        assert!(lines(&told).is_empty());
        assert!(!told.closes() && !told.forbids_upgrade());
        assert_eq!(told.host().map(|host| &host[..]), Some(&b"b.test:80"[..]));
    }

    #[test]
    fn a_connection_may_end_and_an_upgrade_may_be_kept_away() {
        let told = told(
            "proxy_set_header Connection Close; proxy_set_header Upgrade '';",
            &Fixed::default(),
        );
        assert!(told.closes() && told.forbids_upgrade() && told.host().is_none());
    }

    #[test]
    fn no_value_ends_its_line_and_a_host_is_a_host() {
        let text = "proxy_set_header X-U $uri; proxy_set_header Host $http_x;";
        for host in ["a b", "a/b", "a@b", "a\r\nX: y", "a#", "a\u{fc}", ""] {
            let request = Fixed { path: "/\r\nA: b".to_owned(), ..Fixed::of(&[("http_x", host)]) };
            let told = told(text, &request);
            assert_eq!(lines(&told), ["X-U: /%0D%0AA: b"]);
            assert!(told.host().is_none_or(|host| &host[..] == b"a%0D%0AX:%20y"), "{host}");
        }
    }
}
