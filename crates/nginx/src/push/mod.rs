//! What changes without a reload, told to the Lua in nginx over its unix socket (crates/nginx/lua/README.md is the
//! agreement): upstreams with the routes that lead to them, certificates with the hosts that have them, settings.

mod backends;
mod client;
mod general;
mod known;
mod pusher;
mod refused;
mod room;
mod route;
pub(crate) mod routes;
mod scripts;
mod servers;

pub(crate) use client::get;
pub use client::{Control, PushError};
pub use general::{General, Metrics};
pub(crate) use pusher::text_of_http;
pub use pusher::{Pusher, Told, Wish};
pub(crate) use room::{Excess, Item, ROUTES, ZONES};
pub use route::route_key;
pub use scripts::write_scripts;
