//! `limit_req` and `limit_conn` with zones of the `http-snippet` (ngx_http_limit_req_module,
//! ngx_http_limit_conn_module).

use crate::limits::{Client, ConnectionZone, DeclaredZones, RequestZone, Slot};
use model::policy::RequestLimit;
use model::snippet::{Limits as Settings, RequestDelay, Template};
use snippet::run::{Exceeded, Machine, Request};
use std::sync::Arc;
use std::time::Duration;

/// Keys that are longer are not counted, as in nginx.
const LONGEST: usize = 65_535;

/// The limits of a level, compiled.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    requests: Vec<OfRequests>,
    connections: Vec<OfConnections>,
    /// The status for one request too many, if said.
    pub request_status: Option<u16>,
    /// The status for one too many at a time, if said.
    pub connection_status: Option<u16>,
    /// `limit_req_dry_run`
    pub request_dry_run: bool,
    /// `limit_conn_dry_run`
    pub connection_dry_run: bool,
    /// Whether a zone is not there: nobody passes.
    pub broken: bool,
}

#[derive(Debug)]
struct OfRequests {
    zone: Arc<RequestZone>,
    limit: RequestLimit,
    /// Thousandths of requests that do not wait; none: none waits.
    free: Option<u64>,
}

#[derive(Debug)]
struct OfConnections {
    zone: Arc<ConnectionZone>,
    most: u64,
}

/// Who a request counts for, by limit; nobody where its key is empty.
pub(crate) type Keys = Vec<Option<Client>>;

/// What limits of requests say of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// No limit is about it.
    Nothing,
    /// It may go on, perhaps after a while.
    Pass(Duration),
    /// It is one too many.
    Refuse,
}

/// As many requests of a client are being answered as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Limits {
    /// Compiles what one level says.
    pub(crate) fn new(settings: &Settings, zones: &DeclaredZones) -> Self {
        let requests = settings.requests.iter().filter_map(|said| {
            let zone = zones.requests.get(&said.zone)?.clone();
            let limit = RequestLimit { rate: zone.rate, burst: u64::from(said.burst) * 1000 };
            let free = match said.delay {
                RequestDelay::Never => None,
                RequestDelay::Beyond(count) => Some(u64::from(count) * 1000),
            };
            Some(OfRequests { zone, limit, free })
        });
        let connections = settings.connections.iter().filter_map(|said| {
            let zone = zones.connections.get(&said.zone)?.clone();
            Some(OfConnections { zone, most: u64::from(said.most) })
        });
        let (requests, connections) =
            (requests.collect::<Vec<_>>(), connections.collect::<Vec<_>>());
        let broken = requests.len() < settings.requests.len()
            || connections.len() < settings.connections.len();
        Self {
            requests,
            connections,
            request_status: settings.request_status,
            connection_status: settings.connection_status,
            request_dry_run: settings.request_dry_run.unwrap_or(false),
            connection_dry_run: settings.connection_dry_run.unwrap_or(false),
            broken,
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.connections.is_empty() && !self.broken
    }

    /// Who a request counts for in the zones of requests.
    pub(crate) fn request_keys<R: Request>(
        &self,
        machine: &mut Machine<'_, R>,
    ) -> Result<Keys, Exceeded> {
        let zones = self.requests.iter().map(|limit| &limit.zone);
        let keys = zones.map(|zone| client(machine, &zone.key, |text| zone.names.client(text)));
        keys.collect()
    }

    /// Who a request counts for in the zones of connections.
    pub(crate) fn connection_keys<R: Request>(
        &self,
        machine: &mut Machine<'_, R>,
    ) -> Result<Keys, Exceeded> {
        let zones = self.connections.iter().map(|limit| &limit.zone);
        let keys = zones.map(|zone| client(machine, &zone.key, |text| zone.names.client(text)));
        keys.collect()
    }

    /// Counts a request, unless one of the limits refuses it: then it costs nothing anywhere.
    pub(crate) fn judge(&self, keys: &Keys) -> Judgement {
        let counted: Vec<(&OfRequests, Client)> = self
            .requests
            .iter()
            .zip(keys)
            .filter_map(|(limit, key)| Some((limit, (*key)?)))
            .collect();
        if counted.is_empty() {
            return Judgement::Nothing;
        }
        let mut wait = 0;
        for (limit, client) in &counted {
            let Some(excess) = limit.zone.buckets.look(*client, limit.limit) else {
                return Judgement::Refuse;
            };
            wait = wait.max(limit.wait(excess));
        }
        for (limit, client) in &counted {
            limit.zone.buckets.fill(*client, limit.limit);
        }
        Judgement::Pass(Duration::from_millis(wait))
    }

    /// A place among those that its clients may have at a time.
    pub(crate) fn hold(&self, keys: &Keys) -> Result<Option<Slot>, Full> {
        let mut held: Option<Slot> = None;
        for (limit, key) in self.connections.iter().zip(keys) {
            let Some(client) = *key else { continue };
            let slot = limit.zone.slots.take(client, limit.most).ok_or(Full)?;
            held = Some(slot.beside(held));
        }
        Ok(held)
    }
}

impl OfRequests {
    /// Milliseconds that a request waits with such an excess.
    fn wait(&self, excess: u64) -> u64 {
        let beyond = self.free.map_or(0, |free| excess.saturating_sub(free));
        beyond.saturating_mul(1000) / self.limit.rate.max(1)
    }
}

fn client<R: Request>(
    machine: &mut Machine<'_, R>,
    key: &Template,
    client: impl FnOnce(&str) -> Client,
) -> Result<Option<Client>, Exceeded> {
    let text = machine.expand(key)?;
    Ok(((1..=LONGEST).contains(&text.len())).then(|| client(&text)))
}

#[cfg(test)]
mod tests {
    use super::{Judgement, Limits};
    use crate::limits::Zones;
    use crate::snippet::fixture::{Fixed, location, with_machine};
    use snippet::{Context, understand};
    use std::time::Duration;

    const ZONES: &str = "limit_req_zone $http_key zone=a:1m rate=2r/s; limit_req_zone $http_two zone=b:1m rate=1r/s;
        limit_conn_zone $http_key zone=c:1m; limit_conn_zone $http_two zone=d:1m;";

    fn limits(text: &str) -> Limits {
        let http = understand(Context::Http, ZONES).expect("the test writes zones").http;
        Limits::new(&location(text).settings.limits, &Zones::default().declared(&http))
    }

    fn judge(limits: &Limits, variables: &[(&str, &str)]) -> Judgement {
        let keys = with_machine(&Fixed::of(variables), |machine| limits.request_keys(machine));
        limits.judge(&keys.expect("within bounds"))
    }

    fn pass(milliseconds: u64) -> Judgement {
        Judgement::Pass(Duration::from_millis(milliseconds))
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_beyond_the_rate_waits_what_is_beyond_the_burst_is_refused() {
        let limits = limits("limit_req zone=a burst=2;");
        let me = [("http_key", "me")];
        let judged: Vec<_> = (0..4).map(|_| judge(&limits, &me)).collect();
        assert_eq!(judged, [pass(0), pass(500), pass(1000), Judgement::Refuse]);
        assert_eq!(judge(&limits, &[("http_key", "you")]), pass(0));
        let without_key: Vec<_> = (0..9).map(|_| judge(&limits, &[])).collect();
        assert_eq!(without_key, [Judgement::Nothing; 9]);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(judge(&limits, &me), pass(1000));
    }

    #[tokio::test(start_paused = true)]
    async fn nodelay_and_delay_say_who_waits() {
        let me = [("http_key", "me")];
        let at_once = limits("limit_req zone=a burst=2 nodelay;");
        let judged: Vec<_> = (0..4).map(|_| judge(&at_once, &me)).collect();
        assert_eq!(judged, [pass(0), pass(0), pass(0), Judgement::Refuse]);
        let some = limits("limit_req zone=a burst=2 delay=1;");
        let judged: Vec<_> = (0..4).map(|_| judge(&some, &me)).collect();
        assert_eq!(judged, [pass(0), pass(0), pass(500), Judgement::Refuse]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_refused_by_one_limit_costs_nothing_in_another() {
        let limits = limits("limit_req zone=a burst=9; limit_req zone=b;");
        let both = [("http_key", "me"), ("http_two", "me")];
        assert_eq!(judge(&limits, &both), pass(0));
        assert_eq!(judge(&limits, &both), Judgement::Refuse);
        assert_eq!(judge(&limits, &both[..1]), pass(500));
    }

    #[test]
    fn places_are_held_together_or_not_at_all() {
        let limits = limits("limit_conn c 2; limit_conn d 1;");
        let hold = |variables: &[(&str, &str)]| {
            let keys =
                with_machine(&Fixed::of(variables), |machine| limits.connection_keys(machine));
            limits.hold(&keys.expect("within bounds"))
        };
        let both = [("http_key", "me"), ("http_two", "me")];
        let first = hold(&both).expect("both are free");
        assert!(hold(&both).is_err());
        let second = hold(&both[..1]).expect("the first limit lets two");
        assert!(hold(&both[..1]).is_err() && second.is_some());
        drop(first);
        assert!(hold(&both).is_ok());
        assert!(hold(&[]).is_ok_and(|none| none.is_none()));
    }

    #[test]
    fn a_zone_that_is_not_there_closes() {
        assert!(limits("limit_req zone=none;").broken && limits("limit_conn none 1;").broken);
        assert!(limits("").is_empty() && !limits("limit_conn none 1;").is_empty());
    }
}
