//! Proof before a move: what access logs of ingress-nginx say was decided, beside what Fairway decides.
//!
//! `log` makes records of lines, `known` is what the objects say, `judge` compares one record with one answer, `tally`
//! counts, and `report` tells; `compare` asks two controllers the same. Who answers is behind the trait [`Oracle`]:
//! this crate knows no engine.

mod cause;
pub mod compare;
mod judge;
mod known;
pub mod log;
mod report;
mod shown;
mod tally;

pub use cause::{Cause, OTHERS, ROWS};
pub use judge::{Asked, Decision, End, Oracle, Standing, Verdict, judge};
pub use known::{Finding, Known};
pub use report::text;
pub use shown::cell;
pub use tally::{Example, Group, Tally};
