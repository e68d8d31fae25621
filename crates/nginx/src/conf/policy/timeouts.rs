//! `proxy-connect-timeout`, `proxy-send-timeout`, `proxy-read-timeout`.

use super::super::location::At;
use super::super::tree::put;
use model::policy::{Protocol, Timeouts};

pub(in crate::conf) fn write(policy: Timeouts, protocol: Protocol, at: &mut At<'_, '_>) {
    let Timeouts { connect, send, read } = policy;
    match protocol {
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => {
            put!(at.block, "proxy_connect_timeout", connect);
            put!(at.block, "proxy_send_timeout", send);
            put!(at.block, "proxy_read_timeout", read);
        }
        Protocol::Grpc | Protocol::Grpcs => {
            put!(at.block, "grpc_connect_timeout", connect);
            put!(at.block, "grpc_send_timeout", send);
            put!(at.block, "grpc_read_timeout", read);
        }
        Protocol::Fcgi => {
            put!(at.block, "fastcgi_connect_timeout", connect);
            put!(at.block, "fastcgi_send_timeout", send);
            put!(at.block, "fastcgi_read_timeout", read);
        }
    }
}
