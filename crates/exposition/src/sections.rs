//! The sections of the page besides requests.

use super::families as f;
use super::page::Writer;
use super::{Places, Scrape, Supervised, about};
use model::Transport;
use runtime::Usage;
use std::sync::atomic::Ordering;

/// What is written, in this order, where metrics are wanted.
pub(super) const ALL: &[fn(&Scrape, &mut Writer<'_>)] = &[
    process,
    build,
    reloads,
    watches,
    connections,
    supervised,
    shed,
    rooms,
    ingresses,
    certificates,
    admission,
    own,
    streams,
];

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn commit(scrape: &Scrape) -> &'static str {
    scrape.metrics.identity.commit.unwrap_or("unknown")
}

/// What is always there.
pub(super) fn process(scrape: &Scrape, page: &mut Writer<'_>) {
    page.family(&f::OWN_BUILD, [([VERSION, commit(scrape)], 1.0)]);
    if let Some(usage) = Usage::now() {
        page.single(&f::PROCESS_CPU, usage.cpu_seconds);
        page.single(&f::PROCESS_MAX_FDS, usage.most_open_files.map_or(f64::INFINITY, |n| n as f64));
        page.single(&f::PROCESS_OPEN_FDS, usage.open_files as f64);
        page.single(&f::PROCESS_RESIDENT, usage.resident_bytes as f64);
        page.single(&f::PROCESS_VIRTUAL, usage.virtual_bytes as f64);
        page.single(&f::PROCESS_STARTED, usage.started);
        page.single(&f::PROCESS_THREADS, usage.threads as f64);
    }
    let scrapes = scrape.metrics.scrapes.load(Ordering::Relaxed) as f64;
    page.family(&f::SCRAPES, [(["200"], scrapes), (["500"], 0.0), (["503"], 0.0)]);
    page.single(&f::SCRAPING, scrape.metrics.scraping.load(Ordering::Relaxed) as f64);
}

fn build(scrape: &Scrape, page: &mut Writer<'_>) {
    let repository = scrape.metrics.identity.repository.unwrap_or("unknown");
    page.family(&f::BUILD_INFO, [([VERSION, commit(scrape), repository], 1.0)]);
}

fn reloads(scrape: &Scrape, page: &mut Writer<'_>) {
    let progress = scrape
        .metrics
        .controller
        .get()
        .map(|controller| controller.loops.progress())
        .unwrap_or_default();
    // As in ingress-nginx, which takes nothing of a ConfigMap with a mistake. A value that is none is left out here,
    // and told by itself.
    let known = scrape.metrics.known();
    let bad = known.is_some_and(|known| known.has_bad_config_map());
    let successful = progress.last_applied == Some(true) && !bad;
    page.single(&f::CONFIG_HASH, progress.hash as f64);
    page.single(&f::CONFIG_SUCCESSFUL, f64::from(u8::from(successful)));
    page.single(&f::CONFIG_TIME, progress.reloaded_at_seconds());
    page.single(&f::GENERATION, progress.generation as f64);
    if progress.last_applied.is_some() {
        page.single(&f::SUCCESS, progress.reloads as f64);
        page.single(&f::ERRORS, progress.refused as f64);
    }
    if let Some((name, leads)) =
        scrape.metrics.leadership.get().and_then(|own| Some((own.name.as_str(), own.now()?)))
    {
        page.family(&f::LEADER, [([name], f64::from(u8::from(leads)))]);
    }
}

/// Nothing without a cluster: a folder is not watched by kind.
fn watches(scrape: &Scrape, page: &mut Writer<'_>) {
    let kinds = scrape.metrics.following.kinds();
    let synced = kinds.iter().map(|(kind, lost)| ([*kind], f64::from(u8::from(lost.is_none()))));
    page.family(&f::WATCH_SYNCED, synced);
    let lost = |lost: &Option<std::time::Duration>| lost.unwrap_or_default().as_secs_f64();
    page.family(&f::WATCH_LOST, kinds.iter().map(|(kind, since)| ([*kind], lost(since))));
}

fn connections(scrape: &Scrape, page: &mut Writer<'_>) {
    let Some(traffic) = &scrape.traffic else { return };
    if let Some(now) = &traffic.connections {
        let handled = now.accepted.saturating_sub(now.refused);
        let totals = [("accepted", now.accepted), ("handled", handled)];
        page.family(&f::CONNECTIONS_TOTAL, totals.map(|(state, count)| ([state], count as f64)));
        page.single(&f::REQUESTS_TOTAL, now.requests as f64);
        let states = [
            ("active", now.active),
            ("reading", now.reading),
            ("writing", now.writing),
            ("waiting", now.waiting),
        ];
        page.family(&f::CONNECTIONS, states.map(|(state, count)| ([state], count as f64)));
        if traffic.nginx.is_none() {
            page.single(&f::UPSTREAM_IDLE, now.idle_upstream as f64);
        }
    }
    processes(&traffic.processes, page);
}

/// What the processes that carry traffic take together.
fn processes(all: &[Usage], page: &mut Writer<'_>) {
    let Some(oldest) = all.iter().map(|usage| usage.started).min_by(f64::total_cmp) else { return };
    let sum = |what: fn(&Usage) -> f64| all.iter().map(what).sum();
    page.single(&f::NUM_PROCS, all.len() as f64);
    page.single(&f::CPU, sum(|usage| usage.cpu_seconds + usage.ended_children_cpu_seconds));
    page.single(&f::READ_BYTES, sum(|usage| usage.read_bytes as f64));
    page.single(&f::WRITE_BYTES, sum(|usage| usage.written_bytes as f64));
    page.single(&f::RESIDENT, sum(|usage| usage.resident_bytes as f64));
    page.single(&f::VIRTUAL, sum(|usage| usage.virtual_bytes as f64));
    page.single(&f::OLDEST, oldest);
}

/// The nginx of `--engine=nginx`.
fn supervised(scrape: &Scrape, page: &mut Writer<'_>) {
    let nginx = scrape.traffic.as_ref().and_then(|traffic| traffic.nginx.as_ref());
    let Some(Supervised { starts, reloads, serving, leaving }) = nginx else { return };
    page.single(&f::NGINX_STARTS, *starts as f64);
    page.single(&f::NGINX_RELOADS, *reloads as f64);
    let kinds = [("serving", serving), ("leaving", leaving)];
    page.family(&f::NGINX_WORKERS, kinds.map(|(kind, all)| ([kind], all.len() as f64)));
    let memory = kinds.map(|(kind, all)| {
        let bytes: u64 = all.iter().map(|usage| usage.resident_bytes).sum();
        ([kind], bytes as f64)
    });
    page.family(&f::NGINX_WORKER_MEMORY, memory);
}

fn ingresses(scrape: &Scrape, page: &mut Writer<'_>) {
    let Some(controller) = scrape.metrics.controller.get() else { return };
    let known = controller.known.borrow().clone();
    let orphans = about::orphans(&known);
    let both = orphans.iter().flat_map(|((namespace, ingress), lacks)| {
        let kinds = [("no-service", lacks.service), ("no-endpoint", lacks.endpoints)];
        kinds.map(|(kind, lacks)| ([&**namespace, &**ingress, kind], f64::from(u8::from(lacks))))
    });
    page.family(&f::ORPHAN, both);
    let problems = about::problems(&known);
    page.family(&f::PROBLEMS, problems.iter().map(|((a, b), count)| ([*a, *b], *count as f64)));
    let (served, no_class) = (known.served.len(), known.without_class);
    let other = known.snapshot.ingresses.len().saturating_sub(served + no_class);
    let states = [("served", served), ("no_class", no_class), ("other", other)];
    page.family(&f::INGRESSES, states.map(|(state, count)| ([state], count as f64)));
}

/// Expiry is told by the leader; all of it is gone with a lost election (compat/metrics.csv).
fn certificates(scrape: &Scrape, page: &mut Writer<'_>) {
    let Some(controller) = scrape.metrics.controller.get() else { return };
    let leads = scrape.metrics.leadership.get().map_or(Some(true), |own| own.now());
    if leads == Some(false) {
        return;
    }
    let (known, own) = (controller.known.borrow().clone(), scrape.metrics.engine.own_certificate());
    let mut certificates = scrape.metrics.certificates.lock();
    let shown = certificates.of(&known.configuration, own.as_deref());
    drop(certificates);
    let class = page.class();
    if leads == Some(true) {
        let expiry = shown.iter().map(|one| {
            let details = &one.details;
            let labels = [one.namespace, class, one.host, one.secret, &details.identifier];
            (labels, details.not_after as f64)
        });
        page.family(&f::SSL_EXPIRE, expiry.filter(|(_, at)| *at > 0.0));
    }
    let told = shown.iter().map(|one| {
        let details = &one.details;
        let labels = [
            one.namespace,
            class,
            one.host,
            one.secret,
            &details.identifier,
            &details.organization,
            &details.common_name,
            &details.serial,
            details.algorithm,
        ];
        (labels, 1.0)
    });
    page.family(&f::SSL_INFO, told);
}

fn admission(scrape: &Scrape, page: &mut Writer<'_>) {
    let Some((reviews, certificate)) = scrape.metrics.reviews.get() else { return };
    let (checks, last) = (reviews.by_ingress(), reviews.last());
    let of = |count: fn(&controller::admission::Checks) -> u64| {
        let counts = checks.iter().map(move |(key, checks)| (key, count(checks)));
        let some = counts.filter(|(_, count)| *count > 0);
        some.map(|(key, count)| ([key.namespace.as_ref(), key.name.as_ref()], count as f64))
    };
    page.family(&f::CHECK_SUCCESS, of(|checks| checks.passed));
    page.family(&f::CHECK_ERRORS, of(|checks| checks.refused));
    let reviewed = if last.size == 0 { 0.0 } else { 1.0 };
    page.single(&f::ADMISSION_TESTED, reviewed);
    page.single(&f::ADMISSION_TESTED_TIME, (last.whole - last.parsed).as_secs_f64());
    page.single(&f::ADMISSION_RENDERED, reviewed);
    page.single(&f::ADMISSION_RENDER_TIME, last.parsed.as_secs_f64());
    page.single(&f::ADMISSION_SIZE, last.size as f64);
    page.single(&f::ADMISSION_TIME, last.whole.as_secs_f64());
    page.timings(&f::ADMISSION, &reviews.time);
    page.single(&f::ADMISSION_CERTIFICATE, certificate.not_after() as f64);
}

/// What was turned away, and what broke.
pub(super) fn shed(scrape: &Scrape, page: &mut Writer<'_>) {
    let Some(within) = scrape.metrics.engine.within() else { return };
    page.single(&f::PRESSURE, f64::from(within.pressure));
    page.family(&f::REFUSED, within.refused.map(|(reason, count)| ([reason], count as f64)));
    page.single(&f::REFUSED_REQUESTS, within.refused_requests as f64);
    page.single(&f::UNREAD, within.unread as f64);
    page.single(&f::ACCEPT_FAILURES, within.accept_failures as f64);
    page.single(&f::PANICS, within.panics as f64);
    if let Some(copies) = within.copies {
        page.family(&f::COPIES, copies.map(|(decision, count)| ([decision], count as f64)));
    }
}

/// What has a bound, and how full it is.
fn rooms(scrape: &Scrape, page: &mut Writer<'_>) {
    let within = scrape.metrics.engine.within();
    let (mut places, lost) = within.map(|it| (it.places, it.lost)).unwrap_or_default();
    if let Some(controller) = scrape.metrics.controller.get() {
        places.extend(Places::of_ports(&controller.streams));
    }
    page.family(&f::ROOM, places.iter().map(|one| ([one.name], one.most as f64)));
    page.family(&f::ROOM_USED, places.iter().map(|one| ([one.name], one.now as f64)));
    let refused = places.iter().map(|one| ([one.name], one.refused as f64));
    let lost = lost.iter().map(|one| ([one.name], one.count as f64));
    page.family(&f::ROOM_REFUSED, refused.chain(lost));
    page.family(
        &f::EVENTS_DROPPED,
        controller::events::dropped().map(|(reason, count)| ([reason], count as f64)),
    );
}

/// What ingress-nginx does not tell.
fn own(scrape: &Scrape, page: &mut Writer<'_>) {
    if let Some(controller) = scrape.metrics.controller.get() {
        page.timings(&f::PROPAGATION, &controller.loops.propagation);
        page.timings(&f::APPLYING, &controller.loops.applying);
    }
    if let Some(requests) = scrape.metrics.engine.requests() {
        let (series, most) = requests.budget();
        page.single(&f::SERIES, series as f64);
        page.single(&f::SERIES_LIMIT, most as f64);
        page.single(&f::OVERFLOWED, requests.overflowed() as f64);
    }
    let Some(within) = scrape.metrics.engine.within() else { return };
    let shown = scrape.metrics.shown(within.reuse);
    let reuse = shown.iter().flat_map(|(upstream, kinds)| {
        kinds.map(|(kind, count)| ([upstream.as_str(), kind], count as f64))
    });
    page.family(&f::UPSTREAM_REQUESTS, reuse);
    page.family(&f::LOG_DROPPED, within.dropped_lines.map(|(log, lines)| ([log], lines as f64)));
    page.family(&f::SPANS, within.spans.map(|(outcome, count)| ([outcome], count as f64)));
}

fn streams(scrape: &Scrape, page: &mut Writer<'_>) {
    let Some(controller) = scrape.metrics.controller.get() else { return };
    let traffic = controller.streams.traffic();
    let of = |value: fn(&stream::Traffic) -> u64| {
        traffic.iter().map(move |(port, service, traffic)| {
            let protocol = match port.transport {
                Transport::Tcp => "tcp",
                Transport::Udp => "udp",
            };
            let labels = [port.number.to_string(), protocol.to_owned(), service.to_string()];
            (labels, value(traffic) as f64)
        })
    };
    page.family(&f::STREAM_SESSIONS, of(|traffic| traffic.sessions));
    page.family(&f::STREAM_ACTIVE, of(|traffic| traffic.active));
    page.family(&f::STREAM_RECEIVED, of(|traffic| traffic.received));
    page.family(&f::STREAM_SENT, of(|traffic| traffic.sent));
}
