//! The translation from outside: objects in, a Configuration and Problems out.

mod admission;
mod any_text;
mod builders;
mod canaries;
mod cases;
mod certificates;
mod check;
mod classes;
mod documentation;
mod endpoints;
mod hosts;
mod in_force;
mod incremental;
mod listener_sockets;
mod listeners;
mod load_balancers;
mod names;
mod own_servers;
mod raw;
mod redirects;
mod rejected;
mod routes;
mod sets;
mod streams;
mod tenants;
mod upstreams;
