//! The Lua of the nginx engine in a real nginx, and what pushes to it.

mod balancing;
mod bed;
mod certificates;
mod control;
mod digest;
mod measurements;
mod pusher;
mod staples;
mod tables;
