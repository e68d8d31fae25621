//! The variables that snippets declare, for texts of annotations and of the ConfigMap: nginx knows them everywhere.

use super::names::{ANNOTATIONS, KEYS, place};
use super::parse;
use crate::settings::Settings;
use model::snippet::{Knowledge, OtherRow};
use model::{BadTemplate, Part, Template, Variable};
use snippet::{Context, Names};
use std::sync::Arc;

/// What is known of a variable that this process does not know by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// A snippet declares it.
    Declared,
    /// It has its value.
    Native,
    /// It is always empty here.
    Empty,
    /// It takes nginx.
    Nginx,
    /// It takes a module, or a version, that not every nginx is.
    Module,
    /// Nobody knows it.
    Nowhere,
}

/// The variables that the snippets of the ConfigMap and of one Ingress declare.
#[derive(Debug, Default)]
pub(crate) struct Declared(Names);

impl Declared {
    /// Those of the object whose settings are read, and of the ConfigMap.
    pub(crate) fn of(settings: &Settings<'_>) -> Self {
        let mut names = Names::default();
        let mut add = |context: Context, text: &str| {
            // One that is wrong is told of elsewhere.
            if let Ok(snippet) = parse(context, text) {
                snippet.declare(&mut names);
            }
        };
        let data = settings.scope().config_map.map(|(_, data)| data);
        for (name, context) in KEYS {
            data.and_then(|data| data.get(name)).into_iter().for_each(|text| add(context, text));
        }
        for name in ANNOTATIONS.into_iter().filter(|_| settings.scope().allows_snippets) {
            settings.raw(name).into_iter().for_each(|text| add(place(name), &text));
        }
        Self(names)
    }

    /// What is known of a variable.
    pub(crate) fn knows(&self, name: &str) -> Known {
        if self.0.has(name) {
            return Known::Declared;
        }
        match OtherRow::of(name) {
            None => Known::Nowhere,
            Some(row) => match row.fate {
                Knowledge::Native => Known::Native,
                Knowledge::Empty if is_of_module(row.name) => Known::Module,
                Knowledge::Empty => Known::Empty,
                Knowledge::NeedsNginx if row.name.starts_with("request_body") => Known::Nginx,
                Knowledge::NeedsNginx => Known::Module,
            },
        }
    }
}

/// Whether `http-snippet` makes a variable of the controller, whose own table then has no effect.
pub(crate) fn makes(settings: &Settings<'_>, name: &str) -> bool {
    let text = settings.scope().config_map.and_then(|(_, data)| data.get("http-snippet"));
    text.and_then(|text| parse(Context::Http, text).ok()).is_some_and(|http| http.makes(name))
}

/// Text with variables, among them those that snippets of the same object or of the ConfigMap declare, and those that
/// only snippets have else.
pub(crate) fn template(settings: &Settings<'_>, text: &str) -> Result<Template, BadTemplate> {
    read(settings, text, |_, _| false)
}

/// The same for the value of a header field: one without a value takes the field away, whoever has sent it.
pub(crate) fn field(settings: &Settings<'_>, text: &str) -> Result<Template, BadTemplate> {
    read(settings, text, |known, name| known == Known::Empty || name.starts_with("connections_"))
}

fn read(
    settings: &Settings<'_>,
    text: &str,
    is_fit: impl Fn(Known, &str) -> bool,
) -> Result<Template, BadTemplate> {
    Template::parse(text).or_else(|_| {
        let declared = Declared::of(settings);
        let raw = settings.scope().raw;
        Template::parse_for(text, |name| {
            let name = name.to_ascii_lowercase();
            let known = declared.knows(&name);
            let of_controller = OtherRow::part(&name).filter(|_| known != Known::Declared);
            let of_nginx = raw && matches!(known, Known::Empty | Known::Nginx);
            let is_known = of_nginx || known == Known::Declared || is_fit(known, &name);
            let of_snippets = || Part::Variable(Variable::OfSnippets(name.as_str().into()));
            of_controller.or_else(|| is_known.then(of_snippets))
        })
    })
}

/// The variables of a text that have no value here though nginx has one.
pub(crate) fn empty_in(settings: &Settings<'_>, text: &Template) -> Vec<Arc<str>> {
    if settings.scope().raw {
        return Vec::new();
    }
    let names = text.parts().iter().filter_map(|part| match part {
        Part::Variable(Variable::OfSnippets(name)) if &**name != "ssl_early_data" => Some(name),
        Part::Variable(_) | Part::Text(_) | Part::Capture(_) => None,
    });
    let mut declared: Option<Declared> = None;
    names
        .filter(|name| {
            let declared = declared.get_or_insert_with(|| Declared::of(settings));
            declared.knows(name) == Known::Empty
        })
        .cloned()
        .collect()
}

/// Whether an nginx may lack the variable: it is built without the module, or older.
fn is_of_module(name: &str) -> bool {
    matches!(name, "http3" | "quic" | "proxy_protocol_tlv_") || name.starts_with("proxy_internal_")
}
