//! A body in which texts are replaced on its way (ngx_http_sub_filter_module). What cannot be part of a text that is
//! looked for goes out at once; no more is kept than the longest of these texts. A body that breaks off is never ended
//! as if it were whole.

use super::search::{ROOT, Search};
use super::{Body, BodyError, BodySource, Frame, Headers, Length};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Steps of looking for texts, and sixteens of bytes that are written instead, before other requests of the thread have
/// their turn.
const TURN: usize = 256 << 10;
/// Bytes that are made before they have to go.
const OUT: usize = 64 << 10;
/// How many times longer a body may become, and by how many bytes besides.
const GROWTH: u64 = 16;
const MORE: u64 = 16 << 20;

impl Search {
    /// Prepares the search; none if there is nothing to look for.
    pub fn new(texts: &[impl AsRef<[u8]>]) -> Option<Arc<Self>> {
        Self::over(texts).map(Arc::new)
    }
}

/// A body in which texts are replaced on its way.
#[derive(Debug)]
pub struct Substituted {
    inner: Body,
    search: Arc<Search>,
    /// What is written instead, by text.
    instead: Vec<Bytes>,
    /// By the first of equal texts, the one of them that is replaced next; none if all always are.
    wanted: Option<Vec<Option<usize>>>,
    /// How many are not looked for any longer.
    spent: usize,
    /// What was read and has not gone yet.
    data: Bytes,
    /// Up to where it has gone, and was looked through.
    done: usize,
    at: usize,
    /// What of the last bytes may begin a text.
    node: u32,
    /// The texts that stand in `data` at places of which nothing was made yet: length and number, by place.
    found: BTreeMap<usize, (usize, usize)>,
    /// Steps of this turn.
    steps: usize,
    /// Bytes that came, and that were made of them.
    came: u64,
    made: u64,
    ended: bool,
    trailers: Option<Headers>,
    /// Room for the texts, given back with them.
    _room: Option<Box<dyn Debug>>,
}

impl BodySource for Substituted {
    fn length(&self) -> Length {
        Length::Unknown
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        loop {
            let ready = self.ready();
            // A piece of no bytes would be a chunk that ends the message.
            if !ready.is_empty() {
                self.made += ready.len() as u64;
                if self.made > MORE + self.came.saturating_mul(GROWTH) {
                    tracing::warn!(
                        "sub_filter makes a body far too long: it is broken off (docs/limits.md)"
                    );
                    return Poll::Ready(Err(BodyError::TooLarge));
                }
                return Poll::Ready(Ok(Some(Frame::Data(ready))));
            }
            if self.steps >= TURN {
                self.steps = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.ended {
                return Poll::Ready(Ok(self.trailers.take().map(Frame::Trailers)));
            }
            match self.inner.poll_frame(cx)? {
                Poll::Pending => {
                    self.steps = 0;
                    return Poll::Pending;
                }
                Poll::Ready(Some(Frame::Data(piece))) => self.take(piece),
                Poll::Ready(end) => {
                    self.ended = true;
                    if let Some(Frame::Trailers(trailers)) = end {
                        self.trailers = Some(trailers);
                    }
                }
            }
        }
    }
}

impl Substituted {
    /// `body` with the texts of `search` replaced by those of `instead`, each once or as often as it comes.
    pub fn new(body: Body, search: Arc<Search>, instead: Vec<Bytes>, once: bool) -> Self {
        Self {
            inner: body,
            search,
            wanted: once.then(|| (0..instead.len()).map(Some).collect()),
            instead,
            spent: 0,
            data: Bytes::new(),
            done: 0,
            at: 0,
            node: ROOT,
            found: BTreeMap::new(),
            steps: 0,
            came: 0,
            made: 0,
            ended: false,
            trailers: None,
            _room: None,
        }
    }

    /// The same, which has this room for its texts as long as it has them.
    pub fn in_room(self, room: Option<Box<dyn Debug>>) -> Self {
        Self { _room: room, ..self }
    }

    /// One more piece, behind what has not gone yet.
    fn take(&mut self, piece: Bytes) {
        self.came += piece.len() as u64;
        let kept = self.data.slice(self.done..);
        self.steps += kept.len() / 16 + 1 + self.found.len();
        self.data = if kept.is_empty() { piece } else { [&kept[..], &piece].concat().into() };
        self.at -= self.done;
        let done = std::mem::take(&mut self.done);
        let found = std::mem::take(&mut self.found);
        self.found = found.into_iter().map(|(place, text)| (place - done, text)).collect();
    }

    /// What may go: all that no text can begin in any longer, with those replaced that are there. Nothing if this turn
    /// is at its end, or all is said.
    fn ready(&mut self) -> Bytes {
        let mut out: Vec<u8> = Vec::new();
        let from = self.done;
        let mut replaced = false;
        while self.steps < TURN && out.len() < OUT {
            if self.is_spent() {
                self.at = self.data.len();
                break;
            }
            if let Some((place, length, text)) = self.certain() {
                replaced = true;
                out.extend_from_slice(&self.data[self.done..place]);
                out.extend_from_slice(&self.instead[text]);
                self.steps += self.instead[text].len() / 16 + 1;
                self.replaced(place + length, text);
            } else if self.at < self.data.len() {
                self.read();
            } else {
                break;
            }
        }
        let open = self.open().max(self.done);
        if !replaced {
            self.done = open;
            return self.data.slice(from..open);
        }
        out.extend_from_slice(&self.data[self.done..open]);
        self.done = open;
        out.into()
    }

    /// Whether no text is looked for any longer.
    fn is_spent(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.len() == self.spent)
    }

    /// Where a text begins that may go on behind what was looked through, or one that nothing was made of yet.
    fn open(&self) -> usize {
        if self.is_spent() {
            return self.data.len();
        }
        let is_end = self.ended && self.at == self.data.len();
        let begun = if is_end { self.at } else { self.at - self.search.open(self.node) };
        self.found.first_key_value().map_or(begun, |(place, _)| begun.min(*place))
    }

    /// The first text that surely is one: none begins before it, or goes on at its place.
    fn certain(&self) -> Option<(usize, usize, usize)> {
        let (place, (length, text)) = self.found.first_key_value()?;
        let is_end = self.ended && self.at == self.data.len();
        let begun = self.at - self.search.open(self.node);
        (is_end || *place < begun).then_some((*place, *length, *text))
    }

    /// Goes on behind a text that was replaced.
    fn replaced(&mut self, behind: usize, text: usize) {
        self.done = behind;
        match &mut self.wanted {
            None => {
                self.found = self.found.split_off(&behind);
                self.node = self.search.no_longer(self.node, self.at - behind);
            }
            // Others may stand where this one would have stood first. That is so once for each text.
            Some(wanted) => {
                wanted[self.search.first_of(text)] = self.search.next_equal(text);
                self.spent += 1;
                self.found.clear();
                (self.at, self.node) = (behind, ROOT);
            }
        }
    }

    /// Looks at the next byte, or passes over all that begin nothing.
    fn read(&mut self) {
        if self.node == ROOT {
            let rest = &self.data[self.at..];
            let skipped = self.search.indifferent(&rest[..rest.len().min(TURN)]);
            self.at += skipped;
            self.steps += skipped / 16;
            if skipped > 0 {
                return;
            }
        }
        let byte = self.data[self.at].to_ascii_lowercase();
        self.node = self.search.next(self.node, byte, &mut self.steps);
        self.at += 1;
        for (length, first) in self.search.ending(self.node) {
            self.steps += 1;
            let length = length as usize;
            let text = match &self.wanted {
                None => Some(first),
                // However many are equal, it is one step: they are done in order.
                Some(wanted) => wanted[first],
            };
            // What was replaced already is no part of another one.
            if let Some(text) = text
                && let Some(place) = self.at.checked_sub(length).filter(|at| *at >= self.done)
            {
                let known = self.found.entry(place).or_insert((length, text));
                if text < known.1 {
                    *known = (length, text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, BodyError, BodySource, Frame, OUT, Search, Substituted, TURN};
    use bytes::Bytes;
    use std::task::{Context, Poll, Waker};

    /// A body that does not come to an end, to be fed by hand.
    fn filter(pairs: &[(&str, &str)], once: bool) -> Substituted {
        let from: Vec<&str> = pairs.iter().map(|(from, _)| *from).collect();
        let to = pairs.iter().map(|(_, to)| Bytes::copy_from_slice(to.as_bytes()));
        let search = Search::new(&from).expect("there is something to look for");
        Substituted::new(Body::empty(), search, to.collect(), once)
    }

    /// What comes out of pieces, each of them by itself, and at the end.
    fn out(pairs: &[(&str, &str)], once: bool, pieces: &[&str]) -> Vec<String> {
        let mut filter = filter(pairs, once);
        let mut out: Vec<String> = Vec::new();
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).expect("text");
        for piece in pieces {
            filter.take(Bytes::copy_from_slice(piece.as_bytes()));
            out.push(text(filter.ready()));
        }
        filter.ended = true;
        out.push(text(filter.ready()));
        out
    }

    #[test]
    fn texts_are_replaced_without_regard_to_case_once_or_always() {
        let pairs = [("one", "1"), ("two", "2")];
        assert_eq!(out(&pairs, true, &["ONE one two two "]), ["1 one 2 two ", ""]);
        assert_eq!(out(&pairs, false, &["ONE one two two "]), ["1 1 2 2 ", ""]);
    }

    #[test]
    fn what_surely_is_no_text_goes_at_once_and_parts_of_one_are_kept() {
        let pairs = [("<head>", "<head><base>")];
        let pieces = ["<html><he", "ad></he", "ad>", "<HEA", "", "d"];
        let expected = ["<html>", "<head><base></he", "ad>", "", "", "", "<HEAd"];
        assert_eq!(out(&pairs, false, &pieces), expected);
    }

    #[test]
    fn the_leftmost_text_counts_and_of_those_at_one_place_the_first() {
        assert_eq!(out(&[("b", "!"), ("abc", "?")], false, &["abc b"]), ["? !", ""]);
        assert_eq!(out(&[("a", "1"), ("ab", "2")], false, &["ab"]), ["1b", ""]);
        assert_eq!(out(&[("ab", "2"), ("a", "1")], false, &["a", "b a"]), ["", "2 ", "1"]);
        // Once the first is done, the other one at its place is still looked for.
        assert_eq!(out(&[("a", "1"), ("ab", "2")], true, &["a ab ab "]), ["1 2 ab ", ""]);
    }

    #[test]
    fn any_pieces_make_what_the_whole_makes() {
        let pairs = [("aab", "X"), ("abaa", "YY"), ("ba", ""), ("aaaa", "Z")];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let body: String = (0..40).map(|_| if random.bool() { 'a' } else { 'B' }).collect();
            for once in [true, false] {
                let whole = out(&pairs, once, &[&body]).concat();
                let mut pieces = Vec::new();
                let mut rest = body.as_str();
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at(random.usize(1..=rest.len()));
                    pieces.push(piece);
                    rest = after;
                }
                assert_eq!(out(&pairs, once, &pieces).concat(), whole, "{pieces:?}");
            }
        }
    }

    #[test]
    fn no_more_is_kept_than_the_longest_text() {
        let long = "x".repeat(4000);
        let mut filter = filter(&[(&format!("{long}y"), "")], false);
        for _ in 0..100 {
            filter.take(Bytes::from("x".repeat(3000)));
            filter.ready();
            assert!(filter.data.len() - filter.done <= 4000);
            filter.steps = 0;
        }
    }

    #[test]
    fn a_body_of_its_own_comes_out_whole_and_trailers_follow() {
        let search = Search::new(&["b"]).expect("a text");
        let body = Body::full(Bytes::from_static(b"abc"));
        let mut body = Substituted::new(body, search, vec![Bytes::from_static(b"")], false);
        let mut next = || body.poll_frame(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(Some(Frame::Data(data)))) = next() else { panic!("some data") };
        assert_eq!(data, "ac");
        assert!(matches!(next(), Poll::Ready(Ok(None))));
        assert!(Search::new(&[""; 0]).is_none() && Search::new(&["a", ""]).is_none());
    }

    /// What comes of a whole body: its bytes, how often others had their turn, and how it ended.
    fn whole(mut filter: Substituted, data: Vec<u8>) -> (Vec<Bytes>, usize, Option<BodyError>) {
        filter.inner = Body::full(data.into());
        let (mut pieces, mut turns) = (Vec::new(), 0);
        loop {
            match filter.poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Some(Frame::Data(piece)))) => pieces.push(piece),
                Poll::Ready(Ok(_)) => return (pieces, turns, None),
                Poll::Ready(Err(error)) => return (pieces, turns, Some(error)),
                Poll::Pending => turns += 1,
            }
        }
    }

    #[test]
    fn long_texts_come_out_in_pieces_and_others_have_their_turn() {
        let long = "x".repeat(1000);
        let (pieces, turns, error) = whole(filter(&[("a", &long)], false), vec![b'a'; 10_000]);
        assert_eq!((pieces.iter().map(Bytes::len).sum::<usize>(), error), (10_000_000, None));
        assert!(pieces.iter().all(|piece| piece.len() <= OUT + 1000));
        assert!(turns >= 10_000_000 / 16 / TURN, "{turns}");
    }

    #[test]
    fn a_body_that_grows_without_end_is_broken_off() {
        let long = "x".repeat(64 << 10);
        let (pieces, _, error) = whole(filter(&[("a", &long)], false), vec![b'a'; 10_000]);
        assert_eq!(error, Some(BodyError::TooLarge));
        assert!(pieces.iter().map(Bytes::len).sum::<usize>() <= 17 << 20);
    }

    #[test]
    fn texts_that_begin_alike_cost_steps_by_bytes_and_never_more() {
        // Each place may begin the long one, and has the short ones that were there already.
        let begins = "a".repeat(4000) + "x";
        let mut pairs = vec![(begins.as_str(), "!"), ("a", "b")];
        let (pieces, turns, error) = whole(filter(&pairs, false), vec![b'a'; 1 << 20]);
        assert!(pieces.concat().iter().all(|byte| *byte == b'b') && error.is_none());
        assert!(turns <= 8 * (1 << 20) / TURN, "{turns}");
        let others: Vec<String> = (1..900).map(|count| "a".repeat(4000 - count) + "y").collect();
        pairs.extend(others.iter().map(|other| (other.as_str(), "?")));
        let (pieces, turns, error) = whole(filter(&pairs, true), vec![b'a'; 1 << 20]);
        assert_eq!(
            (pieces.concat().iter().filter(|byte| **byte == b'b').count(), error),
            (1, None)
        );
        assert!(turns <= 8 * (1 << 20) / TURN + 4, "{turns}");
    }

    #[test]
    fn many_equal_texts_cost_no_more_than_one() {
        // All but the last are done after as many bytes; what is still looked for keeps the search going.
        let mut pairs = vec![("a", "b"); 20_000];
        pairs.push(("z", "!"));
        let began = std::time::Instant::now();
        let (pieces, turns, error) = whole(filter(&pairs, true), vec![b'a'; 4 << 20]);
        let replaced = pieces.concat().iter().filter(|byte| **byte == b'b').count();
        assert_eq!((replaced, error), (20_000, None));
        assert!(turns <= 8 * (4 << 20) / TURN, "{turns}");
        // Looking through all equal ones at each byte would be 84,000,000,000 steps.
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }

    #[test]
    fn it_is_what_the_definition_says() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..500 {
            let word = |random: &mut fastrand::Rng, most| -> String {
                (0..random.usize(1..=most))
                    .map(|_| random.choice(['a', 'b']).unwrap_or('a'))
                    .collect()
            };
            let texts: Vec<String> =
                (0..random.usize(1..5)).map(|_| word(&mut random, 4)).collect();
            let pairs: Vec<(&str, &str)> =
                texts.iter().map(String::as_str).zip(["1", "2", "3", "4"]).collect();
            let body = word(&mut random, 60);
            for once in [true, false] {
                let mut wanted = vec![true; pairs.len()];
                let (mut expected, mut rest) = (String::new(), body.as_str());
                while !rest.is_empty() {
                    let here = |at: &usize| wanted[*at] && rest.starts_with(pairs[*at].0);
                    if let Some(at) = (0..pairs.len()).find(here) {
                        expected.push_str(pairs[at].1);
                        rest = &rest[pairs[at].0.len()..];
                        wanted[at] = !once;
                    } else {
                        expected.push_str(&rest[..1]);
                        rest = &rest[1..];
                    }
                }
                assert_eq!(
                    out(&pairs, once, &[&body]).concat(),
                    expected,
                    "{pairs:?} {body} {once}"
                );
            }
        }
    }
}
