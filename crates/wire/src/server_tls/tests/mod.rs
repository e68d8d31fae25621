//! TLS with clients over real sockets: pieces of any size, closes of every kind, and clients that mean harm.

mod random;
mod twisted;

use super::{EARNED_BY, Hello, SEALED, SILENT, ServerTls};
use crate::{Control, Io, Patience, http1};
use bytes::BytesMut;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::pin::{Pin, pin};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

type Versions<'v> = &'v [&'static rustls::SupportedProtocolVersion];

/// What both sides go by.
fn configs(versions: Versions<'_>, client: CryptoProvider) -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("an authority");
    let provider = Arc::new(default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS12, &TLS13])
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they fit");
    let client = ClientConfig::builder_with_provider(Arc::new(client))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, client)
}

/// Both ends of a TCP connection: the client's first.
async fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it has an address");
    let client = TcpStream::connect(address).await.expect("connects");
    let (server, _) = listener.accept().await.expect("is accepted");
    client.set_nodelay(true).expect("a socket");
    server.set_nodelay(true).expect("a socket");
    (client, server)
}

fn session(config: ClientConfig) -> ClientConnection {
    let name = ServerName::try_from("a.test").expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("a client")
}

async fn accept(tcp: TcpStream, config: ServerConfig) -> io::Result<ServerTls> {
    Hello::read(tcp).await?.answer(Arc::new(config)).await
}

/// A client whose records are sent by hand.
struct Client {
    tcp: TcpStream,
    tls: ClientConnection,
    /// How many bytes go out as one piece.
    piece: usize,
}

impl Client {
    /// What it has to send.
    fn records(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut records).expect("it is memory");
        }
        records
    }

    fn sealed(&mut self, data: &[u8]) -> Vec<u8> {
        self.tls.writer().write_all(data).expect("there is room");
        self.records()
    }

    async fn send(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.piece) {
            self.tcp.write_all(piece).await.expect("it is sent");
            tokio::task::yield_now().await;
        }
    }

    /// Reads once; zero at the end.
    async fn take(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 4096];
        let count = self.tcp.read(&mut buffer).await?;
        let mut came = &buffer[..count];
        while !came.is_empty() {
            self.tls.read_tls(&mut came)?;
            self.tls.process_new_packets().map_err(io::Error::other)?;
        }
        Ok(count)
    }

    /// All but the last piece of its handshake, which it returns.
    async fn shake(&mut self) -> Vec<u8> {
        loop {
            let records = self.records();
            if !self.tls.is_handshaking() {
                return records;
            }
            self.send(&records).await;
            self.take().await.expect("an answer");
        }
    }

    async fn reads(&mut self, expected: &[u8]) {
        let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
        while got.len() < expected.len() {
            match self.tls.reader().read(&mut buffer) {
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(_) => assert!(self.take().await.expect("it comes") > 0, "it ends"),
            }
        }
        assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
    }
}

/// A client by hand and its server.
async fn pair(versions: Versions<'_>, piece: usize) -> (Client, ServerTls) {
    pair_by(default_provider(), versions, piece).await
}

/// The same, of which the client encrypts by this provider's ways.
async fn pair_by(
    provider: CryptoProvider,
    versions: Versions<'_>,
    piece: usize,
) -> (Client, ServerTls) {
    let (server, client) = configs(versions, provider);
    let (near, far) = tcp().await;
    let mut client = Client { tcp: near, tls: session(client), piece };
    let shaking = async {
        let last = client.shake().await;
        client.send(&last).await;
    };
    let (tls, ()) = tokio::join!(accept(far, server), shaking);
    (client, tls.expect("a handshake"))
}

/// What there is to read now.
async fn read_now(tls: &mut ServerTls, most: usize) -> Poll<io::Result<Vec<u8>>> {
    let mut buffer = vec![0; most];
    poll_fn(|cx| {
        let mut read = ReadBuf::new(&mut buffer);
        let polled = Pin::new(&mut *tls).poll_read(cx, &mut read);
        Poll::Ready(polled.map_ok(|()| read.filled().to_vec()))
    })
    .await
}

fn holds_nothing(tls: &ServerTls) -> bool {
    tls.incoming.capacity() + tls.opened.capacity() + tls.outgoing.capacity() == 0
}

/// Bytes that are not the same everywhere.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[tokio::test]
async fn however_small_the_pieces_are_they_are_put_together_and_nothing_stays() {
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let (mut client, mut tls) = pair(versions, 1).await;
        for length in [1, 300, 17000] {
            let records = client.sealed(&pattern(length));
            let mut got = vec![0; length];
            let (read, ()) = tokio::join!(tls.read_exact(&mut got), client.send(&records));
            read.expect("it comes");
            assert!(got == pattern(length), "{length}");
            tls.write_all(&got).await.expect("it is sent");
            client.reads(&got).await;
        }
        assert!(read_now(&mut tls, 1).await.is_pending());
        assert!(holds_nothing(&tls) && tls.held() == 0, "{versions:?}");
    }
}

#[tokio::test]
async fn what_comes_with_the_end_of_the_handshake_is_not_lost() {
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let (server, client) = configs(versions, default_provider());
        let (near, far) = tcp().await;
        let mut client = Client { tcp: near, tls: session(client), piece: usize::MAX };
        let shaking = async {
            let mut last = client.shake().await;
            for length in [10, 20000, 30] {
                last.extend(client.sealed(&pattern(length)));
            }
            client.send(&last).await;
        };
        let (tls, ()) = tokio::join!(accept(far, server), shaking);
        let mut tls = tls.expect("a handshake");
        tls.write_all(b"first").await.expect("it is sent before anything is read");
        for length in [10, 20000, 30] {
            let mut got = vec![0; length];
            tls.read_exact(&mut got).await.expect("it comes");
            assert!(got == pattern(length), "{length}");
        }
        client.reads(b"first").await;
    }
}

#[tokio::test]
async fn many_records_at_once_are_given_as_there_is_room_and_answered_in_between() {
    let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
    let all = pattern(50_000);
    let records: Vec<u8> = all.chunks(100).flat_map(|part| client.sealed(part)).collect();
    let cut = records.len() - 60;
    client.send(&records[..cut]).await;
    let mut got = Vec::new();
    for most in (1..).map(|round| round * 37 % 500 + 1) {
        let part = loop {
            if let Poll::Ready(part) = read_now(&mut tls, most).await {
                break part.expect("it comes");
            }
            if got.len() == 49_900 {
                break Vec::new();
            }
            tokio::task::yield_now().await;
        };
        if part.is_empty() {
            break;
        }
        got.extend(part);
        tls.write_all(b".").await.expect("it is sent");
        client.reads(b".").await;
    }
    // A record has begun.
    assert_eq!(tls.held(), records.len() / 500 - 60);
    tls.write_all(b"half").await.expect("it is sent");
    client.reads(b"half").await;
    client.send(&records[cut..]).await;
    let mut last = [0; 100];
    tls.read_exact(&mut last).await.expect("the rest");
    got.extend(last);
    assert!(got == all && holds_nothing(&tls));
}

#[tokio::test]
async fn large_bodies_go_both_ways_at_once() {
    let (server, client) = configs(&[&TLS12, &TLS13], default_provider());
    let (near, far) = tcp().await;
    let connector = TlsConnector::from(Arc::new(client));
    let name = ServerName::try_from("a.test").expect("a name");
    let (tls, client) = tokio::join!(accept(far, server), connector.connect(name, near));
    let (tls, client) = (tls.expect("a handshake"), client.expect("a handshake"));
    let all = pattern(5 << 20);
    let echo = async {
        let (mut read, mut write) = tokio::io::split(tls);
        let count = tokio::io::copy(&mut read, &mut write).await.expect("all of it");
        write.shutdown().await.expect("it ends");
        assert_eq!(count, 5 << 20);
    };
    let (mut read, mut write) = tokio::io::split(client);
    let sends = async {
        write.write_all(&all).await.expect("it is sent");
        write.shutdown().await.expect("it ends");
    };
    let mut got = Vec::new();
    let (_, (), ended) = tokio::join!(echo, sends, read.read_to_end(&mut got));
    ended.expect("it ends with a close_notify");
    assert!(got == all);
}

#[tokio::test]
async fn for_a_client_that_takes_nothing_little_is_held_and_it_gets_all_later() {
    let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
    let all = pattern(64 << 20);
    let mut sent = 0;
    loop {
        let (one, other) = all[sent..].split_at(9);
        let slices = [IoSlice::new(one), IoSlice::new(&[]), IoSlice::new(other)];
        let wrote = poll_fn(|cx| Poll::Ready(Pin::new(&mut tls).poll_write_vectored(cx, &slices)));
        match wrote.await {
            Poll::Ready(wrote) => sent += wrote.expect("it goes on"),
            Poll::Pending => break,
        }
        assert!(tls.outgoing.len() <= SEALED + 1024);
    }
    assert!(!tls.outgoing.is_empty() && sent % SEALED == 0);
    let (flushed, ()) = tokio::join!(tls.flush(), client.reads(&all[..sent]));
    flushed.expect("all of it went");
    assert!(holds_nothing(&tls));
}

#[tokio::test]
async fn who_closes_says_so_and_who_just_ends_is_told_apart() {
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let (mut client, mut tls) = pair(versions, usize::MAX).await;
        let mut close = client.sealed(b"last");
        client.tls.send_close_notify();
        close.extend(client.records());
        client.send(&close).await;
        let mut buffer = [0; 8];
        assert_eq!(tls.read(&mut buffer).await.expect("data"), 4);
        assert_eq!(tls.read(&mut buffer).await.expect("it ends cleanly"), 0);
        assert_eq!(tls.read(&mut buffer).await.expect("again"), 0);
        tls.write_all(b"still").await.expect("its other half is open");
        client.reads(b"still").await;
        tls.shutdown().await.expect("it ends");
        assert_eq!(tls.write(b"x").await.expect_err("no more").kind(), io::ErrorKind::BrokenPipe);
        while client.take().await.expect("it ends") > 0 {}
        assert_eq!(client.tls.reader().read(&mut buffer).expect("cleanly"), 0);

        let (mut client, mut tls) = pair(versions, usize::MAX).await;
        let mut records = client.sealed(b"data");
        records.extend_from_slice(&[23, 3, 3, 0, 40, 1, 2]);
        client.send(&records).await;
        client.tcp.shutdown().await.expect("it ends");
        assert_eq!(tls.read(&mut buffer).await.expect("data"), 4);
        for _ in 0..2 {
            let error = tls.read(&mut buffer).await.expect_err("it is cut off");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}

#[tokio::test]
async fn keys_are_changed_in_the_midst_of_it() {
    let (mut client, mut tls) = pair(&[&TLS13], 11).await;
    for round in 0..20 {
        let mut records = client.sealed(b"before");
        client.tls.refresh_traffic_keys().expect("it is TLS 1.3");
        records.extend(client.sealed(b" after"));
        let mut got = [0; 12];
        let (read, ()) = tokio::join!(tls.read_exact(&mut got), client.send(&records));
        read.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(&got, b"before after");
        // The server's own keys change before this.
        tls.write_all(b"answer").await.expect("it is sent");
        client.reads(b"answer").await;
    }
    assert!(holds_nothing(&tls));
}

#[tokio::test]
async fn who_changes_keys_without_end_is_ended_and_who_sends_data_may_go_on() {
    // A byte each time would keep rustls content: it bounds those in a row.
    for (data, goes_on) in [(1, false), (EARNED_BY, true)] {
        let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
        let (mut changed, mut got) = (0, vec![0; data]);
        let ended = loop {
            client.tls.refresh_traffic_keys().expect("it is TLS 1.3");
            let records = client.sealed(&pattern(data));
            client.send(&records).await;
            changed += 1;
            match tls.read_exact(&mut got).await {
                Ok(_) if changed > 3 * SILENT => break None,
                Ok(_) => {}
                Err(error) => break Some((changed, error.to_string())),
            }
        };
        match ended {
            None => assert!(goes_on, "{changed} changes with {data} bytes each"),
            Some((changed, error)) => {
                assert!(!goes_on && changed == SILENT + 1, "{changed}: {error}");
                assert!(error.contains("records without data"), "{error}");
            }
        }
    }
}

/// What a client hears that does this.
async fn alert(change: impl FnOnce(&mut ServerConfig, &mut ClientConfig)) -> String {
    let (mut server, mut client) = configs(&[&TLS12, &TLS13], default_provider());
    change(&mut server, &mut client);
    let (near, far) = tcp().await;
    let connector = TlsConnector::from(Arc::new(client));
    let name = ServerName::try_from("a.test").expect("a name");
    let (tls, client) = tokio::join!(accept(far, server), connector.connect(name, near));
    assert_eq!(tls.expect_err("it fails").kind(), io::ErrorKind::InvalidData);
    client.expect_err("it fails").to_string()
}

#[tokio::test]
async fn a_handshake_that_fails_tells_the_client_why() {
    let said = alert(|server, client| {
        server.alpn_protocols = vec![b"h2".to_vec()];
        client.alpn_protocols = vec![b"spdy".to_vec()];
    });
    let said = said.await;
    assert!(said.contains(&format!("{:?}", AlertDescription::NoApplicationProtocol)), "{said}");
    for (first, expected) in
        [(&b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"[..], 50), (b"GET / HTTP/1.1\r\n", 50)]
    {
        let (mut near, far) = tcp().await;
        near.write_all(first).await.expect("it is sent");
        let error = Hello::read(far).await.expect_err("it is none");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut alert = [0; 7];
        near.read_exact(&mut alert).await.expect("an alert");
        assert_eq!((alert[0], alert[6]), (21, expected));
    }
}

#[tokio::test]
async fn a_record_that_was_tampered_with_ends_it_with_an_alert() {
    let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
    let mut records = client.sealed(b"good");
    let mut bad = client.sealed(b"bad");
    *bad.last_mut().expect("it has a tag") ^= 1;
    records.extend(bad);
    client.send(&records).await;
    let mut buffer = [0; 8];
    assert_eq!(tls.read(&mut buffer).await.expect("the first one"), 4);
    for _ in 0..3 {
        let error = tls.read(&mut buffer).await.expect_err("the second one");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
    assert!(tls.write(b"x").await.is_err());
    tls.shutdown().await.expect("it ends");
    let error = client.take().await.expect_err("an alert").to_string();
    assert!(error.contains("BadRecordMac"), "{error}");
}

#[tokio::test]
async fn a_hello_may_be_as_long_as_rustls_takes_it() {
    for piece in [usize::MAX, 1000] {
        let (mut server, mut client) = configs(&[&TLS12, &TLS13], default_provider());
        server.alpn_protocols = vec![b"h2".to_vec()];
        client.alpn_protocols = (0..240).map(|at| vec![at; 250]).collect();
        client.alpn_protocols.push(b"h2".to_vec());
        let (near, far) = tcp().await;
        let mut client = Client { tcp: near, tls: session(client), piece };
        let shaking = async {
            let last = client.shake().await;
            client.send(&last).await;
        };
        let accepting = async {
            let hello = Hello::read(far).await?;
            assert_eq!(hello.says().server_name(), Some("a.test"));
            hello.answer(Arc::new(server)).await
        };
        let (tls, ()) = tokio::join!(accepting, shaking);
        let mut tls = tls.expect("a handshake");
        assert_eq!(tls.agreed().alpn_protocol(), Some(&b"h2"[..]));
        tls.write_all(b"hello").await.expect("it is sent");
        client.reads(b"hello").await;
    }
}

#[tokio::test]
async fn messages_of_tls_that_give_nothing_do_not_go_on_for_ever() {
    // A record that claims to be longer than any, and what begins none.
    for bytes in [&[23, 3, 3, 0xff, 0xff][..], b"G"] {
        let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
        client.send(bytes).await;
        let error = tls.read(&mut [0; 8]).await.expect_err("it is none");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
    let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
    for _ in 0..40 {
        client.tls.refresh_traffic_keys().expect("it is TLS 1.3");
        let records = client.records();
        client.send(&records).await;
    }
    tls.read(&mut [0; 8]).await.expect_err("it is too many");
}

#[tokio::test]
async fn openssl_changes_its_keys_and_asks_for_others() {
    for (version, changes) in [("-tls1_2", false), ("-tls1_3", true)] {
        let (server, _) = configs(&[&TLS13], default_provider());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it has an address").to_string();
        let mut openssl = Command::new("openssl")
            .args(["s_client", version, "-connect", &address, "-servername", "a.test"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is there");
        let mut keyboard = openssl.stdin.take().expect("it has one");
        let (tcp, _) = listener.accept().await.expect("is accepted");
        let mut tls = accept(tcp, server).await.expect("a handshake");
        for round in 0..3 {
            if changes {
                keyboard.write_all(b"K\n").expect("it is typed");
                // What OpenSSL reads with more is no command.
                while read_now(&mut tls, 1).await.is_pending() && tls.held() == 0 {
                    tokio::task::yield_now().await;
                }
            }
            keyboard.write_all(b"text\n").expect("it is typed");
            let mut got = [0; 5];
            tls.read_exact(&mut got).await.expect("it comes");
            assert_eq!(&got, b"text\n");
            tls.write_all(format!("answer {round}\n").as_bytes()).await.expect("it is sent");
        }
        tls.shutdown().await.expect("it ends");
        let said = openssl.wait_with_output().expect("it ends").stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!((0..3).all(|round| said.contains(&format!("answer {round}\n"))), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_taken_what_a_flush_waited_for_is_not_waited_for_while_nothing_is_sent() {
    let (client, server) = pair(&[&TLS13], 16 << 10).await;
    let (control, server) = (Rc::<Control>::default(), Io::Accepted(Box::new(server)));
    let writer = http1::Client::new(server, BytesMut::new(), control.clone());
    let mut patience = Patience::new(Duration::from_secs(60));
    let (piece, mut taken) = ([0; 16 << 10], vec![0; 64 << 10]);
    for _ in 0..2 {
        let waits = Cell::new(false);
        let mut fills = pin!(async {
            while !waits.get() {
                writer.write(&piece[..], &mut patience).await?;
                writer.flush(&mut patience).await?;
            }
            Ok::<(), io::Error>(())
        });
        let filled = poll_fn(|cx| {
            // It never rests, so that the clock stands still.
            cx.waker().wake_by_ref();
            waits.set(waits.get() || control.backlog.held() > 0);
            if waits.get() {
                let _ = client.tcp.try_read(&mut taken);
            }
            fills.as_mut().poll(cx)
        });
        filled.await.expect("the client takes it");
        // The upstream is silent for longer than any client may be.
        tokio::time::advance(Duration::from_secs(1_000_000)).await;
    }
}
