//! The crate from outside: its corpus, its syntax, its mistakes, its programs, its page.
#![allow(clippy::match_bool, reason = "as in the crate")]

mod corpus;
mod documentation;
mod meanings;
mod mistakes;
mod programs;
mod syntax;
