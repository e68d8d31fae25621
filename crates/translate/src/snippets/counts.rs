//! Numbers of connections and requests, which are zero unless somebody counts.

/// Variables that say them.
const VARIABLES: &str = "$connections_";
/// The directive that does.
const DIRECTIVE: &str = "stub_status";

/// What is said of a text that tells such numbers where nobody counts; comments aside.
pub(super) fn without_counts(are_there: bool, text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with('#'));
    let told = lines.find_map(|line| {
        let line = line.replace("${", "$");
        let mut words = line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        if words.any(|word| word == DIRECTIVE) {
            return Some(DIRECTIVE.to_owned());
        }
        let rest = &line[line.find(VARIABLES)? + 1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        Some(format!("${}", &rest[..end.unwrap_or(rest.len())]))
    });
    let told = told.filter(|_| !are_there)?;
    Some(format!("{told} counts nothing without --enable-metrics: its numbers are zero"))
}

#[cfg(test)]
mod tests {
    use super::without_counts;

    #[test]
    fn numbers_that_nobody_counts_are_named() {
        let told = |text| without_counts(false, text).unwrap_or_default();
        assert!(told("location /s {stub_status;}").starts_with("stub_status counts nothing"));
        let variable = "add_header X ${connections_active}ab;";
        assert!(told(variable).starts_with("$connections_active counts nothing"));
        for text in ["# stub_status;", "set $stub_status 1;", "set $x connections_active;"] {
            assert_eq!(told(text), "", "{text}");
        }
        assert_eq!(without_counts(true, "stub_status;"), None);
    }
}
