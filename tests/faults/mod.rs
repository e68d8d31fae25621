//! Faults around a running Fairway, injected through sockets, limits and signals; table.csv says which test stands for
//! which fault, and `make faults` prints what became of each.

mod bed;
mod clients;
mod drain;
mod logs;
mod overload;
mod sessions;
mod upstreams;
