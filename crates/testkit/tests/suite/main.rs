//! What the tests of all crates lean on, held against the real thing.

mod cluster;
mod fixtures;
mod recordings;
mod runner;
