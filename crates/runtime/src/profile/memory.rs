//! What the memory of the process is taken up by, as the kernel counts it: resident bytes of each kind of mapping. The
//! allocator notes no stacks, since noting them costs every request; so a sample says what kind of memory it is rather
//! than who asked for it.

use super::format::{Builder, Place};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::SystemTime;

/// Remarks in the profile, which `go tool pprof -comments` shows.
const REMARK: &str =
    "resident memory by kind of mapping (/proc/self/smaps); the allocator records no stacks";

/// The memory as it is now.
pub(super) fn snapshot() -> io::Result<Vec<u8>> {
    Ok(encode(&fs::read_to_string("/proc/self/smaps")?))
}

fn encode(smaps: &str) -> Vec<u8> {
    let types = [("inuse_objects", "count"), ("inuse_space", "bytes")];
    let mut builder = Builder::new(&types, SystemTime::now());
    builder.period("space", "bytes", 1, 0);
    builder.comment(REMARK);
    for (kind, Mapped { mappings, resident }) in by_kind(smaps) {
        let place = Place { function: kind.clone(), file: String::new(), line: 0 };
        builder.sample(vec![vec![place]], vec![mappings, resident], ("kind", &kind));
    }
    builder.encode()
}

/// What one kind of mapping takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mapped {
    mappings: i64,
    resident: i64,
}

fn by_kind(smaps: &str) -> BTreeMap<String, Mapped> {
    let mut kinds: BTreeMap<String, Mapped> = BTreeMap::new();
    let mut current = String::new();
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("Rss:") => {
                let kib: i64 = words.next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
                let kind = kinds.entry(current.clone()).or_default();
                kind.mappings += 1;
                kind.resident += kib * 1024;
            }
            // The head of a mapping: addresses, rights, offset, device, inode, path.
            Some(first) if !first.ends_with(':') => {
                let rights = words.next().unwrap_or_default();
                let path: Vec<&str> = words.skip(3).collect();
                current = kind(&path.join(" "), rights);
            }
            _ => {}
        }
    }
    kinds.retain(|_, mapped| mapped.resident > 0);
    kinds
}

fn kind(path: &str, rights: &str) -> String {
    match path {
        "" | "[heap]" => "heap and stacks of threads".to_owned(),
        special if special.starts_with("[anon") => "heap and stacks of threads".to_owned(),
        special if special.starts_with('[') => special.to_owned(),
        file if rights.contains('x') => format!("code of {file}"),
        file => format!("data of {file}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::Profile;
    use super::{REMARK, by_kind, snapshot};
    use prost::Message;

    #[test]
    fn mappings_are_summed_by_kind() {
        let smaps = "7f00-7f10 r-xp 00000000 08:01 77  /bin/a b\nSize: 64 kB\nRss:  8 kB\n\
                     7f10-7f20 rw-p 00000000 00:00 0 \nRss:  16 kB\nVmFlags: rd wr\n\
                     7f20-7f30 rw-p 00000000 00:00 0  [heap]\nRss:  4 kB\n\
                     7f30-7f40 ---p 00000000 00:00 0  [vvar]\nRss:  0 kB\n";
        let kinds: Vec<_> = by_kind(smaps)
            .into_iter()
            .map(|(kind, mapped)| (kind, mapped.mappings, mapped.resident))
            .collect();
        let wanted = [("code of /bin/a b", 1, 8192), ("heap and stacks of threads", 2, 20480)];
        assert_eq!(kinds, wanted.map(|(kind, count, bytes)| (kind.to_owned(), count, bytes)));
    }

    #[test]
    fn the_memory_of_this_process_is_a_profile() {
        let held = vec![1_u8; 8 << 20];
        let profile = Profile::decode(snapshot().expect("/proc").as_slice()).expect("a profile");
        let resident: i64 = profile.sample.iter().map(|sample| sample.value[1]).sum();
        assert!(resident > held.len() as i64, "{resident}");
        assert!(profile.string_table.iter().any(|text| text == REMARK));
    }
}
