//! Variables of databases about clients' addresses, which have no value unless they are switched on.

use super::names::context;
use super::parse;
use snippet::Snippet;

/// The first variable of a database in a text that an object has under this name, comments of snippets aside.
pub(crate) fn variable_in(name: &str, text: &str) -> Option<String> {
    match context(name) {
        Some(context) => of_snippet(&parse(context, text).ok()?).map(str::to_owned),
        None => variable(text).map(str::to_owned),
    }
}

fn of_snippet(snippet: &Snippet) -> Option<&str> {
    snippet.words().find_map(variable)
}

fn variable(text: &str) -> Option<&str> {
    variables(text).find(|name| name.starts_with("geoip2_"))
}

/// The variables of a text.
pub(super) fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

/// What is said of a snippet with variables of databases that nobody has switched on.
pub(super) fn without_databases(snippet: &Snippet) -> Option<String> {
    let variable = of_snippet(snippet)?;
    Some(format!(
        "${variable} is always empty, since use-geoip2 of the ConfigMap is not true: switch it on, or what hangs on the \
         variable is the same for everybody"
    ))
}
