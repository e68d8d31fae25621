//! `fairway check --log` and `fairway compare` as a user runs them. The recordings of ingress-nginx are the measure:
//! their requests become a log, and no verdict on them may be false.

mod engines;
mod formats;
mod logs;
mod recorded;
mod refusals;
mod rows;
mod snippets;
