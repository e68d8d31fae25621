//! Locations of snippets, and what only locations have.

use super::{Around, Compiler, inner, not_here};
use crate::level::Level;
use crate::syntax::{Directive, Word};
use crate::typed::{
    LimitExcept, LocationKind, OwnLocation, PassTarget, Piece, ProxyRedirect, Replaced,
    Replacement, Scope, Settings, Template,
};
use crate::{Mistake, Needed};

impl Compiler<'_> {
    pub(super) fn location(
        &mut self,
        level: Level,
        directive: &Directive,
        scope: &mut Scope,
        around: Around<'_>,
    ) {
        let kind = self.location_kind(directive);
        let kind = self.value(kind);
        let misplaced = kind.as_ref().and_then(|kind| match around {
            Some(around) => kind.misplaced_in(around),
            None if level == Level::Location => {
                self.reader.need(directive, Needed::Around(kind.clone()));
                kind.misplaced_in_any()
            }
            None => None,
        });
        if let Some(why) = misplaced {
            self.wrong(not_here(directive, why));
        }
        if kind.as_ref().is_some_and(|kind| scope.locations.iter().any(|known| known.kind == *kind))
        {
            self.wrong(Mistake::refused(directive.at(), "this location is there already"));
        }
        let mut inside = Scope::default();
        self.scope(Level::Location, inner(directive), &mut inside, kind.as_ref());
        if let Some(kind) = kind {
            default_redirect(&kind, level, &mut inside.settings);
            scope.locations.push(OwnLocation { kind, scope: inside, owner: None });
        }
    }

    /// A path behind the host of a `proxy_pass` takes the place of what the location matched: where that is not known,
    /// there can be none without variables (ngx_http_proxy_module).
    pub(super) fn no_uri(&mut self, directive: &Directive, said: &Settings, around: Around<'_>) {
        let is_unknown = matches!(around, Some(LocationKind::Regex(_) | LocationKind::Named(_)));
        if is_unknown {
            self.no_uri_here(directive, said);
        }
    }

    /// The same where no location matched anything.
    pub(super) fn no_uri_here(&mut self, directive: &Directive, said: &Settings) {
        let path = said.pass.as_ref().and_then(|pass| pass.path.as_ref());
        if directive.name() == "proxy_pass" && path.is_some_and(|path| path.literal().is_some()) {
            let text = "proxy_pass has no path in a location with an expression or a name, in an if, or in limit_except";
            self.wrong(Mistake::refused(directive.at(), text));
        }
    }

    /// `[modifier] path`, of which the modifier may touch the path.
    fn location_kind(&mut self, directive: &Directive) -> Result<LocationKind, Mistake> {
        let words = directive.arguments();
        let (modifier, name) = match words {
            [modifier, name] => (modifier.text.as_str(), name.clone()),
            words => {
                let word = &words[0];
                let modifier = ["=", "^~", "~*", "~"]
                    .into_iter()
                    .find(|modifier| word.text.starts_with(modifier));
                let modifier = modifier.unwrap_or_default();
                (modifier, Word { text: word.text[modifier.len()..].to_owned(), at: word.at })
            }
        };
        if name.text.is_empty() {
            return Err(Mistake::refused(name.at, "a location without a path"));
        }
        let path = name.text.clone();
        if path.starts_with(model::RESERVED_PATHS) {
            let text = format!("paths below {} are Fairway's own", model::RESERVED_PATHS);
            return Err(Mistake::refused(name.at, text));
        }
        Ok(match modifier {
            "=" => LocationKind::Exact(path),
            "^~" => LocationKind::Prefix { path, final_prefix: true },
            "~" => LocationKind::Regex(self.reader.regex(&path, false, name.at)?),
            "~*" => LocationKind::Regex(self.reader.regex(&path, true, name.at)?),
            "" if path.starts_with('@') => LocationKind::Named(path),
            "" => LocationKind::Prefix { path, final_prefix: false },
            _ => {
                let text =
                    format!("\"{modifier}\" is no modifier of a location; =, ^~, ~ and ~* are");
                return Err(Mistake::refused(words[0].at, text));
            }
        })
    }

    pub(super) fn limit_except(&mut self, directive: &Directive, scope: &mut Scope) {
        const KNOWN: [&str; 15] = [
            "GET",
            "HEAD",
            "POST",
            "PUT",
            "DELETE",
            "MKCOL",
            "COPY",
            "MOVE",
            "OPTIONS",
            "PROPFIND",
            "PROPPATCH",
            "LOCK",
            "UNLOCK",
            "PATCH",
            "TRACE",
        ];
        if !scope.limit_except.is_empty() {
            self.wrong(Mistake::refused(directive.at(), "\"limit_except\" is said twice"));
        }
        let mut methods = Vec::new();
        for word in directive.arguments() {
            let method = word.text.to_ascii_uppercase();
            match KNOWN.contains(&method.as_str()) {
                true => methods.push(method),
                false => self.wrong(crate::read::invalid(word, "method")),
            }
        }
        if methods.iter().any(|method| method == "GET")
            && !methods.iter().any(|method| method == "HEAD")
        {
            methods.push("HEAD".to_owned());
        }
        let mut settings = Settings::default();
        for directive in inner(directive) {
            if let Some(row) = self.row(Level::LimitExcept, directive) {
                self.setting(Level::LimitExcept, directive, row, &mut settings);
                self.no_uri_here(directive, &settings);
            }
        }
        let settings = Box::new(settings);
        scope.limit_except.push(LimitExcept { methods, settings, before: None });
    }

    pub(super) fn types(&mut self, directive: &Directive, settings: &mut Settings) {
        let mut types = Vec::new();
        for line in inner(directive) {
            if line.block.is_some() || line.arguments().is_empty() {
                self.wrong(Mistake::refused(
                    line.at(),
                    "a line of types is a type and its extensions",
                ));
            }
            let extensions = line.arguments().iter().map(|word| word.text.to_ascii_lowercase());
            types.extend(extensions.map(|extension| (extension, line.name().to_owned())));
        }
        let said = crate::read::once(&mut settings.answers.types, directive, types);
        self.value(said);
    }
}

/// `proxy_redirect default`, which is what counts in a location of a server where nothing is said: the address that
/// requests are passed to becomes the path of the location (ngx_http_proxy_merge_loc_conf).
fn default_redirect(kind: &LocationKind, level: Level, settings: &mut Settings) {
    let Some(pass) = settings.pass.as_ref().filter(|pass| pass.target == PassTarget::Balancer)
    else {
        return;
    };
    let scheme = if pass.tls { "https" } else { "http" };
    let (path, to) = match (&pass.path, kind) {
        (None, _) => ("/", "/"),
        (Some(path), LocationKind::Exact(_) | LocationKind::Prefix { .. }) => {
            let Some(path) = path.literal() else { return };
            (path, kind.name())
        }
        (Some(_), LocationKind::Regex(_) | LocationKind::Named(_)) => return,
    };
    let text = |text: String| Template { pieces: [Piece::Text(text)].into() };
    let from = Replacement::Text(text(format!("{scheme}://upstream_balancer{path}")));
    let replaced = Replaced { from, to: text(to.to_owned()) };
    match &mut settings.answers.redirects {
        Some(said) => said
            .iter_mut()
            .filter(|said| **said == ProxyRedirect::Default)
            .for_each(|said| *said = ProxyRedirect::Replace(replaced.clone())),
        None if level == Level::Server => settings.answers.default_redirect = Some(replaced),
        None => {}
    }
}
