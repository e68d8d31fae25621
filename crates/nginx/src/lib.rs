//! The nginx engine: HTTP traffic in a supervised nginx, for raw snippets and nginx modules. It has its place in the
//! architecture and comes with an issue of its own; nothing here serves traffic yet.

pub mod measurements;
pub mod push;
