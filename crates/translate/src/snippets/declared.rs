//! The variables that snippets declare, for texts of annotations and of the ConfigMap: nginx knows them everywhere.

use super::names::{ANNOTATIONS, KEYS, place};
use super::parse;
use crate::settings::Settings;
use model::snippet::{Knowledge, OtherRow};
use model::{BadTemplate, Part, Template, Variable};
use snippet::{Context, Names};

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

/// Text with variables, among them those that snippets of the same object or of the ConfigMap declare.
pub(crate) fn template(settings: &Settings<'_>, text: &str) -> Result<Template, BadTemplate> {
    Template::parse(text).or_else(|_| {
        let declared = Declared::of(settings);
        Template::parse_for(text, |name| {
            let name = name.to_ascii_lowercase();
            let is_declared = declared.knows(&name) == Known::Declared;
            is_declared.then(|| Part::Variable(Variable::OfSnippets(name.into())))
        })
    })
}

/// Whether an nginx may lack the variable: it is built without the module, or older.
fn is_of_module(name: &str) -> bool {
    matches!(name, "http3" | "quic" | "proxy_protocol_tlv_") || name.starts_with("proxy_internal_")
}
