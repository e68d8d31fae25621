//! The binary with `--engine=nginx`: what raw configuration, ModSecurity and settings of the ConfigMap do to requests,
//! and what becomes of text that is none of them.

mod bed;
#[allow(dead_code, reason = "only some of it is needed here")]
#[path = "../../crates/nginx/tests/suite/engine/bed.rs"]
mod engine_bed;
mod hostile;
mod injections;
mod modsecurity;
#[path = "../../crates/nginx/tests/suite/conf/reader.rs"]
mod reader;
mod settings;
mod snippets;
mod without_effect;
mod written;
