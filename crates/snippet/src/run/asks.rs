//! What texts ask of a request, known before one comes: what nobody asks for need not be kept.

use super::Table;
use super::machine::DEPTH;
use crate::typed::{Name, Piece, Pieces};
use crate::variables::of_request;
use model::Variable;
use std::collections::HashMap;

/// What texts ask for, by themselves or through variables that are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// Groups of the expression that matched last.
    pub captures: bool,
    /// Headers of the answer that the client gets: `$sent_http_…`.
    pub sent: bool,
    /// Headers of the upstream's answer: `$upstream_http_…`, `$upstream_cookie_…`.
    pub upstream: bool,
    /// Numbers of connections: `$connections_…`.
    pub counts: bool,
}

impl Asks {
    /// What either asks for.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            captures: self.captures || other.captures,
            sent: self.sent || other.sent,
            upstream: self.upstream || other.upstream,
            counts: self.counts || other.counts,
        }
    }

    fn of(piece: &Piece) -> Self {
        let nothing = Self::default();
        match piece {
            Piece::Capture(_) => Self { captures: true, ..nothing },
            Piece::Known(Variable::ResponseHeader(_)) => Self { sent: true, ..nothing },
            Piece::Known(Variable::UpstreamHeader(_)) => Self { upstream: true, ..nothing },
            Piece::Other(other) if other.row.name == "upstream_cookie_" => {
                Self { upstream: true, ..nothing }
            }
            Piece::Other(other) if other.row.name.starts_with("connections_") => {
                Self { counts: true, ..nothing }
            }
            // Where nobody has set it, it is what the request has under that name.
            Piece::Own(name) => of_request(&name.0).map_or(nothing, |piece| Self::of(&piece)),
            Piece::Text(_) | Piece::Known(_) | Piece::Other(_) => nothing,
        }
    }
}

/// What `values` ask for, `known` being what the variables ask for that tables make.
pub(super) fn of_values(values: &[&dyn Pieces], known: &HashMap<Name, Asks>) -> Asks {
    let mut asks = Asks::default();
    for value in values {
        value.pieces(&mut |piece| {
            asks = asks.or(Asks::of(piece));
            if let Piece::Own(name) = piece {
                asks = asks.or(known.get(name).copied().unwrap_or_default());
            }
        });
    }
    asks
}

/// What variables ask for that tables make: a table may look up others, as deep as a request goes.
pub(super) fn of_tables(tables: &HashMap<Name, Table>) -> HashMap<Name, Asks> {
    let mut known = HashMap::new();
    for _ in 0..DEPTH {
        let now: HashMap<_, _> = tables
            .iter()
            .map(|(name, table)| (name.clone(), of_values(&[table], &known)))
            .filter(|(_, asks)| *asks != Asks::default())
            .collect();
        if now == known {
            break;
        }
        known = now;
    }
    known
}

#[cfg(test)]
mod tests {
    use super::Asks;
    use crate::run::Tables;
    use crate::{Context, Names, Snippet};

    /// What a `configuration-snippet` asks for beside an `http-snippet`.
    fn asks(http: &str, text: &str) -> Asks {
        let parse = |place, text| Snippet::parse(place, text).expect("the test writes a snippet");
        let (http, text) = (parse(Context::Http, http), parse(Context::Location, text));
        let mut names = Names::default();
        http.declare(&mut names);
        text.declare(&mut names);
        let understood = |snippet: &Snippet| snippet.understand(&names).expect("it is right");
        let tables = Tables::new(&[&understood(&http).http]);
        let scope = understood(&text).scope;
        tables.asks(&[&scope.settings, &scope.program, &scope.branches, &scope.limit_except])
    }

    #[test]
    fn what_is_asked_for_is_found_in_every_kind_of_text() {
        let captures = Asks { captures: true, ..Asks::default() };
        for text in [
            "more_set_headers 'X-A: $1';",
            "proxy_set_header X-A a$2;",
            "return 200 $1;",
            "if ($host = $1) { set $x 1; }",
            "if ($host) { add_header X-A $1; }",
            "rewrite ^/(a)$ /$1?x=$1 last;",
            "error_page 404 /$1;",
            "expires $1;",
            "proxy_cookie_path / /$1;",
            "sub_filter a $1;",
        ] {
            assert_eq!(asks("", text), captures, "{text}");
        }
        // Text that only looks like it.
        let text = r#"add_header X-A "Capture(ResponseHeader(UpstreamHeader(";"#;
        assert_eq!(asks("", text), Asks::default());
        let both = "add_header X-A $sent_http_etag; proxy_set_header X-B $upstream_cookie_a;";
        assert_eq!(asks("", both), Asks { sent: true, upstream: true, ..Asks::default() });
    }

    #[test]
    fn a_variable_that_a_table_makes_asks_for_what_the_table_looks_at() {
        let http =
            "map $sent_http_content_type $deep { default $deeper; } map $host $plain { a b; }
            map $upstream_http_x $deeper { ~^(.)$ $1; }";
        let all = Asks { captures: true, sent: true, upstream: true, counts: false };
        assert_eq!(asks(http, "add_header X-A $deep;"), all);
        assert_eq!(asks(http, "set $x $deeper;"), Asks { sent: false, ..all });
        assert_eq!(asks(http, "add_header X-A $plain;"), Asks::default());
        let counts = Asks { counts: true, ..Asks::default() };
        assert_eq!(asks("map $connections_active $n { 1 1; }", "set $x $n;"), counts);
    }
}
