//! The binary with `--engine=nginx`: what raw configuration, ModSecurity and settings of the ConfigMap do to requests,
//! and what becomes of text that is none of them.

mod bed;
mod modsecurity;
mod snippets;
