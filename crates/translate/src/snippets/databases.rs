//! Variables of databases about clients' addresses, which have no value unless they are switched on.

use crate::settings::parse;
use std::collections::BTreeMap;

/// What is said of a text with variables of databases that nobody has switched on.
pub(super) fn without_databases(
    config_map: Option<&BTreeMap<String, String>>,
    text: &str,
) -> Option<String> {
    const BEGIN: &str = "geoip2_";
    let switch = config_map.and_then(|data| data.get("use-geoip2"));
    if switch.is_some_and(|text| parse::boolean(text.trim()) == Ok(true)) {
        return None;
    }
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with('#'));
    let mut variables = lines.flat_map(|line| line.split('$').skip(1)).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.starts_with(BEGIN).then_some(&rest[..end])
    });
    let variable = variables.next()?;
    Some(format!(
        "${variable} is always empty, since use-geoip2 of the ConfigMap is not true: switch it on, or what hangs on the \
         variable is the same for everybody"
    ))
}
