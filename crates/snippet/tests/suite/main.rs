//! The crate from outside: its corpus, its syntax, its mistakes, its programs, its page.

mod corpus;
mod documentation;
mod meanings;
mod mistakes;
mod programs;
mod syntax;
