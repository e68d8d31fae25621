//! What the cluster's objects mean: from a [`objects::Snapshot`] to a [`model::Configuration`] and a list of
//! problems. Pure, total and deterministic: no I/O, no clock, no failure.

use objects::Snapshot;

mod alias_askers;
mod aliases;
mod annotations;
mod budget;
mod certificate;
mod check;
mod ciphers;
mod config_map;
mod endpoint_budget;
mod faults;
pub mod gateway;
mod host;
mod in_force;
mod ingress;
mod kinds;
mod names;
mod options;
mod passwords;
mod pattern_budget;
mod problems;
mod reach;
mod review;
mod secret_files;
mod set_headers;
mod settings;
mod snippets;
mod streams;
mod tenancy;
mod translator;
mod upstream;

pub use annotations::cache_durations;
pub use budget::Budget;
pub use certificate::no_pem;
pub use check::{
    Check, Finding, GatewayApi, Other, RefusedBy, Remark, Standing, check, left_out_of_host,
    name_issuers, not_heard_of_host, others, others_of_host,
};
pub use faults::{fault_at, fault_behind};
pub use in_force::{Asked, InForce, Setting, redirecting};
pub use ingress::references;
pub use options::{
    ANNOTATIONS_PREFIX, GATEWAY_CONTROLLER, GATEWAY_TARGET_PORTS, GatewayServices, Options, Sockets,
};
pub use passwords::PasswordFile;
pub use problems::Problems;
pub use review::{Review, in_vain, is_concerned, needs, review, useless_route};
pub use settings::{
    About, AnyKey, Fate, Key, OnBad, Risk, Row, Source, annotation_rows, annotations_markdown,
    config_map_markdown, config_map_rows,
};
pub use translator::{Translation, Translator, guards_gone};

/// What a Snapshot means, with nothing known from before: an Ingress that is not taken has no last valid version, so
/// its own hosts and paths answer 503.
pub fn translate(snapshot: &Snapshot, options: &Options) -> Translation {
    Translator::new(options.clone()).update(snapshot)
}

/// The same with every problem, of however many: for whoever judges objects by their problems, once. What is left out
/// there would be called right.
pub fn translate_telling_all(snapshot: &Snapshot, options: &Options) -> Translation {
    Translator::telling_all(options.clone()).update(snapshot)
}
