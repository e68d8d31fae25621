//! Properties of routing, each against a slow and simple statement of the same.

mod locations;
mod paths;
mod routes;
