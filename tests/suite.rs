//! The program from outside, in one executable: each module is a part of what it promises. Beside it stand `cluster`
//! and `deploy`, which start control planes, and `tidy`, which needs nothing built.

mod console;
mod convert;
mod exchanges;
mod faults;
mod gateway;
mod guards;
mod metrics;
mod nginx;
mod process;
mod snippet_walk;
mod tools;
mod verdict;
