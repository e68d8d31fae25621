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
    let raw = at.location.policy.raw.as_deref();
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
    // nginx takes no more than all buffers but one, and no less than one.
    let busy = raw.and_then(|raw| raw.busy_buffers).unwrap_or(response_header.saturating_mul(2));
    let most = response_header.saturating_mul(number - 1);
    let busy = busy.clamp(response_header, most.max(response_header));
    put!(block, "proxy_busy_buffers_size", busy);
    match raw.and_then(|raw| raw.temporary_file) {
        Some(0) => put!(block, "proxy_max_temp_file_size", 0_u8),
        Some(bytes) => {
            let least = u64::try_from(response_header).unwrap_or(u64::MAX);
            put!(block, "proxy_max_temp_file_size", bytes.max(least));
        }
        None => put!(block, "proxy_max_temp_file_size", "1024m"),
    }
    let grpc = at.scope.configuration.global.tuning().grpc_buffer.unwrap_or(response_header);
    put!(block, "grpc_buffer_size", grpc);
    put!(block, "fastcgi_buffer_size", response_header);
    put!(block, "fastcgi_buffers", number, response_header);
    put!(block, "fastcgi_busy_buffers_size", busy);
}
