//! A block `upstream` of the balancer.

use super::tree::{lua, put};
use super::{Block, Scope};

/// Declares it under a name; its kept connections are used for nothing else.
pub(super) fn declare(scope: &mut Scope<'_>, name: &str, keep: Option<usize>) {
    let settings = scope.configuration.global.upstream_keep_alive;
    let mut block = Block::default();
    put!(block, "server", "0.0.0.1");
    block.open("balancer_by_lua_block", vec![], lua("require(\"fairway.balancer\").pick()"));
    let connections = keep.unwrap_or(settings.connections);
    if connections > 0 {
        put!(block, "keepalive", connections);
        put!(block, "keepalive_time", settings.age);
        put!(block, "keepalive_timeout", settings.idle);
        put!(block, "keepalive_requests", settings.requests);
    }
    scope.upstreams.insert(name.to_owned(), block);
}
