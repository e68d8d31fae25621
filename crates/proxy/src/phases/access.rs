//! The access phase: address lists, then a name with a password, then an external authenticator; `satisfy` says whether
//! all of them or one of them must let a request pass (ngx_http_core_access_phase).

use super::{Stop, auth_basic, auth_external, failed};
use crate::exchange::Exchange;
use crate::snippet::lets_in;
use http::{Method, StatusCode};
use model::policy::Satisfy;
use model::snippet::{Access, AuthBasic, LimitExcept, Satisfy as OfSnippet};
use std::net::IpAddr;
use wire::Response;

/// What a guard says of a request. Where it cannot tell, because it is itself in trouble, it stops the request: that no
/// other guard makes up for.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing: the location does not ask for this guard.
    Silent,
    /// It may pass.
    Pass,
    /// It may not, and this is its answer: 401 or 403.
    Refuse(Box<Response>),
}

impl Verdict {
    /// Refused with nginx's page for 403.
    pub(super) fn forbidden() -> Self {
        Self::Refuse(Box::new(Response::page(StatusCode::FORBIDDEN)))
    }
}

/// Asks the guards, in nginx's order, up to the first one that may have to wait for somebody: what was decided so far,
/// if there is one.
pub(super) fn begin(exchange: &mut Exchange) -> Result<Option<Decision>, Stop> {
    let decided = at_once(exchange);
    decided.map_err(|stop| {
        // Nobody else is asked at once.
        failed::tell_refusal(exchange, "address", &"access forbidden by rule");
        auth_external::instead_of_401(exchange, stop)
    })
}

fn at_once(exchange: &Exchange) -> Result<Option<Decision>, Stop> {
    if exchange.level().is_some_and(|level| keeps_out(&level.settings.access, exchange.client)) {
        return Err(Response::page(StatusCode::FORBIDDEN).into());
    }
    let mut decision = Decision::of(satisfy(exchange));
    decision.hear(address(exchange).0)?;
    if decision.is_settled() {
        return Ok(None);
    }
    if auth_basic::asks(exchange) || auth_external::asks(exchange) {
        return Ok(Some(decision));
    }
    decision.end().map(|()| None)
}

/// Whether rules of others do, of a server that is another namespace's or of the operator around a tenant's location:
/// no guard here makes up for them, nor they for one.
fn keeps_out(Access { besides, before, .. }: &Access, client: IpAddr) -> bool {
    [besides, before].into_iter().any(|rules| lets_in(rules, client) == Some(false))
}

/// Asks the guards that may have to wait.
pub(super) async fn go_on(exchange: &mut Exchange, decision: Decision) -> Result<(), Stop> {
    let decided = decide(exchange, decision).await;
    decided.map_err(|stop| auth_external::instead_of_401(exchange, stop))
}

async fn decide(exchange: &mut Exchange, mut decision: Decision) -> Result<(), Stop> {
    decision.hear(auth_basic::check(exchange).await?)?;
    if decision.is_settled() {
        return Ok(());
    }
    decision.hear(auth_external::check(exchange).await?)?;
    decision.end()
}

/// The address lists: what is denied stays denied, even if it is allowed, too (ngx_http_access_module). Rules of a
/// location's snippet stand behind the lists of its annotations; those of a `limit_except` stand in place of both.
/// Beside the verdict stands what gave it, unless it was such a list: `explain` has lines of their own for these.
fn address(exchange: &Exchange) -> (Verdict, Option<&'static str>) {
    let access = &exchange.spot().location.policy.access;
    let rules = exchange.level().map_or(&[][..], |level| &level.settings.access.rules);
    if replaces_lists(exchange) {
        return (verdict(lets_method_in(exchange)), Some("limit_except of a snippet"));
    }
    if !access.has_lists() && rules.is_empty() {
        return (blocked(exchange), Some("block-cidrs of the ConfigMap"));
    }
    if access.deny.contains(exchange.client) {
        return (Verdict::forbidden(), None);
    }
    let listed = match &access.allow {
        None => None,
        Some(allowed) if allowed.contains(exchange.client) => Some(true),
        Some(_) => return (Verdict::forbidden(), None),
    };
    let lets_in = listed.or_else(|| lets_in(rules, exchange.client));
    (verdict(lets_in), Some("allow and deny of a snippet"))
}

/// Whether a `limit_except` stands in place of the address lists for this request.
pub(crate) fn replaces_lists(exchange: &Exchange) -> bool {
    excepted(exchange).any(|(_, except)| has_rules(except))
}

/// Which rules keep the client out besides the lists of annotations, whether or not another guard makes up for them.
pub(crate) fn shut_by(exchange: &Exchange) -> Option<&'static str> {
    if exchange.level().is_some_and(|level| keeps_out(&level.settings.access, exchange.client)) {
        return Some("allow and deny of a snippet around the location");
    }
    let (verdict, by) = address(exchange);
    by.filter(|_| matches!(verdict, Verdict::Refuse(_)))
}

fn verdict(lets_in: Option<bool>) -> Verdict {
    match lets_in {
        None => Verdict::Silent,
        Some(true) => Verdict::Pass,
        Some(false) => Verdict::forbidden(),
    }
}

fn has_rules(except: &LimitExcept) -> bool {
    !except.settings.access.rules.is_empty()
}

/// Whether each `limit_except` that counts for the request lets its client in; none if they have no rule about it.
/// Behind the operator's text none takes the place of its rules, which only one of its own does.
fn lets_method_in(exchange: &Exchange) -> Option<bool> {
    let replaced =
        excepted(exchange).any(|(_, except)| except.before.is_none() && has_rules(except));
    let before = |except: &'_ LimitExcept| {
        let before = except.before.as_ref().filter(|_| !replaced);
        before.and_then(|before| lets_in(&before.rules, exchange.client))
    };
    let own = |except: &LimitExcept| lets_in(&except.settings.access.rules, exchange.client);
    let decided = excepted(exchange).flat_map(|(_, except)| [before(except), own(except)]);
    decided.flatten().reduce(|all, next| all && next)
}

/// Whose `limit_except` counts for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excepted {
    /// Nobody's.
    No,
    /// One of the first text: then nothing of the location's program does (nginx: it has a configuration of its own,
    /// from before the program on).
    Wholly,
    /// Only this one, of a text behind another one, whose program counts all the same.
    Behind(usize),
}

/// Whether one does.
pub(super) fn is_excepted(exchange: &Exchange) -> bool {
    excepts(exchange) != Excepted::No
}

/// Whose `limit_except` counts for the request.
pub(super) fn excepts(exchange: &Exchange) -> Excepted {
    match excepted(exchange).next() {
        None => Excepted::No,
        Some((_, except)) if except.before.is_none() => Excepted::Wholly,
        Some((number, _)) => Excepted::Behind(number),
    }
}

/// Each `limit_except` of the request whose free methods its own is none of, the operator's first.
fn excepted(exchange: &Exchange) -> impl Iterator<Item = (usize, &LimitExcept)> {
    let method = &exchange.request.method;
    let is_free = move |free: &String| {
        free == method.as_str() || (*method == Method::HEAD && free == Method::GET.as_str())
    };
    let all = exchange.level().map_or(&[][..], |level| level.limit_except());
    let counts = move |(_, except): &(usize, &LimitExcept)| !except.methods.iter().any(is_free);
    all.iter().enumerate().filter(counts)
}

/// What they say of access.
fn of_method(exchange: &Exchange) -> impl Iterator<Item = &Access> {
    excepted(exchange).map(|(_, except)| &except.settings.access)
}

/// What snippets say of a guard: in a `limit_except`, else at the level.
fn said<'e, T>(exchange: &'e Exchange, what: impl Fn(&'e Access) -> Option<T>) -> Option<T> {
    let level = || exchange.level().and_then(|level| what(&level.settings.access));
    of_method(exchange).find_map(&what).or_else(level)
}

/// `auth_basic` of snippets. Where several say something for a method, a password of any is asked for.
pub(crate) fn password(exchange: &Exchange) -> Option<&AuthBasic> {
    let level = exchange.level()?;
    if level.limit_except().is_empty() {
        return level.settings.access.auth_basic.as_ref();
    }
    let asked = |said: &&AuthBasic| matches!(said, AuthBasic::Realm(_));
    let asks = of_method(exchange).filter_map(|access| access.auth_basic.as_ref()).find(asked);
    asks.or_else(|| said(exchange, |access| access.auth_basic.as_ref()))
}

/// `auth_request off`
pub(super) fn asks_nobody(exchange: &Exchange) -> bool {
    said(exchange, |access| access.auth_request_off).unwrap_or(false)
}

pub(crate) fn satisfy(exchange: &Exchange) -> Satisfy {
    match said(exchange, |access| access.satisfy) {
        None => exchange.spot().location.policy.access.satisfy.unwrap_or_default(),
        Some(OfSnippet::All) => Satisfy::All,
        Some(OfSnippet::Any) => Satisfy::Any,
    }
}

/// `block-cidrs`: lists of a location replace it, as nginx's inheritance goes.
fn blocked(exchange: &Exchange) -> Verdict {
    if exchange.generation.global().block.addresses.contains(exchange.client) {
        Verdict::forbidden()
    } else {
        Verdict::Silent
    }
}

/// What the guards that were heard make of a request.
#[derive(Debug)]
pub(super) struct Decision {
    satisfy: Satisfy,
    passed: bool,
    refusal: Option<Box<Response>>,
}

impl Decision {
    fn of(satisfy: Satisfy) -> Self {
        Self { satisfy, passed: false, refusal: None }
    }

    /// Whether there is nothing left to ask: one guard suffices, and it let the request pass.
    fn is_settled(&self) -> bool {
        self.satisfy == Satisfy::Any && self.passed
    }

    /// Takes a verdict in. Where all guards count, the first refusal is the answer.
    fn hear(&mut self, verdict: Verdict) -> Result<(), Stop> {
        match verdict {
            Verdict::Silent => {}
            Verdict::Pass => self.passed = true,
            Verdict::Refuse(response) if self.satisfy == Satisfy::All => {
                return Err(Stop::Answer(response));
            }
            Verdict::Refuse(response) => self.remember(response),
        }
        Ok(())
    }

    /// Of several refusals a 401 is the answer, since it says how to come in; it carries every challenge.
    fn remember(&mut self, next: Box<Response>) {
        match &mut self.refusal {
            Some(first) if first.status == StatusCode::UNAUTHORIZED => {
                for challenge in next.headers.all("www-authenticate") {
                    first.headers.add("WWW-Authenticate", challenge);
                }
            }
            refusal => *refusal = Some(next),
        }
    }

    /// Where one guard suffices and none let the request pass, the refusal is the answer.
    fn end(self) -> Result<(), Stop> {
        match self.refusal {
            Some(refusal) if !self.passed => Err(Stop::Answer(refusal)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, Verdict};
    use crate::phases::Stop;
    use http::StatusCode;
    use model::policy::Satisfy::{self, All, Any};
    use wire::Response;

    fn challenge(text: &'static str) -> Verdict {
        let mut response = Response::page(StatusCode::UNAUTHORIZED);
        response.headers.add("WWW-Authenticate", text);
        Verdict::Refuse(Box::new(response))
    }

    /// The answer that a sequence of verdicts makes; none if the request passes.
    fn decide(satisfy: Satisfy, verdicts: Vec<Verdict>) -> Option<Response> {
        let mut decision = Decision::of(satisfy);
        let heard = verdicts.into_iter().try_for_each(|verdict| decision.hear(verdict));
        match heard.and_then(|()| decision.end()) {
            Ok(()) => None,
            Err(Stop::Answer(response)) => Some(*response),
            Err(Stop::Fail(error)) => unreachable!("no verdict is an error: {error}"),
        }
    }

    fn status(satisfy: Satisfy, verdicts: Vec<Verdict>) -> Option<u16> {
        decide(satisfy, verdicts).map(|response| response.status.as_u16())
    }

    #[test]
    fn where_all_count_the_first_refusal_is_the_answer() {
        assert_eq!(
            status(All, vec![Verdict::Pass, challenge("Basic"), Verdict::forbidden()]),
            Some(401)
        );
        assert_eq!(status(All, vec![Verdict::forbidden(), Verdict::Pass]), Some(403));
        assert_eq!(status(All, vec![Verdict::Silent, Verdict::Pass, Verdict::Pass]), None);
    }

    #[test]
    fn where_one_suffices_any_pass_opens_and_otherwise_401_wins() {
        assert_eq!(status(Any, vec![Verdict::forbidden(), Verdict::Pass]), None);
        assert_eq!(status(Any, vec![Verdict::forbidden(), challenge("Basic")]), Some(401));
        assert_eq!(status(Any, vec![challenge("Basic"), Verdict::forbidden()]), Some(401));
        assert_eq!(status(Any, vec![Verdict::Silent, Verdict::forbidden()]), Some(403));
    }

    #[test]
    fn whoever_asks_for_nothing_closes_nothing() {
        assert_eq!(status(Any, vec![Verdict::Silent, Verdict::Silent]), None);
        assert_eq!(status(All, Vec::new()), None);
    }

    #[test]
    fn a_401_carries_every_challenge() {
        let answer = decide(Any, vec![challenge("Basic"), challenge("Bearer")]).expect("an answer");
        let challenges: Vec<_> = answer.headers.all("www-authenticate").collect();
        assert_eq!(challenges, [&b"Basic"[..], b"Bearer"]);
    }

    #[test]
    fn a_guard_that_let_a_request_pass_settles_it_only_where_one_suffices() {
        for (satisfy, settled) in [(Any, true), (All, false)] {
            let mut decision = Decision::of(satisfy);
            decision.hear(Verdict::Pass).expect("passes");
            assert_eq!(decision.is_settled(), settled);
        }
    }
}
