//! Layer 4 in this process, for both engines. So far: the PROXY protocol in front of connections; TCP and UDP services
//! and TLS passthrough come with the issue about cluster duties.

pub mod proxy_protocol;
