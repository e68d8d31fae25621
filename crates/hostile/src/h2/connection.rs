//! A TLS connection that speaks raw HTTP/2 frames: a reader in the background keeps what came back.

use super::frame::{self, Frame};
use anyhow::{Context, Result, bail};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How a stream or connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// RST_STREAM with this code.
    Reset(u32),
    /// GOAWAY with this code.
    GoAway(u32),
    /// The connection ended without a word.
    Closed,
}

/// What came back so far.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Status of each stream that was answered.
    pub statuses: BTreeMap<u32, u16>,
    /// Streams whose answer is complete.
    pub complete: Vec<u32>,
    /// Streams that were reset, with the code.
    pub resets: BTreeMap<u32, u32>,
    /// The first GOAWAY.
    pub goaway: Option<u32>,
    /// The connection is over.
    pub closed: bool,
    /// Our SETTINGS were acknowledged.
    pub acknowledged: bool,
}

impl State {
    /// How the connection ended, if it did: a GOAWAY counts even while streams are still open.
    pub fn ending(&self) -> Option<Ending> {
        self.goaway.map(Ending::GoAway).or_else(|| self.closed.then_some(Ending::Closed))
    }
}

/// An open connection.
pub struct Connection {
    writing: Arc<tokio::sync::Mutex<WriteHalf<TlsStream<TcpStream>>>>,
    state: Arc<Mutex<State>>,
    acknowledges: Arc<AtomicBool>,
    reader: tokio::task::JoinHandle<()>,
}

impl Connection {
    /// Connects, agrees on `h2` by ALPN, and sends preface and these settings; content is paid back into the
    /// windows only if `drain` is set.
    pub async fn open(address: SocketAddr, settings: &[(u16, u32)], drain: bool) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("a").context("server name")?;
        let tls = TlsConnector::from(Arc::new(trusting(b"h2")?)).connect(name, stream).await?;
        if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
            bail!("{address} does not agree on h2");
        }
        let (reading, mut writing) = tokio::io::split(tls);
        // No dynamic table: what comes back can be decoded without its history.
        let pairs = [&[(1, 0)], settings].concat();
        writing.write_all(&[frame::PREFACE, &frame::settings(&pairs)].concat()).await?;
        writing.flush().await?;
        let writing = Arc::new(tokio::sync::Mutex::new(writing));
        let state = Arc::new(Mutex::new(State::default()));
        let acknowledges = Arc::new(AtomicBool::new(true));
        let manners = Manners { drain, acknowledges: acknowledges.clone() };
        let reader = tokio::spawn(read(reading, writing.clone(), state.clone(), manners));
        Ok(Self { writing, state, acknowledges, reader })
    }

    /// Lets every PING go unanswered from now on.
    pub fn acknowledge_no_ping(&mut self) {
        self.acknowledges.store(false, Ordering::Relaxed);
    }

    /// Sends bytes; an error means that the other side has gone.
    pub async fn send(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut writing = self.writing.lock().await;
        writing.write_all(bytes).await?;
        writing.flush().await
    }

    /// What came back so far.
    pub fn state(&self) -> State {
        self.state.lock().expect("no holder of this lock panics").clone()
    }

    /// Waits until something holds, or the time is over; the state then.
    pub async fn wait(&self, longest: Duration, done: impl Fn(&State) -> bool) -> State {
        let end = Instant::now() + longest;
        loop {
            let state = self.state();
            if done(&state) || Instant::now() >= end {
                return state;
            }
            let _ = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// What a reader does by itself.
struct Manners {
    drain: bool,
    acknowledges: Arc<AtomicBool>,
}

type Writing = Arc<tokio::sync::Mutex<WriteHalf<TlsStream<TcpStream>>>>;

async fn read(
    mut reading: ReadHalf<TlsStream<TcpStream>>,
    writing: Writing,
    state: Arc<Mutex<State>>,
    manners: Manners,
) {
    let mut bytes = Vec::new();
    let mut decoder = loona_hpack::Decoder::new();
    while matches!(reading.read_buf(&mut bytes).await, Ok(read) if read > 0) {
        let mut replies = Vec::new();
        while let Some(frame) = frame::take(&mut bytes) {
            replies.extend(reply(&frame, &manners));
            let mut state = state.lock().expect("no holder of this lock panics");
            note(&mut state, &frame, &mut decoder);
        }
        if !replies.is_empty() {
            let writing = writing.clone();
            // Replies must not stop the reading while a flood fills the connection.
            tokio::spawn(async move {
                let mut writing = writing.lock().await;
                let _ = writing.write_all(&replies).await;
                let _ = writing.flush().await;
            });
        }
    }
    state.lock().expect("no holder of this lock panics").closed = true;
}

/// What a well-behaved client answers to a frame.
fn reply(frame: &Frame, manners: &Manners) -> Vec<u8> {
    match frame.kind {
        frame::SETTINGS if frame.flags & frame::ACK == 0 => {
            frame::write(frame::SETTINGS, frame::ACK, 0, &[])
        }
        frame::PING
            if frame.flags & frame::ACK == 0 && manners.acknowledges.load(Ordering::Relaxed) =>
        {
            frame::write(frame::PING, frame::ACK, 0, &frame.payload)
        }
        frame::DATA if manners.drain && !frame.payload.is_empty() => {
            let size = u32::try_from(frame.payload.len()).expect("frames are short").to_be_bytes();
            frame::write(frame::WINDOW_UPDATE, 0, 0, &size)
        }
        _ => Vec::new(),
    }
}

fn note(state: &mut State, frame: &Frame, decoder: &mut loona_hpack::Decoder<'_>) {
    let word = |at: usize| {
        let bytes = frame.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    };
    match frame.kind {
        frame::HEADERS => {
            let fields = decoder.decode(&frame.payload).unwrap_or_default();
            let status = fields.iter().find(|(name, _)| name == b":status");
            let status = status.and_then(|(_, value)| str::from_utf8(value).ok()?.parse().ok());
            if let Some(status @ 200..) = status {
                state.statuses.entry(frame.stream).or_insert(status);
            }
        }
        frame::SETTINGS if frame.flags & frame::ACK != 0 => state.acknowledged = true,
        frame::RST_STREAM => {
            state.resets.entry(frame.stream).or_insert(word(0));
        }
        frame::GOAWAY => {
            state.goaway.get_or_insert(word(4));
        }
        _ => {}
    }
    if matches!(frame.kind, frame::HEADERS | frame::DATA) && frame.flags & frame::END_STREAM != 0 {
        state.complete.push(frame.stream);
    }
}

/// A configuration that believes any certificate: what is under test is the protocol, not who answers.
fn trusting(alpn: &[u8]) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}

#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
