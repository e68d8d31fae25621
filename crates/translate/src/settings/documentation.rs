//! The documentation that keys carry: rows of tables, and the pages made of them.

use super::{ANNOTATIONS, About, CONFIG_MAP, NameFate, Risk};
use crate::annotations::FAMILIES;
use crate::config_map;
use std::fmt::Write;

/// What becomes of a key of ingress-nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It works.
    Works,
    /// It is accepted and does nothing yet; guards deny.
    NotYet,
    /// It sets something that only nginx has.
    Nginx,
    /// It is accepted and does nothing, because what it tunes does not exist here.
    NoEffect,
    /// ingress-nginx removed it.
    Removed,
}

/// A key as the documentation has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its family or area: the name of the file that reads it; none if nothing does.
    pub family: Option<&'static str>,
    /// Its name, without prefix.
    pub name: &'static str,
    /// Its other names.
    pub aliases: Vec<&'static str>,
    /// What a value looks like.
    pub kind: &'static str,
    /// What counts when nothing is written.
    pub default: &'static str,
    /// How much harm a value can do.
    pub risk: Risk,
    /// What becomes of it.
    pub fate: Fate,
    /// One sentence.
    pub doc: &'static str,
    /// Why it does nothing, if it does nothing.
    pub reason: &'static str,
    /// Whether it does something in the nginx engine all the same.
    pub in_nginx: bool,
    /// Whether the other of annotation and ConfigMap has it, too.
    pub in_both: bool,
}

/// Every annotation, by name.
pub fn annotation_rows() -> Vec<Row> {
    let keys =
        FAMILIES.iter().flat_map(|family| family.keys.iter().map(|key| (family.name, key.about())));
    let read = keys.filter(|(_, about)| about.in_annotations());
    let read = read.map(|(family, about)| works(family, about, about.name));
    sorted(read.chain(ANNOTATIONS.iter().map(unread)).collect())
}

/// Every key of the ConfigMap, by name.
pub fn config_map_rows() -> Vec<Row> {
    let keys = config_map::keys().map(|(area, key)| (area, key.about()));
    let read = keys.filter_map(|(area, about)| {
        // Only annotations have other names.
        Some(Row { aliases: Vec::new(), ..works(area, about, about.in_config_map()?) })
    });
    sorted(read.chain(CONFIG_MAP.iter().map(unread)).collect())
}

fn works(family: &'static str, about: &About, name: &'static str) -> Row {
    Row {
        family: Some(family),
        name,
        aliases: about.aliases.to_vec(),
        kind: about.kind,
        default: about.default,
        risk: about.risk,
        fate: Fate::Works,
        doc: about.doc,
        reason: "",
        in_nginx: false,
        in_both: about.in_annotations() && about.in_config_map().is_some(),
    }
}

fn unread(name: &super::names::Name) -> Row {
    let fate = match name.fate {
        NameFate::Later => Fate::NotYet,
        NameFate::Nginx => Fate::Nginx,
        NameFate::Snippet => Fate::Works,
        NameFate::NoEffect | NameFate::Tuning => Fate::NoEffect,
        NameFate::Removed => Fate::Removed,
    };
    Row {
        family: (fate == Fate::Works).then_some("snippets"),
        name: name.name,
        aliases: name.aliases.clone(),
        kind: name.kind,
        default: name.default,
        risk: name.risk,
        fate,
        doc: name.doc,
        reason: name.reason,
        in_nginx: name.fate == NameFate::Tuning,
        in_both: false,
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| row.name);
    rows
}

/// Title of what the native engine cannot do.
const NGINX: &str = "Works in the nginx engine only";

/// The page docs/annotations.md.
pub fn annotations_markdown() -> String {
    let mut page = "# Annotations\n\nGenerated from the keys in `crates/translate`; do not edit.\n\n\
        Each name follows the prefix `nginx.ingress.kubernetes.io/` (`--annotations-prefix`). An annotation counts before \
        the key of the same name in the ConfigMap, where there is one ([configmap.md](configmap.md)). A value that cannot be \
        read is a problem on the Ingress, and the ConfigMap's value or the default counts instead unless the table says \
        otherwise. Guards that do not work yet deny: the paths of their Ingress answer 503.\n\n\
        The table says what counts among Ingresses of one namespace. On a host that another namespace owns, which is that \
        of the oldest Ingress with a rule for it, an Ingress has its own paths and what its annotations say about them, \
        but nothing that is the host's or another one's: `server-alias`, `app-root`, `canary`, `ssl-ciphers`, \
        `auth-tls-*`, `ssl-passthrough`, `use-regex`, `server-snippet` and `from-to-www-redirect` have no effect on it, \
        each with a problem that says so. [tenancy.md](tenancy.md) has the rules, and the key `allow-cross-namespace` \
        that lifts them one by one.\n"
        .to_owned();
    let rows = annotation_rows();
    section(&mut page, "Works", &rows, Fate::Works, true);
    section(&mut page, "Not yet", &rows, Fate::NotYet, true);
    section(&mut page, NGINX, &rows, Fate::Nginx, true);
    section(&mut page, "Accepted, without effect", &rows, Fate::NoEffect, true);
    section(&mut page, "Removed from ingress-nginx", &rows, Fate::Removed, true);
    page
}

/// The page docs/configmap.md.
pub fn config_map_markdown() -> String {
    let mut page = "# The ConfigMap\n\nGenerated from the keys in `crates/translate`; do not edit.\n\n\
        Keys of the ConfigMap that `--configmap` names. Changes count at once. A value that cannot be read is a problem on \
        the ConfigMap, and the default counts. A guard that cannot be read (a network, a block list, `global-auth-url`) \
        keeps its last good text in force until it is mended, and where there was none there is none. At a start, when nothing \
        is known of before, every location answers 503, and such a Pod is not ready. So it is with `--manifests` where nothing of the \
        ConfigMap can be read, since a value is no text, say, or where it is not to be seen and there is a file of which \
        nobody can tell what it holds (no YAML, or no `kind`): it may be there. So it is where the ConfigMap is made, or made \
        anew, while Pods run, which stay ready. `proxy-real-ip-cidr` is such a guard if \
        forwarded headers or the PROXY protocol are to be believed. Where the ConfigMap is deleted, defaults count from then on, and what it guarded is open.\n"
        .to_owned();
    let rows = config_map_rows();
    section(&mut page, "Works", &rows, Fate::Works, false);
    section(&mut page, "Not yet", &rows, Fate::NotYet, false);
    section(&mut page, NGINX, &rows, Fate::Nginx, false);
    section(&mut page, "Accepted, without effect", &rows, Fate::NoEffect, false);
    page
}

fn section(page: &mut String, title: &str, rows: &[Row], fate: Fate, risk: bool) {
    let (head, line) = if risk { (" Risk |", "---|") } else { ("", "") };
    let rows: Vec<&Row> = rows.iter().filter(|row| row.fate == fate).collect();
    if rows.is_empty() {
        return;
    }
    let mut text = format!(
        "\n## {title}\n\n| Key | Value | Default |{head} What it does |\n|---|---|---|{line}---|\n"
    );
    for row in rows {
        let names: Vec<String> = std::iter::once(&row.name)
            .chain(&row.aliases)
            .map(|name| format!("`{name}`"))
            .collect();
        let risk = if risk { format!(" {:?} |", row.risk) } else { String::new() };
        let both =
            if row.in_both && !page.starts_with("# The") { " Also in the ConfigMap." } else { "" };
        let cells = [cell(row.kind), cell(row.default)].join(" | ");
        let (doc, why) = match row.reason {
            "" => (row.doc, String::new()),
            why => {
                let but = if row.in_nginx { " but in the nginx engine" } else { "" };
                (row.doc.trim_end_matches('.'), format!(". No effect{but}: {}.", cell(why)))
            }
        };
        writeln!(text, "| {} | {cells} |{risk} {}{both}{why} |", names.join(", "), cell(doc))
            .expect("a String takes all");
    }
    page.push_str(&text);
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
