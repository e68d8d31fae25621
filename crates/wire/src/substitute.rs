//! A body in which texts are replaced on its way (ngx_http_sub_filter_module). What cannot be part of a text that is
//! looked for goes out at once; no more is kept than the longest of these texts. A body that breaks off is never ended
//! as if it were whole.

use super::{Body, BodyError, BodySource, Frame, Headers, Length};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use bytes::Bytes;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes that are looked through before other requests of the thread have their turn.
const TURN: usize = 256 << 10;

/// The texts that are looked for, without regard to case. Of several that begin at the same place the first one counts.
#[derive(Debug)]
pub struct Search {
    automaton: AhoCorasick,
    texts: Vec<Text>,
}

/// A text in lower case, and for each of its beginnings how much of its end the text begins with (Knuth, Morris and
/// Pratt).
#[derive(Debug)]
struct Text {
    bytes: Vec<u8>,
    borders: Vec<usize>,
}

impl Search {
    /// Prepares the search; none if there is nothing to look for, or more than there is room for.
    pub fn new(texts: &[impl AsRef<[u8]>]) -> Option<Arc<Self>> {
        if texts.is_empty() || texts.iter().any(|text| text.as_ref().is_empty()) {
            return None;
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostFirst)
            // What it takes grows with the texts alone.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(texts)
            .ok()?;
        let texts = texts.iter().map(|text| Text::new(text.as_ref())).collect();
        Some(Arc::new(Self { automaton, texts }))
    }

    /// Where the first text could begin that may go on behind the end of `data`.
    fn open_end(&self, data: &[u8]) -> usize {
        let begun = self.texts.iter().map(|text| text.begun_at_end_of(data)).max();
        data.len() - begun.unwrap_or_default()
    }
}

impl Text {
    fn new(text: &[u8]) -> Self {
        let bytes = text.to_ascii_lowercase();
        let mut borders = vec![0; bytes.len()];
        let mut length = 0;
        for at in 1..bytes.len() {
            while length > 0 && bytes[at] != bytes[length] {
                length = borders[length - 1];
            }
            length += usize::from(bytes[at] == bytes[length]);
            borders[at] = length;
        }
        Self { bytes, borders }
    }

    /// How many bytes of the text, but not all, are the last ones of `data`.
    fn begun_at_end_of(&self, data: &[u8]) -> usize {
        let tail = &data[data.len().saturating_sub(self.bytes.len() - 1)..];
        let mut length = 0;
        for byte in tail.iter().map(u8::to_ascii_lowercase) {
            while length > 0 && self.bytes[length] != byte {
                length = self.borders[length - 1];
            }
            length += usize::from(self.bytes[length] == byte);
        }
        length
    }
}

/// A body in which texts are replaced on its way.
#[derive(Debug)]
pub struct Substituted {
    inner: Body,
    search: Arc<Search>,
    /// What is written instead, by text.
    instead: Vec<Bytes>,
    /// By text, whether it is still looked for.
    wanted: Vec<bool>,
    once: bool,
    /// What may be the beginning of a text.
    kept: Vec<u8>,
    ended: bool,
    trailers: Option<Headers>,
}

impl BodySource for Substituted {
    fn length(&self) -> Length {
        Length::Unknown
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let mut taken = 0;
        loop {
            if self.ended {
                return Poll::Ready(Ok(self.trailers.take().map(Frame::Trailers)));
            }
            let ready = match self.inner.poll_frame(cx)? {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Frame::Data(piece))) => {
                    taken += piece.len();
                    self.piece(piece)
                }
                Poll::Ready(end) => {
                    self.ended = true;
                    if let Some(Frame::Trailers(trailers)) = end {
                        self.trailers = Some(trailers);
                    }
                    let kept = std::mem::take(&mut self.kept);
                    self.replaced(kept.into())
                }
            };
            // A piece of no bytes would be a chunk that ends the message.
            if !ready.is_empty() {
                return Poll::Ready(Ok(Some(Frame::Data(ready))));
            }
            if taken >= TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl Substituted {
    /// `body` with the texts of `search` replaced by those of `instead`, each once or as often as it comes.
    ///
    /// # Panics
    /// If there are not as many of these as of those.
    pub fn new(body: Body, search: Arc<Search>, instead: Vec<Bytes>, once: bool) -> Self {
        assert_eq!(instead.len(), search.texts.len(), "each text has something to stand instead");
        let wanted = vec![true; instead.len()];
        let (kept, ended) = (Vec::new(), false);
        Self { inner: body, search, instead, wanted, once, kept, ended, trailers: None }
    }

    /// What of a piece, and of what was kept before it, may go.
    fn piece(&mut self, piece: Bytes) -> Bytes {
        let data = if self.kept.is_empty() {
            piece
        } else {
            let mut kept = std::mem::take(&mut self.kept);
            kept.extend_from_slice(&piece);
            kept.into()
        };
        self.replaced(data)
    }

    /// `data` with every text replaced that surely is one; what may go on behind its end is kept.
    fn replaced(&mut self, data: Bytes) -> Bytes {
        if !self.wanted.contains(&true) {
            return data;
        }
        let mut out: Vec<u8> = Vec::new();
        let (mut done, mut from) = (0, 0);
        let mut open = self.open_end(&data);
        while let Some(found) = self.search.automaton.find(&data[from..]) {
            let start = from + found.start();
            // Another text may begin before it, or here and be looked for first.
            if start >= open {
                break;
            }
            let Some(which) = self.wanted_at(&data[start..], found.pattern().as_usize()) else {
                from = start + 1;
                continue;
            };
            out.extend_from_slice(&data[done..start]);
            out.extend_from_slice(&self.instead[which]);
            self.wanted[which] = !self.once;
            done = start + self.search.texts[which].bytes.len();
            from = done;
            if done > open {
                open = done + self.open_end(&data[done..]);
            }
            if !self.wanted.contains(&true) {
                open = data.len();
                break;
            }
        }
        let open = open.max(done);
        self.kept.extend_from_slice(&data[open..]);
        if out.is_empty() && done == 0 {
            return data.slice(..open);
        }
        out.extend_from_slice(&data[done..open]);
        out.into()
    }

    fn open_end(&self, data: &[u8]) -> usize {
        if self.ended { data.len() } else { self.search.open_end(data) }
    }

    /// The text that is replaced at the beginning of `data`, where `found` is the first one that is there.
    fn wanted_at(&self, data: &[u8], found: usize) -> Option<usize> {
        if self.wanted[found] {
            return Some(found);
        }
        let texts = self.search.texts.iter().enumerate().skip(found);
        let starts = |text: &Text| {
            data.get(..text.bytes.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(&text.bytes))
        };
        texts
            .into_iter()
            .find(|(which, text)| self.wanted[*which] && starts(text))
            .map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, BodySource, Frame, Search, Substituted};
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
            out.push(text(filter.piece(Bytes::copy_from_slice(piece.as_bytes()))));
        }
        filter.ended = true;
        let kept = std::mem::take(&mut filter.kept);
        out.push(text(filter.replaced(kept.into())));
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
            filter.piece(Bytes::from("x".repeat(3000)));
            assert!(filter.kept.len() <= 4000);
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
}
