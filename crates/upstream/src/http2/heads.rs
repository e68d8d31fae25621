//! Heads and trailers of answers that are not whole. The h2 crate makes fields of each frame at once, many times what
//! came: they count for the connection of the request whose stream they are on, and have room as over HTTP/1.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use wire::http2::{LONGEST_HEAD, UpstreamFrames};
use wire::{Control, Counted, Loan, Room};

/// What a session holds of the one that is coming in: it has to be whole before anything else may come.
#[derive(Debug)]
pub(super) struct Heads {
    room: Arc<Room>,
    /// The namespace that the session was made for.
    whose: Arc<str>,
    /// The books of the requests on it, by their streams.
    books: RefCell<Vec<(u32, Rc<Control>)>>,
    held: RefCell<Held>,
    refused: Cell<bool>,
}

#[derive(Debug, Default)]
struct Held {
    /// The stream that it counts for.
    stream: u32,
    counted: Option<Counted>,
    loan: Option<Loan>,
}

impl Heads {
    /// None as yet.
    pub(super) fn new(room: Arc<Room>, whose: Arc<str>) -> Self {
        Self {
            room,
            whose,
            books: RefCell::default(),
            held: RefCell::default(),
            refused: Cell::default(),
        }
    }

    /// Whether the session ended since there was no room.
    pub(super) fn are_refused(&self) -> bool {
        self.refused.get()
    }

    /// A request goes out on this stream.
    pub(super) fn asked(&self, stream: u32, book: &Rc<Control>) {
        self.books.borrow_mut().push((stream, book.clone()));
    }

    /// It is over: what comes on its stream counts for nobody, but has its room.
    pub(super) fn gone(&self, stream: u32) {
        let mut books = self.books.borrow_mut();
        if let Some(at) = books.iter().position(|(of, _)| *of == stream) {
            books.swap_remove(at);
        }
        let mut held = self.held.borrow_mut();
        if held.stream == stream {
            held.counted = None;
        }
    }

    /// Counts what is held now; whether there is room for it.
    pub(super) fn have_room(&self, frames: &UpstreamFrames) -> bool {
        let mut held = self.held.borrow_mut();
        let Some(stream) = frames.head.stream() else {
            *held = Held::default();
            return true;
        };
        let size = frames.head.held(LONGEST_HEAD as usize);
        if std::mem::replace(&mut held.stream, stream) != stream {
            held.counted = None;
        }
        let books = self.books.borrow();
        let book = books.iter().find(|(of, _)| *of == stream).map(|(_, book)| book);
        Counted::keep(&mut held.counted, book, size);
        if size <= Counted::FREE {
            held.loan = None;
            return true;
        }
        let loan = held.loan.get_or_insert_with(|| self.room.lend(&self.whose));
        let more = (size as u64).saturating_sub(loan.size());
        let has_room = more == 0 || loan.grow(more).is_some();
        self.refused.set(!has_room);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Head, Outgoing, Pool, Target, Try, TryError, send};
    use http::Method;
    use model::Global;
    use model::policy::{Policy, Protocol};
    use std::net::Ipv4Addr;
    use std::pin::pin;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::task::Poll;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::{LocalSet, yield_now};
    use wire::{Body, BodyError, BodySource, Control, Frame, Length, Response, Room};

    /// Fields of the head: a name of their own each, and no value.
    const FIELDS: usize = 1_800;

    /// A body of which nothing comes, so that the request has a session alone.
    #[derive(Debug)]
    struct Silent;

    impl BodySource for Silent {
        fn poll_frame(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> Poll<Result<Option<Frame>, BodyError>> {
            Poll::Pending
        }

        fn length(&self) -> Length {
            Length::Unknown
        }
    }

    struct Fixture {
        listener: TcpListener,
        room: Arc<Room>,
        pool: Rc<Pool>,
        book: Rc<Control>,
    }

    impl Fixture {
        async fn new(most: u64) -> Self {
            let room = Arc::new(Room::new(most));
            let pool = Pool::new(Arc::new(Room::new(9))).with_heads(room.clone());
            pool.follow(Global::default().upstream_keep_alive);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            Self { listener, room, pool: Rc::new(pool), book: Rc::default() }
        }

        /// What is held of heads: by the request, and by all.
        fn held(&self) -> (usize, u64) {
            (self.book.under_way.held(), self.room.now().0)
        }

        async fn ask(&self) -> Result<Response, TryError> {
            let address = self.listener.local_addr().expect("bound");
            let request = http::Request::post("http://a.test/").body(()).expect("a request");
            let whose = "a".into();
            let mut outgoing = Outgoing {
                method: &Method::POST,
                head: Head::Http2(Box::new((request, None))),
                body: &mut Body::from_source(Silent),
                upgrade: false,
                interim: &|_| {},
                policy: &Policy { protocol: Protocol::Grpc, ..Policy::default() },
                whose: Some(&whose),
                cause: Cause { hops: 0, book: Some(&self.book) },
            };
            let target = Target { address, tls: None };
            let journal = Rc::new(Try::new(address));
            let answer = send(&self.pool, &target, &mut outgoing, &journal).await;
            answer.map_err(|failed| failed.error)
        }

        /// An upstream that answers the first request with HEADERS that are not all of a head.
        async fn begins(&self) -> TcpStream {
            let (mut tcp, _) = self.listener.accept().await.expect("a connection");
            let mut head = vec![0x88];
            for number in 0..FIELDS {
                let digits = [number / 676, number / 26 % 26, number % 26];
                let [a, b, c] = digits.map(|digit| b"abcdefghijklmnopqrstuvwxyz"[digit]);
                head.extend([0, 3, a, b, c, 0]);
            }
            let [.., b, c] = head.len().to_be_bytes();
            let mut said = vec![0, 0, 0, 4, 0, 0, 0, 0, 0, 0, b, c, 1, 0, 0, 0, 0, 1];
            said.extend(head);
            tcp.write_all(&said).await.expect("written");
            tcp
        }
    }

    #[tokio::test]
    async fn a_head_that_is_not_whole_counts_for_its_request_and_goes_with_it() {
        let test = async {
            let fixture = Fixture::new(u64::MAX).await;
            {
                let mut asking = pin!(fixture.ask());
                let held = async {
                    let tcp = fixture.begins().await;
                    while fixture.held().0 == 0 {
                        yield_now().await;
                    }
                    tcp
                };
                let _tcp = tokio::select! {
                    tcp = held => tcp,
                    answer = &mut asking => panic!("it is not whole: {:?}", answer.map(drop)),
                };
                let (of_request, of_all) = fixture.held();
                assert!(of_request > FIELDS * 200, "{of_request}");
                assert_eq!(of_all, of_request as u64);
            }
            assert_eq!(fixture.held().0, 0, "its client has gone");
            assert!(fixture.pool.sessions().borrow().values().all(Vec::is_empty));
            while fixture.held().1 > 0 {
                yield_now().await;
            }
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn a_head_for_which_there_is_no_room_ends_its_session() {
        let test = async {
            let fixture = Fixture::new(600_000).await;
            let (answer, _tcp) = tokio::join!(fixture.ask(), fixture.begins());
            assert!(matches!(answer, Err(TryError::Heads)), "{:?}", answer.map(drop));
            while fixture.held().1 > 0 {
                yield_now().await;
            }
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn a_long_head_in_several_frames_is_an_answer_and_holds_nothing_afterwards() {
        let test = async {
            let fixture = Fixture::new(u64::MAX).await;
            let upstream = async {
                let mut tcp = fixture.begins().await;
                while fixture.held().0 == 0 {
                    yield_now().await;
                }
                // What was compressed, in a frame of its own: `last: one`.
                let last = [0, 0, 10, 9, 4, 0, 0, 0, 1, 0, 4, b'l', b'a', b's', b't', 3];
                tcp.write_all(&[&last[..], b"one"].concat()).await.expect("written");
                tcp
            };
            let (answer, mut tcp) = tokio::join!(fixture.ask(), upstream);
            let answer = answer.expect("it is whole");
            assert_eq!(answer.headers.len(), FIELDS + 1);
            assert_eq!(fixture.held(), (0, 0));
            // Trailers that are not whole count as well.
            tcp.write_all(&[0, 0, 10, 1, 0, 0, 0, 0, 1, 0, 3, b'a', b'b', b'c', 0, 0, 1, b'a', 0])
                .await
                .expect("written");
            tcp.write_all(&[0, 2, 0, 9, 0, 0, 0, 0, 1]).await.expect("written");
            tcp.write_all(&[0x40, 1, b'a', 0].repeat(128)).await.expect("written");
            while fixture.held().0 == 0 {
                yield_now().await;
            }
            drop(answer);
            // Whoever sends the rest of the request ends in a turn of its own.
            while fixture.held().0 > 0 {
                yield_now().await;
            }
            // The session ends.
            let _ = tcp.read_to_end(&mut Vec::new()).await;
        };
        LocalSet::new().run_until(test).await;
    }
}
