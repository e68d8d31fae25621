//! `rewrite-target`, `x-forwarded-prefix`, `use-regex` and `app-root`: other paths towards the upstream, and paths
//! that are regular expressions.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Risk, Settings, parse};
use model::policy::Rewrite;
use model::{PathKind, Pattern, Template, fixed_start};

pub(super) const FAMILY: Family =
    Family { name: "rewrite", keys: &[&TARGET, &REGEX, &PREFIX, &APP_ROOT], apply: |_, _| {} };

static TARGET: Key<String> = Key::annotation("rewrite-target", target)
    .exact()
    .free(parse::line)
    .says(
        "path with $1 … $9",
        "none",
        "The path towards the upstream; $1 … $9 are the groups of the Ingress's path, which becomes a regular expression, \
         and with it every path of the host. An address (http://, https://, $scheme://) is where clients are redirected \
         to (302), with their query.",
    )
    .risk(Risk::Medium);

static REGEX: Key<bool> = Key::annotation("use-regex", parse::boolean).exact().switch(
    false,
    "The paths of the Ingress are regular expressions, and with them every path of the host.",
);

static PREFIX: Key<String> = Key::annotation("x-forwarded-prefix", prefix)
    .says(
        "path with $1 … $9",
        "none",
        "X-Forwarded-Prefix towards the upstream, where rewrite-target changes the path; $1 … $9 are the groups of the path.",
    )
    .risk(Risk::Medium)
    .free(parse::line)
    .on_bad(OnBad::Reject);

static APP_ROOT: Key<String> = Key::annotation("app-root", app_root)
    .exact()
    .free(|text| absolute(parse::line(text)?))
    .says(
        "path",
        "none",
        "Requests for exactly / are redirected there (302). Of several paths of a host the longest one's counts.",
    )
    .risk(Risk::Medium);

/// What the annotations ask for; what it means depends on the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rewriting {
    target: Option<(String, Template)>,
    prefix: Option<Template>,
    regex: bool,
}

/// What it means for one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RewritingOfPath {
    /// The path is never split into `/p` and `/p/`.
    pub(crate) whole: bool,
    /// The whole host matches by regular expressions.
    pub(crate) regex: bool,
    /// The rewrite, or why the path makes no pattern for it.
    pub(crate) rewrite: Option<Result<Rewrite, String>>,
}

pub(super) fn read(settings: &mut Settings<'_>) -> Rewriting {
    let regex = settings.get_or(&REGEX, false);
    let prefix = template(settings, &PREFIX).flatten().map(|(_, template)| template);
    let target = template(settings, &TARGET);
    // Whatever the paths become, they are expressions: those that are closed would be mere texts else.
    let regex = regex || matches!(target, Some(None));
    Rewriting { target: target.flatten(), prefix, regex }
}

/// Where requests for exactly `/` are redirected to.
pub(super) fn read_app_root(settings: &mut Settings<'_>) -> Option<Template> {
    template(settings, &APP_ROOT).flatten().map(|(_, template)| template)
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(rewrite: Option<&Rewrite>, lines: &mut Lines) {
    // Its pattern is the path.
    let Some(Rewrite { pattern: _, target, prefix }) = rewrite else { return };
    lines.add("rewrite.target", target).by(&[&TARGET]);
    lines.add("rewrite.prefix", prefix).by(&[&PREFIX]);
}

/// A value with variables, if there is one. They all exist: else the Ingress is denied, and it is none.
fn template(settings: &mut Settings<'_>, key: &Key<String>) -> Option<Option<(String, Template)>> {
    let text = settings.get(key)?;
    Some(match Template::parse(&text) {
        Ok(template) => Some((text, template)),
        Err(unknown) => {
            let reason = format!("{unknown}: use $1 to $9, or a variable that nginx has");
            settings.deny(key.about.name, &reason);
            None
        }
    })
}

impl Rewriting {
    /// Whether a path is compiled, because of something special in it.
    pub(crate) fn makes_pattern_of(&self, path: &str) -> bool {
        (self.regex || self.target.is_some()) && fixed_start(path) != path
    }

    /// What it means for a path (compat/behaviour.md section 5).
    pub(crate) fn of_path(&self, path: &str, kind: PathKind) -> RewritingOfPath {
        let (matching, pattern) = self.matching(path, kind);
        let Some(((_, target), pattern)) = self.target.as_ref().zip(pattern) else {
            return matching;
        };
        let rewrite = match Pattern::for_captures(&pattern, true) {
            Ok(pattern) => {
                let (target, prefix) = (target.clone(), self.prefix.clone());
                Ok(Rewrite { pattern, target, prefix })
            }
            Err(error) => {
                Err(format!("the path {path} is no regular expression: {}", error.reason))
            }
        };
        RewritingOfPath { rewrite: Some(rewrite), ..matching }
    }

    /// The same without the rewrite, and the expression that this takes, if there is one.
    pub(crate) fn matching(&self, path: &str, kind: PathKind) -> (RewritingOfPath, Option<String>) {
        let Some((text, _)) = &self.target else {
            let (whole, regex) = (self.regex, self.regex);
            return (RewritingOfPath { whole, regex, rewrite: None }, None);
        };
        let differs = text != path;
        // A Prefix path that is its own target is split first, and then `/path/` is no longer the target.
        let split_differs = !differs
            && !self.regex
            && kind == PathKind::Prefix
            && path != "/"
            && !path.ends_with('/');
        let pattern = match (differs, split_differs) {
            (true, _) => Some(path.to_owned()),
            (false, true) => Some(format!("{path}/")),
            (false, false) => None,
        };
        let whole = self.regex || differs;
        let regex = self.regex || differs || split_differs;
        (RewritingOfPath { whole, regex, rewrite: None }, pattern)
    }
}

fn target(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._~/:$".contains(c);
    if text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("is no path: write letters, digits, - . _ ~ / : and $1 to $9 only, such as /$1".to_owned())
}

fn prefix(text: &str) -> Result<String, String> {
    target(&text.replace(' ', "")).map(|_| text.to_owned())
}

fn app_root(text: &str) -> Result<String, String> {
    target(text).and_then(absolute)
}

fn absolute(text: String) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text)
    } else {
        Err("is no absolute path: write one such as /app".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Rewriting, Template};
    use model::PathKind::{Exact, Prefix};

    fn to(target: &str) -> Rewriting {
        let template = Template::parse(target).expect("no unknown variable");
        Rewriting { target: Some((target.to_owned(), template)), ..Rewriting::default() }
    }

    #[test]
    fn a_path_that_is_its_own_target_is_not_rewritten_but_what_is_below_it() {
        let own = to("/foo").of_path("/foo", Prefix);
        assert!(!own.whole && own.regex);
        let rewrite = own.rewrite.expect("for /foo/").expect("a pattern");
        assert_eq!(rewrite.pattern.source(), "/foo/");
        assert_eq!(to("/foo").of_path("/foo", Exact).rewrite, None);
        assert!(!to("/").of_path("/", Prefix).regex);
    }

    #[test]
    fn another_target_makes_the_path_a_pattern() {
        let path = to("/$1").of_path("/api/(.*)", Prefix);
        assert!(path.whole && path.regex);
        assert!(path.rewrite.expect("a rewrite").is_ok());
        assert!(to("/x").of_path("/(", Prefix).rewrite.expect("a rewrite").is_err());
    }
}
