//! The frames of each flood.

use super::Flood;
use crate::h2::{block, frame};

/// What comes once, before the units.
pub(super) fn opening(flood: Flood) -> Vec<u8> {
    match flood {
        Flood::Continuation | Flood::HeaderStops => {
            frame::write(frame::HEADERS, 0, 1, &block::get("/", &[]))
        }
        Flood::EmptyData | Flood::DataDrips => {
            frame::headers(1, &block::request("POST", "/", &[]), 0)
        }
        _ => Vec::new(),
    }
}

/// The `n`th unit.
pub(super) fn unit(flood: Flood, n: usize) -> Vec<u8> {
    let stream = u32::try_from(2 * n + 1).expect("floods are shorter than the stream ids");
    match flood {
        Flood::RapidReset => {
            [get(stream, "/"), frame::write(frame::RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
        }
        Flood::MadeYouReset => [get(stream, "/"), window(stream, 0x7fff_ffff)].concat(),
        Flood::Continuation => {
            let field = [(b"x".to_vec(), b"y".to_vec())];
            frame::write(frame::CONTINUATION, 0, 1, &block::encode(&field))
        }
        Flood::Ping => frame::write(frame::PING, 0, 0, &(n as u64).to_be_bytes()),
        Flood::PingAcknowledged => frame::write(frame::PING, frame::ACK, 0, &[1; 8]),
        Flood::Deaf => get(stream, "/"),
        Flood::Settings => frame::settings(&[]),
        Flood::WindowUpdate => window(0, 1),
        Flood::Priority => frame::write(frame::PRIORITY, 0, 1, &[0, 0, 0, 0, 16]),
        Flood::EmptyData => frame::write(frame::DATA, 0, 1, &[]),
        Flood::DataDrips => frame::write(frame::DATA, 0, 1, b"x"),
        Flood::PacedReset => get(stream, "/bytes/65536"),
        Flood::HpackBomb | Flood::WindowStall | Flood::HeaderStops => Vec::new(),
    }
}

/// The `n`th stream given up.
pub(super) fn cancel(n: usize) -> Vec<u8> {
    let stream = u32::try_from(2 * n + 1).expect("floods are shorter than the stream ids");
    frame::write(frame::RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

/// A whole GET on a stream.
pub(super) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame::headers(stream, &block::get(path, &[]), frame::END_STREAM)
}

/// The same that asks for brotli.
pub(super) fn compressed(stream: u32, path: &str) -> Vec<u8> {
    let block = block::get(path, &[("accept-encoding", "br")]);
    frame::headers(stream, &block, frame::END_STREAM)
}

/// A window opened by so much.
pub(super) fn window(stream: u32, size: u32) -> Vec<u8> {
    frame::write(frame::WINDOW_UPDATE, 0, stream, &size.to_be_bytes())
}

/// A literal that enters the dynamic table, and the entry that did so last.
const INDEXED: u8 = 0x40;
const FIRST_DYNAMIC: u8 = 0x80 | 62;

/// GETs on so many streams, whose heads are of 28 kB each, and but for the first one of 60 bytes on the wire.
pub(super) fn large(streams: u32, path: &str) -> Vec<u8> {
    let mut first = block::get(path, &[]);
    block::literal(&mut first, INDEXED, b"x", &[b'v'; 4000]);
    let next = [block::get(path, &[]), vec![FIRST_DYNAMIC; 7]].concat();
    let of = |n| if n == 0 { &first } else { &next };
    (0..streams).flat_map(|n| frame::headers(2 * n + 1, of(n), frame::END_STREAM)).collect()
}

/// One large entry for the dynamic table, then references to it: each byte decodes to four thousand.
pub(super) fn bomb() -> Vec<u8> {
    let mut fields = block::get("/", &[]);
    block::literal(&mut fields, INDEXED, b"x", &[b'a'; 4000]);
    fields.extend([FIRST_DYNAMIC; 16_000]);
    frame::headers(1, &fields, frame::END_STREAM)
}
