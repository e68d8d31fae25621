//! `proxy-body-size`, `client-body-buffer-size`, `proxy-request-buffering`, `proxy-buffering` and its sizes.

use super::super::location::At;
use super::super::tree::put;
use model::policy::Body;

pub(in crate::conf) fn write(policy: Body, at: &mut At<'_, '_>) {
    let Body {
        max_size,
        request_buffering,
        request_buffer,
        response_header,
        response_buffering,
        response_buffer,
    } = policy;
    let block = &mut at.block;
    put!(block, "client_max_body_size", max_size.unwrap_or(0));
    if let Some(bytes) = request_buffer {
        put!(block, "client_body_buffer_size", bytes);
    }
    put!(block, "proxy_request_buffering", request_buffering);
    put!(block, "proxy_buffering", response_buffering);
    put!(block, "proxy_buffer_size", response_header);
    let number = (response_buffer / response_header.max(1)).max(2);
    put!(block, "proxy_buffers", number, response_header);
    put!(block, "proxy_busy_buffers_size", response_header.saturating_mul(2));
    put!(block, "proxy_max_temp_file_size", "1024m");
    put!(block, "grpc_buffer_size", response_header);
    put!(block, "fastcgi_buffer_size", response_header);
    put!(block, "fastcgi_buffers", number, response_header);
    put!(block, "fastcgi_busy_buffers_size", response_header.saturating_mul(2));
}
