//! Whatever header fields tell of a trace: it is ignored, or read and told on in the same format, and then it is the
//! same trace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Propagator;
use proxy::parsers::trace;

const FORMATS: [Propagator; 5] = [
    Propagator::TraceContext,
    Propagator::B3,
    Propagator::B3Multi,
    Propagator::Jaeger,
    Propagator::Datadog,
];

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|byte| *byte == b'\n');
    let fields = lines.filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b':')?;
        let name = std::str::from_utf8(&line[..at]).ok()?.to_owned();
        Some((name, line[at + 1..].trim_ascii().to_vec()))
    });
    let fields: Vec<_> = fields.collect();
    for propagator in FORMATS {
        let Some(read) = trace(propagator, &fields) else { continue };
        if read.ids.is_none() {
            assert!(read.told.is_empty() && read.sampled.is_some());
            continue;
        }
        let again = trace(propagator, &read.told).expect("what is told is read");
        assert_eq!((again.ids, again.sampled), (read.ids, Some(read.sampled.unwrap_or(true))));
        assert_eq!(again.told, read.told);
        let size: usize = read.told.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(size < 4096, "{size}");
    }
});
