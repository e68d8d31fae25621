//! The admin port of the Fairway that runs here, for who asks it: its command line says so.

use std::fs;
use std::path::Path;

/// Where it is unless somebody says otherwise.
pub(crate) const USUAL: u16 = 10_254;

const FLAG: &str = "--healthz-port";
/// Names of the program.
const NAMES: [&str; 2] = ["fairway", "nginx-ingress-controller"];

/// The port of the one Fairway of this machine, or of this container, that was told another one; else the usual one.
pub(crate) fn here() -> u16 {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    of(all.filter_map(|one| fs::read_to_string(one.path().join("cmdline")).ok()))
}

fn of(command_lines: impl Iterator<Item = String>) -> u16 {
    let mut ports: Vec<u16> = command_lines.filter_map(|line| told(&line)).collect();
    ports.sort_unstable();
    ports.dedup();
    if let [port] = ports[..] { port } else { USUAL }
}

/// What a command line says, whose arguments end with a zero byte.
fn told(line: &str) -> Option<u16> {
    let mut arguments = line.split('\0');
    let program = Path::new(arguments.next()?).file_name()?.to_str()?;
    let mut arguments = arguments.skip_while(|argument| *argument == "run");
    let first = arguments.next()?;
    // Other commands ask, as this one does.
    if !NAMES.contains(&program) || !first.starts_with('-') {
        return None;
    }
    let all: Vec<&str> = std::iter::once(first).chain(arguments).collect();
    let told = all.iter().enumerate().rev().find_map(|(at, argument)| {
        match argument.strip_prefix(FLAG)? {
            "" => all.get(at + 1).copied(),
            more => more.strip_prefix('='),
        }
    });
    told?.parse().ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::{USUAL, of};

    #[test]
    fn the_port_is_that_of_the_fairway_that_runs_here() {
        for (lines, port) in [
            (&["/nginx-ingress-controller\0--healthz-port=9000\0--v=2\0", "sh\0-c\0"][..], 9000),
            (&["/usr/bin/fairway\0run\0--manifests\0a\0--healthz-port\09001\0"], 9001),
            (&["/fairway\0--healthz-port=1\0--healthz-port=2\0"], 2),
            (&["/fairway\0run\0--manifests\0a\0"], USUAL),
            (&["/fairway\0top\0--healthz-port=1\0", "cat\0--healthz-port=3\0"], USUAL),
            (&["/fairway\0--healthz-port=1\0", "/fairway\0--healthz-port=2\0"], USUAL),
            (&["/fairway\0--healthz-port=x\0", "", "/fairway\0"], USUAL),
        ] {
            assert_eq!(of(lines.iter().map(|line| (*line).to_owned())), port, "{lines:?}");
        }
    }
}
