//! The engine from outside: the texts it writes, real nginx under its hand, and its Lua inside real nginx.

mod conf;
mod engine;
mod lua;
mod plan;
mod refused;
