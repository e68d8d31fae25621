//! Answers of authenticators that are remembered: bounded in bytes, shared by all threads, outside of generations.

use super::Said;
use crate::crowds::Crowd;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Parts with a lock each.
const PARTS: usize = 16;
/// Bytes of half a part: 32 MiB in all.
const HALF: usize = 1 << 20;

/// A hash of who said it about what.
pub(crate) type Tag = [u8; 32];

/// The answers that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    parts: [Mutex<Part>; PARTS],
}

/// The answers used last, and those before them.
#[derive(Debug, Default)]
struct Part {
    young: Known,
    old: Known,
    size: usize,
    old_size: usize,
    /// Answers that made room for others.
    forgotten: u64,
}

type Known = HashMap<Tag, Answer, RandomState>;

#[derive(Debug)]
struct Answer {
    said: Arc<Said>,
    until: Instant,
}

impl Answers {
    /// What was said, unless it is too old.
    pub(crate) fn get(&self, tag: &Tag) -> Option<Arc<Said>> {
        let mut part = self.part(tag);
        if !part.young.contains_key(tag) {
            let answer = part.old.remove(tag)?;
            part.old_size -= answer.said.size();
            part.insert(*tag, answer);
        }
        let answer = part.young.get(tag)?;
        (answer.until > Instant::now()).then(|| answer.said.clone())
    }

    /// Remembers what was said; of more than fits, what was used longest ago is forgotten.
    pub(crate) fn put(&self, tag: Tag, said: Arc<Said>, until: Instant) {
        if said.size() <= HALF / 16 {
            self.part(&tag).insert(tag, Answer { said, until });
        }
    }

    /// The bytes that they take, and how many were forgotten for others.
    pub(crate) fn crowd(&self) -> Crowd {
        let mut crowd = Crowd { most: (2 * HALF * PARTS) as u64, ..Crowd::default() };
        for part in &self.parts {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            crowd.now += (part.size + part.old_size) as u64;
            crowd.refused += part.forgotten;
        }
        crowd
    }

    fn part(&self, tag: &Tag) -> MutexGuard<'_, Part> {
        let part = &self.parts[usize::from(tag[0]) % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    fn insert(&mut self, tag: Tag, answer: Answer) {
        let size = answer.said.size();
        if self.size + size > HALF {
            self.forgotten += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
            self.old_size = std::mem::take(&mut self.size);
        }
        match self.young.insert(tag, answer) {
            Some(before) => self.size = self.size + size - before.said.size(),
            None => self.size += size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answers, HALF, PARTS, Said, Tag};
    use http::StatusCode;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::Instant;

    fn said(length: usize) -> Arc<Said> {
        let cookies = Some(vec![b'x'; length].into());
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
        let answers = Answers::default();
        answers.put(tag(1), said(1), Instant::now() + Duration::from_secs(5));
        assert!(answers.get(&tag(1)).is_some() && answers.get(&tag(2)).is_none());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(answers.get(&tag(1)).is_none());
    }

    #[tokio::test]
    async fn the_bytes_that_are_remembered_have_a_bound() {
        let answers = Answers::default();
        let later = Instant::now() + Duration::from_secs(60);
        for number in 0..100_000 {
            answers.put(tag(number), said(1000), later);
            assert!(number == 0 || answers.get(&tag(0)).is_some() || number % 16 != 0);
        }
        let kept = (0..100_000).filter(|number| answers.get(&tag(*number)).is_some()).count();
        assert!(kept * 1256 <= 2 * HALF * PARTS, "{kept}");
        let crowd = answers.crowd();
        assert!(crowd.now <= crowd.most && crowd.refused > 0, "{crowd:?}");
        assert_eq!(crowd.now, kept as u64 * said(1000).size() as u64);
        answers.put(tag(7), said(HALF), later);
        assert!(answers.get(&tag(7)).is_none_or(|said| said.size() < HALF));
    }
}
