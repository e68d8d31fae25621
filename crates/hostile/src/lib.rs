//! Attacks on a running proxy from outside, with a strict upstream of our own that says what got through.
//!
//! A [`subject`] (Fairway, or any proxy) is started in front of a [`backend`]; each [`case`] is sent to it; the
//! [`judge`] compares what client and upstream saw with what the case wants. [`flood`] holds the attacks that are
//! about amounts rather than bytes.

pub mod backend;
pub mod case;
pub mod client;
pub mod flood;
pub mod h2;
pub mod judge;
pub mod lane;
pub mod message;
pub mod report;
pub mod subject;
