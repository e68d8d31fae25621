//! What the process asks the system for, and what to do where it has none.

pub mod breaks;
pub mod sockets;
pub mod threads;
