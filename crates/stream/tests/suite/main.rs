//! Layer 4 from outside: ports, names and services over real sockets.

mod named_services;
mod names;
mod places;
mod services;
