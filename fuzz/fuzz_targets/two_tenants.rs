//! Whatever Ingresses a second tenant has: hosts and paths of the first one, and where its requests go, stay the same.
#![no_main]

#[path = "../../crates/translate/tests/suite/sets/mod.rs"]
mod sets;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sets::Sets::read(bytes).check());
