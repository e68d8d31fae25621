//! Variables of databases about clients' addresses, which have no value unless they are switched on.

use crate::settings::parse;
use std::collections::BTreeMap;

/// Whether a ConfigMap asks for the databases.
pub(crate) fn are_on(config_map: Option<&BTreeMap<String, String>>) -> bool {
    let switch = config_map.and_then(|data| data.get("use-geoip2"));
    switch.is_some_and(|text| parse::boolean(text.trim()) == Ok(true))
}

/// The first variable of a database in a text, comments aside.
pub(crate) fn variable(text: &str) -> Option<&str> {
    const BEGIN: &str = "geoip2_";
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with('#'));
    let mut variables = lines.flat_map(|line| line.split('$').skip(1)).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.starts_with(BEGIN).then_some(&rest[..end])
    });
    variables.next()
}

/// What is said of a text with variables of databases that nobody has switched on.
pub(super) fn without_databases(
    config_map: Option<&BTreeMap<String, String>>,
    text: &str,
) -> Option<String> {
    let variable = variable(text).filter(|_| !are_on(config_map))?;
    Some(format!(
        "${variable} is always empty, since use-geoip2 of the ConfigMap is not true: switch it on, or what hangs on the \
         variable is the same for everybody"
    ))
}
