//! How many requests a client may make: `limit-rps` and `limit-rpm`, then `limit-connections`
//! (ngx_http_limit_req_module, ngx_http_limit_conn_module; compat/behaviour.md section 17).

use super::Stop;
use crate::exchange::Exchange;
use crate::http::{Pace, Response};
use crate::limits::{Client, Gate};
use crate::variables::text_of;
use http::StatusCode;
use model::policy::{LimitKey, Limits};

pub(super) fn check(exchange: &mut Exchange) -> Result<(), Stop> {
    let spot = exchange.spot();
    let Some(gate) = spot.gate.clone() else { return Ok(()) };
    let limits = &spot.location.policy.limits;
    let Some(client) = client(exchange, limits, &gate) else { return Ok(()) };
    // Counted once, however often upstreams send the request on (nginx: limit_req_status of the main request).
    if exchange.onward.counted {
        return Ok(());
    }
    if !may_come(limits, &gate, client) {
        return Err(refusal(limits.request_status));
    }
    if let (Some(most), Some(slots)) = (limits.connections, &gate.connections) {
        let slot = slots.take(client, most).ok_or_else(|| refusal(limits.connection_status))?;
        exchange.slot = Some(slot);
    }
    exchange.onward.counted = true;
    Ok(())
}

/// The answer at its pace. It holds its client's place until it is at its end; a connection that stopped being HTTP
/// holds it as long as it lives.
pub(super) fn hold(exchange: &mut Exchange, response: &mut Response, pace: Option<Pace>) {
    if response.status != StatusCode::SWITCHING_PROTOCOLS {
        response.body.pace(pace, exchange.slot.take());
    }
}

/// Who is limited; nobody if the address is exempt or there is nothing that tells clients apart.
fn client(exchange: &Exchange, limits: &Limits, gate: &Gate) -> Option<Client> {
    if limits.exempt.contains(exchange.client) {
        return None;
    }
    match &limits.key {
        LimitKey::Address => Some(exchange.client.to_canonical().into()),
        LimitKey::Text(template) => {
            let text = text_of(template, exchange);
            (!text.is_empty()).then(|| gate.names.client(&text))
        }
    }
}

/// Whether both buckets have room; if one has not, the request costs nothing in the other either.
fn may_come(limits: &Limits, gate: &Gate, client: Client) -> bool {
    let second = limits.per_second.zip(gate.per_second.as_ref());
    let minute = limits.per_minute.zip(gate.per_minute.as_ref());
    match (second, minute) {
        (None, None) => true,
        (Some((limit, buckets)), None) | (None, Some((limit, buckets))) => {
            buckets.take(client, limit)
        }
        (Some((second, seconds)), Some((minute, minutes))) => {
            let may = seconds.has_room(client, second) && minutes.take(client, minute);
            if may {
                seconds.fill(client, second);
            }
            may
        }
    }
}

fn refusal(status: u16) -> Stop {
    Response::page(StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)).into()
}
