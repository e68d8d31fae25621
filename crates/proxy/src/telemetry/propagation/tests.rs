//! What the formats say, good and bad.

use super::super::context::{Context, SpanId, TraceId};
use super::{Carried, Incoming, extract, inject, owns};
use model::Propagator::{self, B3, B3Multi, Datadog, Jaeger, TraceContext};
use wire::Headers;

const TRACE: u128 = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;
const SPAN: u64 = 0xb7ad_6b71_6920_3331;
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn headers(fields: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in fields {
        headers.push(name, value);
    }
    headers
}

fn read(propagators: &[Propagator], fields: &[(&str, &str)]) -> Option<Incoming> {
    extract(propagators, &headers(fields))
}

fn parent(incoming: &Incoming) -> Option<(u128, u64)> {
    incoming.parent.map(|(trace, span)| (trace.number(), span.number()))
}

fn context(sampled: bool) -> Context {
    let (trace, span) = (TraceId::new(TRACE), SpanId::new(SPAN));
    Context { trace: trace.expect("not zero"), span: span.expect("not zero"), sampled }
}

fn written(propagator: Propagator, context: &Context, carried: &Carried) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    inject(&[propagator], context, carried, |name, value| {
        fields.push((name.to_owned(), String::from_utf8_lossy(value).into_owned()));
    });
    fields
}

#[test]
fn every_format_reads_what_it_writes() {
    for propagator in [TraceContext, B3, B3Multi, Jaeger, Datadog] {
        for sampled in [true, false] {
            let context = context(sampled);
            let fields = written(propagator, &context, &Carried::default());
            let fields: Vec<(&str, &str)> =
                fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let read = read(&[propagator], &fields).expect("its own fields");
            assert_eq!(parent(&read), Some((TRACE, SPAN)), "{fields:?}");
            assert_eq!(read.sampled, Some(sampled), "{fields:?}");
            assert!(fields.iter().all(|(name, _)| owns(&[propagator], name.as_bytes())));
        }
    }
}

#[test]
fn a_traceparent_is_read_as_w3c_says() {
    let sampled = |value: &str| {
        read(&[TraceContext], &[("traceparent", value)]).map(|read| (parent(&read), read.sampled))
    };
    let ids = Some((TRACE, SPAN));
    assert_eq!(sampled(PARENT), Some((ids, Some(true))));
    assert_eq!(sampled(&PARENT.replace("-01", "-00")), Some((ids, Some(false))));
    // Bits that a later version may define, and what it may append.
    assert_eq!(sampled(&PARENT.replace("-01", "-ff")), Some((ids, Some(true))));
    assert_eq!(sampled(&PARENT.replacen("00-", "cc-", 1)), Some((ids, Some(true))));
    let later = format!("{}-what", PARENT.replacen("00-", "cc-", 1));
    assert_eq!(sampled(&later), Some((ids, Some(true))));
    for wrong in [
        "",
        "00",
        &PARENT[..54],
        &format!("{PARENT}-what"),
        &PARENT.replacen("00-", "ff-", 1),
        &format!("{}what", PARENT.replacen("00-", "cc-", 1)),
        &PARENT.to_uppercase(),
        &PARENT.replace('-', "_"),
        &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
        &PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
        &PARENT.replace("-01", "-0x"),
        &PARENT.replace("0af7", "+af7"),
    ] {
        assert_eq!(sampled(wrong), None, "{wrong:?}");
    }
    let twice = [("traceparent", PARENT), ("Traceparent", PARENT)];
    assert_eq!(read(&[TraceContext], &twice), None, "of two nobody knows which one counts");
}

#[test]
fn the_state_travels_on_unless_it_is_too_large() {
    let state = |fields: &[(&str, &str)]| {
        let fields = [&[("traceparent", PARENT)], fields].concat();
        let read = read(&[TraceContext], &fields).expect("a parent");
        written(TraceContext, &context(true), &read.carried).pop().expect("a field")
    };
    let expected = ("tracestate".to_owned(), "a=1,b=2".to_owned());
    assert_eq!(state(&[("tracestate", "a=1"), ("TraceState", "b=2")]), expected);
    assert_eq!(state(&[("tracestate", &"x".repeat(2049))]).0, "traceparent");
    assert_eq!(state(&[("tracestate", "ü")]).0, "traceparent");
    let without_parent = read(&[TraceContext], &[("tracestate", "a=1")]);
    assert_eq!(without_parent, None);
}

#[test]
fn b3_comes_in_one_field_or_in_several() {
    let said = |fields: &[(&str, &str)]| {
        read(&[B3], fields).map(|read| (parent(&read).map(|ids| ids.1), read.sampled))
    };
    let (long, short) = ("0af7651916cd43dd8448eb211c80319c", "8448eb211c80319c");
    let span = "b7ad6b7169203331";
    assert_eq!(said(&[("b3", "0")]), Some((None, Some(false))));
    assert_eq!(said(&[("b3", "d")]), Some((None, Some(true))));
    assert_eq!(said(&[("b3", &format!("{long}-{span}"))]), Some((Some(SPAN), None)));
    assert_eq!(said(&[("b3", &format!("{short}-{span}-0"))]), Some((Some(SPAN), Some(false))));
    let whole = format!("{long}-{span}-d-{span}");
    assert_eq!(said(&[("b3", &whole)]), Some((Some(SPAN), Some(true))));
    for wrong in [
        "",
        "2",
        "true",
        &format!("{long}-{span}-2"),
        &format!("{long}-{span}-1-x"),
        &format!("{whole}-1"),
        &format!("{}-{span}", &long[1..]),
        &format!("{}-{span}", "0".repeat(16)),
        &"-".repeat(10_000),
    ] {
        assert_eq!(said(&[("b3", wrong)]), None, "{wrong:?}");
    }
    let ids = [("X-B3-TraceId", short), ("X-B3-SpanId", span)];
    assert_eq!(said(&ids), Some((Some(SPAN), None)));
    let with = |field| [&ids[..], &[field]].concat();
    assert_eq!(said(&with(("X-B3-Sampled", "false"))), Some((Some(SPAN), Some(false))));
    assert_eq!(said(&with(("X-B3-Flags", "1"))), Some((Some(SPAN), Some(true))));
    assert_eq!(said(&with(("X-B3-ParentSpanId", "nonsense"))), None);
    assert_eq!(said(&[("X-B3-Sampled", "0")]), Some((None, Some(false))));
    // A broken single field does not hide the others.
    assert_eq!(said(&with(("b3", "nonsense"))), Some((Some(SPAN), None)));
}

#[test]
fn jaeger_takes_short_ids_and_escaped_colons() {
    let said = |value: &str| {
        read(&[Jaeger], &[("Uber-Trace-Id", value)]).map(|read| (parent(&read), read.sampled))
    };
    assert_eq!(said("abc:1:0:1"), Some((Some((0xabc, 1)), Some(true))));
    assert_eq!(said("abc%3A1%3a0%3A2"), Some((Some((0xabc, 1)), Some(false))));
    for wrong in ["", ":::", "0:1:0:1", "1:0:0:1", "1:1:0", "1:1:0:1:1", "1:1:x:1", "1:1:0:100"] {
        assert_eq!(said(wrong), None, "{wrong:?}");
    }
    assert_eq!(said(&format!("{}:1:0:1", "1".repeat(33))), None);
}

#[test]
fn datadog_has_half_a_trace_in_its_tags() {
    let ids = [("x-datadog-trace-id", "9532127138774266268"), ("x-datadog-parent-id", "7")];
    let tags = "_dd.p.dm=-1 ,,_dd.p.tid=0af7651916cd43dd";
    let more = [("x-datadog-sampling-priority", "2"), ("x-datadog-tags", tags)];
    let whole = read(&[Datadog], &[ids, more].concat()).expect("a parent");
    assert_eq!((parent(&whole), whole.sampled), (Some((TRACE, 7)), Some(true)));
    let fields = written(Datadog, &context(true), &whole.carried);
    assert_eq!(fields[2].1, "2", "the client's own priority goes on");
    assert_eq!(fields[3].1, "_dd.p.tid=0af7651916cd43dd,_dd.p.dm=-1");
    assert_eq!(written(Datadog, &context(false), &whole.carried)[2].1, "0");
    let half = read(&[Datadog], &ids).expect("a parent");
    assert_eq!((parent(&half), half.sampled), (Some((TRACE & u128::from(u64::MAX), 7)), None));
    for wrong in ["0", "-1", "+1", "1e3", "99999999999999999999", "0x1", ""] {
        let fields = [("x-datadog-trace-id", wrong), ("x-datadog-parent-id", "7")];
        assert_eq!(read(&[Datadog], &fields), None, "{wrong:?}");
    }
}

#[test]
fn whatever_stands_in_the_fields_is_read_or_ignored() {
    let (mut random, mut understood) = (fastrand::Rng::with_seed(9), 0);
    for _ in 0..20_000 {
        let propagator = [TraceContext, B3, B3Multi, Jaeger, Datadog][random.usize(..5)];
        let mut spoilt = Headers::default();
        for (name, value) in written(propagator, &context(true), &Carried::default()) {
            let mut value = value.into_bytes();
            for _ in 0..random.usize(..3) {
                let at = random.usize(..=value.len());
                match random.u8(..3) {
                    0 => value.insert(at, *random.choice(b"0f-:%, g\xff").expect("some")),
                    1 => value.truncate(at),
                    _ => value.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.u8(..)),
                }
            }
            spoilt.push(name, value);
        }
        let Some(read) = extract(&[propagator], &spoilt) else { continue };
        let Some((trace, span)) = read.parent else { continue };
        understood += 1;
        let context = Context { trace, span, sampled: read.sampled.unwrap_or(true) };
        let fields = written(propagator, &context, &read.carried);
        let mut again = Headers::default();
        fields.into_iter().for_each(|(name, value)| again.push(name, value));
        let again = extract(&[propagator], &again).expect("what is written is read");
        assert_eq!((again.parent, again.sampled), (read.parent, Some(context.sampled)));
    }
    assert!(understood > 5_000, "{understood}");
}

#[test]
fn the_first_format_that_a_request_has_counts() {
    let fields = [("traceparent", "nonsense"), ("uber-trace-id", "abc:1:0:1"), ("b3", "0")];
    let read = read(&[TraceContext, Jaeger, B3], &fields).expect("Jaeger's");
    assert_eq!(parent(&read), Some((0xabc, 1)));
    assert!(extract(&[TraceContext], &headers(&fields)).is_none());
    assert!(!owns(&[TraceContext], b"baggage") && !owns(&[Jaeger], b"uberctx-a"));
}
