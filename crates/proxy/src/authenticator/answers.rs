//! Answers of authenticators that are remembered: bounded in bytes, shared by all threads, outside of generations.

use super::Said;
use crate::crowds::Crowd;
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::Instant;

/// Parts with a lock each.
const PARTS: usize = 16;
/// Bytes of a part: 32 MiB in all. A namespace has half of it.
const PART: usize = 2 << 20;
/// What is forgotten at once where all is taken: who has most is looked for among all.
const PIECE: usize = 64 << 10;
/// Bytes of one answer.
const LONGEST: usize = 64 << 10;

/// A hash of who said it about what.
pub(crate) type Tag = [u8; 32];

/// What is remembered under a tag.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// What was said.
    Said(Arc<Said>),
    /// Fields of a request that it hangs on besides, in lower case: what is said of each of their values has a tag of
    /// its own.
    Varies(Arc<[Box<str>]>),
}

impl From<Arc<Said>> for Entry {
    fn from(said: Arc<Said>) -> Self {
        Self::Said(said)
    }
}

impl Entry {
    fn size(&self) -> usize {
        match self {
            Self::Said(said) => said.size(),
            Self::Varies(names) => 256 + names.iter().map(|name| 32 + name.len()).sum::<usize>(),
        }
    }
}

/// The answers that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    parts: [Mutex<Part>; PARTS],
}

#[derive(Debug, Default)]
struct Part {
    of: HashMap<Arc<str>, Share>,
    size: usize,
    /// Answers that made room for others.
    forgotten: u64,
}

/// The answers of a namespace.
#[derive(Debug)]
struct Share {
    known: LruCache<Tag, Answer>,
    size: usize,
}

impl Default for Share {
    fn default() -> Self {
        Self { known: LruCache::unbounded(), size: 0 }
    }
}

#[derive(Debug)]
struct Answer {
    entry: Entry,
    until: Instant,
}

impl Answers {
    /// What is remembered, unless it is too old.
    pub(crate) fn get(&self, namespace: &Arc<str>, tag: &Tag) -> Option<Entry> {
        let mut part = self.part(tag);
        let answer = part.of.get_mut(namespace)?.known.get(tag)?;
        (answer.until > Instant::now()).then(|| answer.entry.clone())
    }

    /// Remembers it; of more than fits, what was used longest ago is forgotten: of its namespace, if that
    /// has its share, else of whoever has most.
    pub(crate) fn put(
        &self,
        namespace: &Arc<str>,
        tag: Tag,
        entry: impl Into<Entry>,
        until: Instant,
    ) {
        let entry: Entry = entry.into();
        if entry.size() > LONGEST {
            return;
        }
        let mut part = self.part(&tag);
        let part = &mut *part;
        let share = part.of.entry(namespace.clone()).or_default();
        let before = share.size;
        share.size += entry.size();
        if let Some(old) = share.known.put(tag, Answer { entry, until }) {
            share.size -= old.entry.size();
        }
        while share.size > PART / 2 {
            part.forgotten += u64::from(share.forget_one());
        }
        part.size = part.size + share.size - before;
        while part.size > PART {
            part.make_room();
        }
    }

    /// The bytes that they take, and how many were forgotten for others.
    pub(crate) fn crowd(&self) -> Crowd {
        let mut crowd = Crowd { most: (PART * PARTS) as u64, ..Crowd::default() };
        for part in &self.parts {
            let part = part.lock();
            crowd.now += part.size as u64;
            crowd.refused += part.forgotten;
        }
        crowd
    }

    fn part(&self, tag: &Tag) -> MutexGuard<'_, Part> {
        let part = &self.parts[usize::from(tag[0]) % PARTS];
        part.lock()
    }
}

impl Part {
    /// Forgets a piece of what whoever has most used longest ago.
    fn make_room(&mut self) {
        let most = self.of.iter_mut().max_by_key(|(_, share)| share.size);
        let Some((namespace, share)) = most else { return };
        let before = share.size;
        while before - share.size < PIECE && share.forget_one() {
            self.forgotten += 1;
        }
        self.size -= before - share.size;
        if share.known.is_empty() {
            let namespace = namespace.clone();
            self.of.remove(&namespace);
        }
    }
}

impl Share {
    /// Forgets what was used longest ago; whether there was something.
    fn forget_one(&mut self) -> bool {
        let oldest = self.known.pop_lru();
        self.size -= oldest.as_ref().map_or(0, |(_, answer)| answer.entry.size());
        oldest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Answers, LONGEST, PART, PARTS, Said, Tag};
    use bytes::Bytes;
    use http::StatusCode;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn an_answer_counts_for_the_memory_that_it_takes() {
        let mut said = Arc::into_inner(said(0)).expect("nobody else has it");
        let before = said.size();
        said.challenges = vec![Bytes::new(); 250];
        assert!(said.size() - before >= 250 * size_of::<Bytes>());
        said.headers = vec![(Bytes::new(), Bytes::new()); 64];
        assert!(said.size() - before >= 378 * size_of::<Bytes>());
    }

    fn said(length: usize) -> Arc<Said> {
        let cookies = vec![vec![b'x'; length].into()];
        let (headers, challenges, asked) = (Vec::new(), Vec::new(), Default::default());
        Arc::new(Said { status: StatusCode::OK, headers, challenges, cookies, asked })
    }

    fn tag(number: usize) -> Tag {
        let mut tag = Tag::default();
        tag[..8].copy_from_slice(&number.to_le_bytes());
        tag
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_remembered_for_its_time() {
        let (answers, a) = (Answers::default(), "a".into());
        answers.put(&a, tag(1), said(1), Instant::now() + Duration::from_secs(5));
        assert!(answers.get(&a, &tag(1)).is_some() && answers.get(&a, &tag(2)).is_none());
        assert!(answers.get(&"b".into(), &tag(1)).is_none(), "it is another namespace's");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(answers.get(&a, &tag(1)).is_none());
    }

    #[tokio::test]
    async fn a_namespace_has_half_of_it_and_what_others_have_stays() {
        let answers = Answers::default();
        let later = Instant::now() + Duration::from_secs(60);
        let (few, many): (Arc<str>, Arc<str>) = ("few".into(), "many".into());
        for number in 0..1000 {
            answers.put(&few, tag(number), said(1000), later);
        }
        for number in 1000..100_000 {
            answers.put(&many, tag(number), said(1000), later);
        }
        let has = |of: &Arc<str>, number: &usize| answers.get(of, &tag(*number)).is_some();
        assert_eq!((0..1000).filter(|number| has(&few, number)).count(), 1000);
        let kept = (0..100_000).filter(|number| has(&many, number)).count();
        assert!(kept * 1256 > PART * PARTS * 2 / 5 && kept * 1256 <= PART * PARTS / 2, "{kept}");
    }

    #[tokio::test]
    async fn the_bytes_that_are_remembered_have_a_bound() {
        let answers = Answers::default();
        let later = Instant::now() + Duration::from_secs(60);
        let namespaces: Vec<Arc<str>> = (0..50).map(|one| one.to_string().into()).collect();
        for number in 0..100_000 {
            answers.put(&namespaces[number % 50], tag(number), said(1000), later);
        }
        let has = |number: &usize| answers.get(&namespaces[number % 50], &tag(*number)).is_some();
        let kept = (0..100_000).filter(has).count();
        let crowd = answers.crowd();
        assert!(crowd.now <= crowd.most && crowd.refused > 0, "{crowd:?}");
        assert_eq!(crowd.now, kept as u64 * said(1000).size() as u64);
        answers.put(&namespaces[0], tag(7), said(LONGEST), later);
        assert!(answers.get(&namespaces[0], &tag(7)).is_none(), "it is too long");
    }
}
