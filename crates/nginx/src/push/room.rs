//! How much of nginx's shared memory may be taken by what is pushed: each namespace has a share, and where all of them
//! ask for more than there is, whoever asks for most gives way. Nobody's push is refused for another one's.

use std::collections::{BTreeMap, HashSet};

/// Bytes that one namespace may take, and all together. conf/http.rs has what nginx has: twice that of all, since what
/// is new comes before what is old goes, and half of it for what only workers need that leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    each: usize,
    all: usize,
}

/// Upstreams with their endpoints.
pub(crate) const UPSTREAMS: Share = Share::mebibytes(12, 48);
/// Routes: sessions, hashing, canaries, who stands in.
pub(crate) const ROUTES: Share = Share::mebibytes(12, 48);
/// Certificates with their keys.
pub(crate) const CERTIFICATES: Share = Share::mebibytes(32, 128);
/// Hosts with the names of their certificates.
pub(crate) const HOSTS: Share = Share::mebibytes(16, 32);

/// Zones in which clients are counted, before anybody is: each time that nginx.conf is tested they are there twice.
pub(crate) const ZONES: Share = Share::mebibytes(64, 128);

/// What nginx keeps beside a key and its value in a dictionary.
const BESIDE: usize = 72;
/// Memory comes in powers of two up to half a page, and in whole pages above.
const PAGE: usize = 4096;

/// Something that takes room.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a, K> {
    /// Whose it is.
    pub(crate) namespace: &'a str,
    /// What stays and goes as a whole.
    pub(crate) object: K,
    /// What is kept: once, however many objects of a namespace need it.
    pub(crate) key: &'a str,
    /// The room that it takes.
    pub(crate) bytes: usize,
}

/// How much a namespace asks for and may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    /// What all its objects would take.
    pub(crate) asked: usize,
    /// What it may take.
    pub(crate) allowed: usize,
}

impl Share {
    const fn mebibytes(each: usize, all: usize) -> Self {
        Self { each: each << 20, all: all << 20 }
    }

    /// That of what only workers need that leave.
    pub(crate) const fn half(self) -> Self {
        Self { each: self.each / 2, all: self.all / 2 }
    }

    /// What each namespace may take where they ask for these amounts.
    fn level(self, asked: impl Iterator<Item = usize>) -> usize {
        let mut asked: Vec<usize> = asked.map(|bytes| bytes.min(self.each)).collect();
        asked.sort_unstable();
        let mut left = self.all;
        for (place, bytes) in asked.iter().enumerate() {
            let fair = left / (asked.len() - place);
            if *bytes > fair {
                return fair;
            }
            left -= bytes;
        }
        self.each
    }

    /// The objects for which a namespace has no room: the largest of each. The answer hangs on nothing but what is
    /// asked for now, so that all replicas give the same one.
    pub(crate) fn beyond<K: Ord + Clone>(self, items: &[Item<'_, K>]) -> BTreeMap<K, Excess> {
        let mut kept = HashSet::with_capacity(items.len());
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        for item in items {
            if kept.insert((item.namespace, item.key)) {
                *asked.entry(item.namespace).or_default() += item.bytes;
            }
        }
        let allowed = self.level(asked.values().copied());
        asked.retain(|_, asked| *asked > allowed);
        let mut beyond = BTreeMap::new();
        for (namespace, asked) in asked {
            let own = items.iter().filter(|item| item.namespace == namespace);
            let excess = Excess { asked, allowed };
            beyond.extend(largest(own, allowed).into_iter().map(|object| (object, excess)));
        }
        beyond
    }
}

/// The objects that are left over when those that take least come first.
fn largest<'a, K: Ord + Clone + 'a>(
    items: impl Iterator<Item = &'a Item<'a, K>>,
    allowed: usize,
) -> Vec<K> {
    let mut objects: BTreeMap<&K, Vec<&Item<'_, K>>> = BTreeMap::new();
    for item in items {
        objects.entry(&item.object).or_default().push(item);
    }
    let mut objects: Vec<_> = objects.into_iter().collect();
    let bytes = |items: &[&Item<'_, K>]| items.iter().map(|item| item.bytes).sum::<usize>();
    objects.sort_by_cached_key(|(object, items)| (bytes(items), (*object).clone()));
    let (mut taken, mut kept) = (0, HashSet::new());
    objects.retain(|(_, items)| {
        let new: Vec<_> = items.iter().filter(|item| !kept.contains(item.key)).collect();
        let mut keys = HashSet::new();
        let new: Vec<_> = new.into_iter().filter(|item| keys.insert(item.key)).collect();
        let bytes: usize = new.iter().map(|item| item.bytes).sum();
        let fits = taken + bytes <= allowed;
        if fits {
            taken += bytes;
            kept.extend(new.iter().map(|item| item.key));
        }
        !fits
    });
    objects.into_iter().map(|(object, _)| object.clone()).collect()
}

/// The room that a key and its value take.
pub(crate) fn room(key: usize, value: usize) -> usize {
    let bytes = BESIDE + key + value;
    if bytes <= PAGE / 2 { bytes.next_power_of_two() } else { bytes.next_multiple_of(PAGE) }
}

#[cfg(test)]
mod tests {
    use super::{Excess, Item, Share, room};

    fn item<'a>(
        namespace: &'a str,
        object: &'a str,
        key: &'a str,
        bytes: usize,
    ) -> Item<'a, &'a str> {
        Item { namespace, object, key, bytes }
    }

    #[test]
    fn the_largest_objects_of_a_namespace_go_and_nobody_else_s() {
        let share = Share { each: 100, all: 1000 };
        let items = [
            item("a", "a/small", "1", 40),
            item("a", "a/large", "2", 70),
            item("a", "a/other", "3", 50),
            item("b", "b/whole", "4", 100),
        ];
        let beyond = share.beyond(&items);
        let excess = Excess { asked: 160, allowed: 100 };
        assert_eq!(beyond.into_iter().collect::<Vec<_>>(), [("a/large", excess)]);
    }

    #[test]
    fn what_objects_of_a_namespace_have_in_common_is_there_once() {
        let share = Share { each: 100, all: 1000 };
        let mut items = vec![item("b", "b/1", "common", 60)];
        for (object, own) in [("a/1", "1"), ("a/2", "2"), ("a/3", "3")] {
            items.extend([item("a", object, own, 10), item("a", object, "common", 60)]);
        }
        assert!(share.beyond(&items).is_empty());
        items.push(item("a", "a/4", "4", 11));
        assert_eq!(share.beyond(&items).into_keys().collect::<Vec<_>>(), ["a/3"]);
    }

    #[test]
    fn where_all_ask_for_too_much_whoever_asks_for_most_gives_way() {
        let share = Share { each: 100, all: 150 };
        let items = [
            item("a", "a/1", "1", 20),
            item("b", "b/1", "2", 60),
            item("b", "b/2", "3", 30),
            item("c", "c/1", "4", 60),
            item("c", "c/2", "5", 500),
        ];
        assert_eq!(share.beyond(&items).into_keys().collect::<Vec<_>>(), ["b/1", "c/2"]);
    }

    #[test]
    fn room_is_what_nginx_takes_for_it() {
        assert_eq!([room(10, 40), room(10, 60), room(100, 3000)], [128, 256, 4096]);
        assert_eq!(room(0, PAGES), 5 * 4096);
    }

    const PAGES: usize = 4 * 4096;
}
