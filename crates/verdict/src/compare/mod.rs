//! The same requests to an old and a new controller: what they answer is compared, and whatever harms ends it.

mod kept;
mod normal;
mod page;
mod report;
mod requests;
mod run;
mod send;
mod state;

pub use report::{html, json, junit, markdown};
pub use requests::{LeftOut, Requests, Send, is_safe};
pub use run::{Options, Outcome, Report, Stopped, compare};
pub use send::{Client, Target, TargetError};
pub use state::{State, StateError};
