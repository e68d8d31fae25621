//! Clients that send records which no library would write.

use super::{
    Client, ServerTls, Versions, configs, holds_nothing, pair_by, pattern, read_now, session,
};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256,
};
use rustls::crypto::cipher::{
    AeadKey, Iv, KeyBlockShape, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls12AeadAlgorithm, Tls13AeadAlgorithm,
    UnsupportedOperationError,
};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ConnectionTrafficSecrets, ContentType, Error, SupportedCipherSuite, Tls12CipherSuite,
    Tls13CipherSuite,
};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

thread_local! {
    /// What a record of application data pretends to be, and how often zero is appended to it.
    static KIND: Cell<Option<u8>> = const { Cell::new(None) };
    /// Bytes that messages of TLS lack at their front.
    static LACKS: Cell<usize> = const { Cell::new(0) };
}

struct Twisted(Box<dyn MessageEncrypter>);

impl MessageEncrypter for Twisted {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        seq: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let payload = message.payload.to_vec();
        let (mut typ, mut from) = (message.typ, 0);
        if typ == ContentType::ApplicationData
            && let Some(kind) = KIND.get()
        {
            typ = ContentType::from(kind);
            from = usize::from(payload == b"EMPTY") * payload.len();
        } else if typ == ContentType::Handshake {
            from = LACKS.get().min(payload.len());
        }
        let payload = OutboundChunks::Single(&payload[from..]);
        self.0.encrypt(OutboundPlainMessage { typ, version: message.version, payload }, seq)
    }

    fn encrypted_payload_len(&self, length: usize) -> usize {
        self.0.encrypted_payload_len(length)
    }
}

struct Suite13(&'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for Suite13 {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Twisted(self.0.encrypter(key, iv)))
    }
    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }
    fn key_len(&self) -> usize {
        self.0.key_len()
    }
    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

struct Suite12(&'static dyn Tls12AeadAlgorithm);

impl Tls12AeadAlgorithm for Suite12 {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(Twisted(self.0.encrypter(key, iv, extra)))
    }
    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }
    fn key_block_shape(&self) -> KeyBlockShape {
        self.0.key_block_shape()
    }
    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv, explicit)
    }
}

fn provider() -> CryptoProvider {
    let SupportedCipherSuite::Tls13(suite13) = TLS13_AES_128_GCM_SHA256 else { unreachable!() };
    let SupportedCipherSuite::Tls12(suite12) = TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 else {
        unreachable!()
    };
    let common = |common: &rustls::CipherSuiteCommon| rustls::CipherSuiteCommon {
        suite: common.suite,
        hash_provider: common.hash_provider,
        confidentiality_limit: common.confidentiality_limit,
    };
    let suite13 = Tls13CipherSuite {
        common: common(&suite13.common),
        hkdf_provider: suite13.hkdf_provider,
        aead_alg: Box::leak(Box::new(Suite13(suite13.aead_alg))),
        quic: None,
    };
    let suite12 = Tls12CipherSuite {
        common: common(&suite12.common),
        prf_provider: suite12.prf_provider,
        kx: suite12.kx,
        sign: suite12.sign,
        aead_alg: Box::leak(Box::new(Suite12(suite12.aead_alg))),
    };
    CryptoProvider {
        cipher_suites: vec![
            SupportedCipherSuite::Tls13(Box::leak(Box::new(suite13))),
            SupportedCipherSuite::Tls12(Box::leak(Box::new(suite12))),
        ],
        ..rustls::crypto::aws_lc_rs::default_provider()
    }
}

/// A client whose records are twisted, and its server.
async fn pair(versions: Versions<'_>, piece: usize) -> (Client, ServerTls) {
    pair_by(provider(), versions, piece).await
}

impl Client {
    /// A record of this kind.
    fn record(&mut self, kind: u8, payload: &[u8]) -> Vec<u8> {
        KIND.set(Some(kind));
        let record = self.sealed(if payload.is_empty() { b"EMPTY" } else { payload });
        KIND.set(None);
        record
    }
}

#[tokio::test]
async fn a_record_of_the_handshake_with_nothing_in_it_ends_the_connection() {
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let (mut client, mut tls) = pair(versions, usize::MAX).await;
        let mut records = client.record(22, b"");
        records.extend(client.sealed(&pattern(500)));
        client.send(&records).await;
        // There is no room left, so that nothing says whether more is there.
        let mut got = [0; 500];
        tls.read_exact(&mut got).await.expect("it came");
        let error = tls.write(b"answer").await.expect_err("it is over");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        let error = tls.read(&mut got).await.expect_err("it is over");
        assert!(error.to_string().contains("nothing in it"), "{error}");
        assert!(holds_nothing(&tls));
    }
}

#[tokio::test]
async fn a_message_of_tls_may_lie_in_several_records_between_which_there_are_answers() {
    for piece in [1, 30, usize::MAX] {
        let (mut client, mut tls) = pair(&[&TLS13], piece).await;
        for cut in 1..5 {
            let begun = client.sealed(b"before");
            let mut part = client.record(22, &[24, 0, 0, 1, 0][..cut]);
            part.splice(..0, begun);
            let mut got = [0; 6];
            let (read, ()) = tokio::join!(tls.read_exact(&mut got), client.send(&part));
            read.expect("it comes");
            // The rest of the first part is there, and a header of the second one.
            LACKS.set(cut);
            client.tls.refresh_traffic_keys().expect("it is TLS 1.3");
            let rest = client.records();
            LACKS.set(0);
            client.send(&rest[..5]).await;
            for _ in 0..5 {
                assert!(read_now(&mut tls, 10).await.is_pending());
                tokio::task::yield_now().await;
                tls.write_all(b"answer").await.expect("it is sent");
                client.reads(b"answer").await;
            }
            assert!(tls.seen > 0);
            let mut rest = rest[5..].to_vec();
            rest.extend(client.sealed(b"after"));
            let (read, ()) = tokio::join!(tls.read_exact(&mut got[..5]), client.send(&rest));
            read.unwrap_or_else(|error| panic!("{piece} {cut}: {error}"));
            assert_eq!(&got[..5], b"after");
            assert!(holds_nothing(&tls) && tls.seen == 0);
        }
        // Nothing else may come before the rest of it.
        let mut records = client.record(22, &[24, 0]);
        records.extend(client.sealed(b"between"));
        client.send(&records).await;
        let error = tls.read(&mut [0; 8]).await.expect_err("it is over");
        assert!(error.to_string().contains("Interleaved"), "{error}");
    }
}

#[tokio::test]
async fn a_message_of_tls_without_end_is_not_held_however_fast_it_comes() {
    let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
    let mut records = client.record(22, &[24, 0, 0xff, 0xff]);
    (0..20_000).for_each(|_| records.extend(client.record(22, b"x")));
    let mut sent = 0;
    while sent < records.len()
        && let Ok(count) = client.tcp.try_write(&records[sent..])
    {
        sent += count;
        tokio::task::yield_now().await;
    }
    assert!(sent > 100_000, "{sent}");
    // In as many turns of the thread as it takes.
    let error = tls.read(&mut [0; 8]).await.expect_err("it is too much");
    assert!(error.to_string().contains("do not end"), "{error}");
    assert!(tls.incoming.len() < 32 << 10, "{}", tls.incoming.len());
}

#[tokio::test]
async fn who_asks_for_another_handshake_is_told_at_once_that_there_is_none() {
    let (mut client, mut tls) = pair(&[&TLS12], usize::MAX).await;
    let (_, config) = configs(&[&TLS12], provider());
    let mut hello = Vec::new();
    session(config).write_tls(&mut hello).expect("it is memory");
    let mut records = client.sealed(b"data");
    records.extend(client.record(22, &hello[5..]));
    client.send(&records).await;
    let mut got = [0; 8];
    assert_eq!(tls.read(&mut got).await.expect("it comes"), 4);
    assert!(read_now(&mut tls, 8).await.is_pending() && holds_nothing(&tls));
    // It is a warning.
    assert!(client.take().await.expect("it goes on") > 0);
    tls.write_all(b"answer").await.expect("it is sent");
    client.reads(b"answer").await;
}

/// Whether somebody was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn who_waits_to_write_is_woken_though_another_task_has_read_what_is_broken() {
    let (mut client, mut tls) = pair(&[&TLS13], usize::MAX).await;
    let [writer, reader] = [Arc::new(Woken::default()), Arc::new(Woken::default())];
    let waker = Waker::from(writer.clone());
    let mut cx = Context::from_waker(&waker);
    while Pin::new(&mut tls).poll_write(&mut cx, &[0; 100_000]).is_ready() {
        tokio::task::yield_now().await;
    }
    client.send(b"garbage").await;
    while read_as(&mut tls, &reader).is_pending() {
        tokio::task::yield_now().await;
    }
    writer.0.store(false, Ordering::Relaxed);
    let takes = async {
        while !writer.0.load(Ordering::Relaxed) {
            assert!(client.tcp.read(&mut [0; 4096]).await.expect("it comes") > 0);
        }
    };
    tokio::time::timeout(Duration::from_secs(10), takes).await.expect("it is woken");
    assert!(Pin::new(&mut tls).poll_write(&mut cx, b"more").is_ready());
}

fn read_as(tls: &mut ServerTls, who: &Arc<Woken>) -> Poll<io::Result<()>> {
    let waker = Waker::from(who.clone());
    let mut buffer = [0; 8];
    Pin::new(tls).poll_read(&mut Context::from_waker(&waker), &mut ReadBuf::new(&mut buffer))
}
