//! The webhook from outside, over real connections.

mod admission;
mod floods;
mod webhook;
