//! The page of a Fairway for people, and the JSON behind it: what serves, what is wrong, what changed, and why a
//! request goes where it goes. Nothing is counted or kept for it on the way of requests: it reads what `/metrics`
//! reads, and only while somebody looks.

mod clock;
mod console;
mod difference;
#[cfg(test)]
mod documentation;
mod endpoints;
mod events;
mod explained;
mod history;
mod now;
mod pace;
mod page;
mod query;
mod replicas;
mod sample;
mod served;
mod views;

pub use console::Console;
pub use explained::{Asked, Explain, Explained, Line};
pub use now::Identity;
pub use replicas::{AskReplicas, Replica, Replicas, Says};
pub use sample::{Ports, Sessions};
