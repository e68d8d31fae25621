//! The variables that a snippet may name: those of a request, those that only snippets know, and those it declares.

use crate::mistake::{meant, shown};
use crate::syntax::{Block, Directive, Word};
use crate::typed::{Name, Piece, Template};
use crate::{Mistake, Position};
use model::snippet::{Knowledge, OTHERS, Other, OtherRow};
use model::{Pattern, Variable};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Variables that nginx or ingress-nginx's template lets `set` change.
const CHANGEABLE: &[&str] = &[
    "args",
    "limit_rate",
    "namespace",
    "ingress_name",
    "service_name",
    "service_port",
    "location_path",
    "proxy_upstream_name",
    "proxy_alternative_upstream_name",
    "proxy_host",
    "pass_access_scheme",
    "pass_server_port",
    "best_http_host",
    "pass_port",
    "req_id",
    "connection_upgrade",
    "auth_cookie",
    "loggable",
    "balancer_ewma_score",
    "cors",
    "force_ssl_redirect",
    "ssl_redirect",
    "force_no_ssl_redirect",
    "preserve_trailing_slash",
    "use_port_in_redirects",
    "proxy_port",
    "invalid_referer",
    "full_x_forwarded_for",
    "subdomain",
];

/// Variables that each location of an Ingress sets before its snippets do.
pub(crate) const SET_BY_LOCATIONS: &[&str] = &[
    "namespace",
    "ingress_name",
    "service_name",
    "service_port",
    "location_path",
    "proxy_upstream_name",
    "proxy_alternative_upstream_name",
    "proxy_host",
    "pass_access_scheme",
    "pass_server_port",
    "best_http_host",
    "pass_port",
    "force_ssl_redirect",
    "ssl_redirect",
    "force_no_ssl_redirect",
    "preserve_trailing_slash",
    "use_port_in_redirects",
];

/// Beginnings of names that every snippet may set: nginx looks such a variable up only where nobody declared it.
const CHANGEABLE_PREFIXES: &[&str] = &[
    "http_",
    "sent_http_",
    "sent_trailer_",
    "upstream_http_",
    "upstream_trailer_",
    "upstream_cookie_",
    "cookie_",
    "arg_",
    "geoip2_",
    "ssl_",
    "proxy_protocol_tlv_",
    "authheader",
];

/// What a name stands for, where no snippet sets it.
pub(crate) fn of_request(name: &str) -> Option<Piece> {
    if let Some(variable) = Variable::named(name) {
        return Some(Piece::Known(variable));
    }
    let row = OtherRow::of(name)?;
    Some(Piece::Other(Other { row, rest: name[row.name.len()..].to_owned() }))
}

/// The variables that snippets declare: by `set`, `map`, `geo`, `split_clients`, `auth_request_set` and named groups of
/// expressions. One set is for all snippets that a request may meet: in nginx a name is known wherever one of them
/// declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// As they are written, and as they are told from those that others write alike.
    own: BTreeMap<Arc<str>, Name>,
    /// Whose the next ones are; nobody's: everybody's.
    owner: Option<Arc<str>>,
}

impl Names {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Whether one of them is called so.
    pub fn has(&self, name: &str) -> bool {
        self.own.contains_key(name.to_ascii_lowercase().as_str())
    }

    /// Adds those of other snippets.
    pub fn merge(&mut self, others: &Self) {
        for (name, own) in &others.own {
            self.own.entry(Arc::clone(name)).or_insert_with(|| own.clone());
        }
    }

    /// The same for snippets of a tenant: what they declare besides is theirs alone, even where another tenant's
    /// variables have the same names and one request meets both.
    #[must_use]
    pub fn of_tenant(&self, owner: &str) -> Self {
        Self { own: self.own.clone(), owner: Some(owner.into()) }
    }

    /// Adds what `directives` declare.
    pub fn declare(&mut self, directives: &[Directive]) {
        for directive in directives {
            self.declare_one(directive);
            if let Some(Block::Directives(inner)) = &directive.block {
                self.declare(inner);
            }
        }
    }

    fn declare_one(&mut self, directive: &Directive) {
        let arguments = directive.arguments();
        let target = match directive.name() {
            "set" | "auth_request_set" => arguments.first(),
            "map" | "geo" | "split_clients" => arguments.last(),
            // What takes nginx is one thing to say; its variable is not unknown besides.
            "set_by_lua" | "set_by_lua_block" | "set_by_lua_file" | "set_escape_uri" | "js_set"
            | "js_var" | "perl_set" => arguments.first(),
            _ => None,
        };
        let name = target.and_then(|word| word.text.strip_prefix('$')).filter(|name| is_name(name));
        if let Some(name) = name {
            self.add(name);
        }
        for word in &directive.words {
            groups(&word.text)
                .into_iter()
                .filter_map(|(_, name)| name)
                .for_each(|name| self.add(&name));
        }
    }

    fn add(&mut self, name: &str) {
        let name = own(name);
        // What is a request's by that name stays so: it is asked for by its name where nobody has set it.
        let owner = self.owner.as_ref().filter(|_| of_request(&name.0).is_none());
        let known = owner.map_or_else(|| name.clone(), |owner| Name::of(owner, &name));
        self.own.entry(name.0).or_insert(known);
    }

    /// The variable that a directive other than `set` declares, `word` being `$name`.
    pub(crate) fn target(&self, word: &str, at: Position) -> Result<Name, Mistake> {
        let name = self.changeable(word, at)?;
        match names_upstream(&name.0) {
            true => Err(Mistake::refused(at, format!("{name} is set by \"set\" and nothing else"))),
            false => Ok(name),
        }
    }

    /// The variable that a table makes.
    pub(crate) fn made(&self, word: &Word) -> Result<Name, Mistake> {
        self.changeable(&word.text, word.at)
    }

    /// The variable that a `set` declares.
    pub(crate) fn changeable(&self, word: &str, at: Position) -> Result<Name, Mistake> {
        let name = word.strip_prefix('$').ok_or_else(|| {
            Mistake::refused(
                at,
                format!("\"{}\" is no variable: it must begin with \"$\"", shown(word)),
            )
        })?;
        if !is_name(name) {
            return Err(Mistake::refused(
                at,
                format!("\"{}\" is no name of a variable", shown(word)),
            ));
        }
        let name = own(name);
        let changeable = CHANGEABLE.contains(&&*name.0)
            || CHANGEABLE_PREFIXES.iter().any(|prefix| name.0.starts_with(prefix));
        match changeable || of_request(&name.0).is_none() {
            true => Ok(self.own.get(&name.0).cloned().unwrap_or(name)),
            false => Err(Mistake::refused(
                at,
                format!("{name} is a variable of nginx that nobody may set"),
            )),
        }
    }

    fn find(&self, name: &str, at: Position) -> Result<Piece, Mistake> {
        let lower = name.to_ascii_lowercase();
        if lower == "args" {
            return Ok(Piece::Known(Variable::Args));
        }
        if let Some(own) = self.own.get(lower.as_str()) {
            return Ok(Piece::Own(own.clone()));
        }
        match of_request(&lower) {
            Some(Piece::Other(Other {
                row: OtherRow { fate: Knowledge::NeedsNginx, doc, .. },
                ..
            })) => Err(Mistake::needs_nginx(at, format!("the variable ${lower}: {doc}"))),
            Some(piece) => Ok(piece),
            None => {
                let others = OTHERS.iter().map(|row| row.name);
                let own = self.own.keys().map(|name| &**name);
                let hint = meant(&lower, others.chain(own).chain(OFTEN.iter().copied()));
                Err(Mistake::refused(at, format!("unknown variable ${}{hint}", shown(name))))
            }
        }
    }

    /// Reads text with variables as nginx does: `$name`, `${name}`, `$1` to `$9`.
    pub(crate) fn template(&self, text: &str, at: Position) -> Result<Template, Mistake> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            push(&mut pieces, &rest[..dollar]);
            let after = &rest[dollar + 1..];
            if let Some(digit @ '1'..='9') = after.chars().next() {
                pieces.push(Piece::Capture(digit as usize - '0' as usize));
                rest = &after[1..];
                continue;
            }
            let (name, left) = variable_name(after, at)?;
            pieces.push(self.find(name, at)?);
            rest = left;
        }
        push(&mut pieces, rest);
        Ok(Template { pieces: pieces.into() })
    }
}

/// Names for the hint about an unknown one: those that are met most.
const OFTEN: &[&str] = &[
    "host",
    "uri",
    "args",
    "scheme",
    "request_uri",
    "request_method",
    "remote_addr",
    "http_host",
    "http_user_agent",
    "http_upgrade",
    "http_origin",
    "http_referer",
    "best_http_host",
    "server_name",
    "server_port",
    "proxy_add_x_forwarded_for",
    "proxy_upstream_name",
    "req_id",
    "request_id",
    "is_args",
    "query_string",
    "document_uri",
    "service_name",
    "service_port",
    "namespace",
    "ingress_name",
    "status",
    "pass_access_scheme",
    "pass_port",
    "remote_user",
    "ssl_client_verify",
];

/// Whether a variable names the upstream that requests are passed to.
pub fn names_upstream(name: &str) -> bool {
    matches!(name, "proxy_upstream_name" | "proxy_alternative_upstream_name")
}

fn own(name: &str) -> Name {
    Name(name.to_ascii_lowercase().into())
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

/// Splits what follows a `$` into the name and the rest.
fn variable_name(text: &str, at: Position) -> Result<(&str, &str), Mistake> {
    let inner = text.strip_prefix('{');
    let text = inner.unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = match inner {
        None => rest,
        Some(_) => rest.strip_prefix('}').ok_or_else(|| {
            Mistake::refused(
                at,
                format!("the \"}}\" that closes the variable \"{}\" is missing", shown(name)),
            )
        })?,
    };
    match name.is_empty() {
        false => Ok((name, rest)),
        true => Err(Mistake::refused(at, "a \"$\" without the name of a variable")),
    }
}

/// The groups of a regular expression that capture, counted from 1, with their names.
pub(crate) fn groups(source: &str) -> Vec<(usize, Option<String>)> {
    (1..).zip(Pattern::names(source)).collect()
}

#[cfg(test)]
mod tests {
    use super::groups;

    #[test]
    fn groups_are_counted_as_pcre_counts_them() {
        let named = |text: &str| Some(text.to_owned());
        let expected = vec![(1, None), (2, named("a")), (3, named("b"))];
        assert_eq!(groups(r"^(x)(?:y)(?<a>[()])(?P<b>\()(?=z)(?<!q)"), expected);
        assert_eq!(groups(r"[](]"), []);
        assert_eq!(groups("^/(?<a>x))").len(), 1, "the parenthesis of a condition is at its end");
        assert_eq!(
            groups(
                r"[[:alpha:](](?#()\Q(\E(?x)#(
            (?<n>a)"
            ),
            [(1, named("n"))]
        );
    }
}
