//! A collector of spans, built on the published messages of OTLP: gRPC over HTTP/2, or HTTP/1.1.

use bytes::{Bytes, BytesMut};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_rustls::TlsAcceptor;

/// What it answers to one request after the other: gRPC statuses or HTTP statuses; success once they are used up.
pub(crate) type Replies = &'static [u16];

/// What it rejects of each request that it takes.
const REJECTED: i64 = 0;

/// A collector that listens.
pub(crate) struct Collector {
    pub address: SocketAddr,
    requests: Receiver<ExportTraceServiceRequest>,
}

/// A port where nobody listens yet: connections are refused.
pub(crate) struct Away(TcpSocket);

#[derive(Clone)]
struct Desk {
    requests: Sender<ExportTraceServiceRequest>,
    replies: Replies,
    rejected: i64,
    answered: Arc<AtomicUsize>,
}

impl Away {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("bound")
    }

    /// The collector comes, and speaks gRPC.
    pub(crate) fn come(self) -> Collector {
        let listener = self.0.listen(64).expect("listening");
        serve(listener, None, &[], REJECTED, grpc)
    }
}

impl Collector {
    /// One that speaks gRPC.
    pub(crate) async fn grpc(replies: Replies) -> Self {
        serve(listener().await, None, replies, REJECTED, grpc)
    }

    /// One that speaks gRPC under TLS.
    pub(crate) async fn grpc_tls(tls: TlsAcceptor) -> Self {
        serve(listener().await, Some(tls), &[], REJECTED, grpc)
    }

    /// One that speaks HTTP/1.1, and takes all but so many spans of each request.
    pub(crate) async fn http(replies: Replies, rejected: i64) -> Self {
        serve(listener().await, None, replies, rejected, http1)
    }

    /// The spans of the next request, with what is said of all of them.
    pub(crate) async fn next(&mut self) -> ResourceSpans {
        let request = tokio::time::timeout(Duration::from_secs(20), self.requests.recv()).await;
        let mut request = request.expect("a request in time").expect("it listens");
        assert_eq!(request.resource_spans.len(), 1);
        request.resource_spans.remove(0)
    }

    /// The next spans, as many as are wanted, over as many requests as it takes.
    pub(crate) async fn spans(&mut self, wanted: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        while spans.len() < wanted {
            spans.extend(self.next().await.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        spans
    }
}

/// An attribute as text.
pub(crate) fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    Some(match found.value.clone()?.value? {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    })
}

async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port")
}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

fn serve<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    replies: Replies,
    rejected: i64,
    speak: fn(Box<dyn Wire>, Desk) -> F,
) -> Collector {
    let address = listener.local_addr().expect("bound");
    let (sender, requests) = channel(1000);
    let desk = Desk { requests: sender, replies, rejected, answered: Arc::default() };
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (desk, tls) = (desk.clone(), tls.clone());
            tokio::spawn(async move {
                // Whoever does not like the certificate is gone.
                if let Some(wire) = wire(tcp, tls).await {
                    speak(wire, desk).await;
                }
            });
        }
    });
    Collector { address, requests }
}

async fn wire(tcp: TcpStream, tls: Option<TlsAcceptor>) -> Option<Box<dyn Wire>> {
    Some(match tls {
        Some(tls) => Box::new(tls.accept(tcp).await.ok()?),
        None => Box::new(tcp),
    })
}

impl Desk {
    /// Takes the message, and says with which status it is answered.
    async fn take(&self, message: &[u8]) -> u16 {
        let request = ExportTraceServiceRequest::decode(message).expect("the published message");
        let _ = self.requests.send(request).await;
        let number = self.answered.fetch_add(1, Ordering::SeqCst);
        self.replies.get(number).copied().unwrap_or_default()
    }

    fn answer(&self) -> Vec<u8> {
        let partly =
            ExportTracePartialSuccess { rejected_spans: self.rejected, ..Default::default() };
        ExportTraceServiceResponse { partial_success: Some(partly) }.encode_to_vec()
    }
}

async fn grpc(wire: Box<dyn Wire>, desk: Desk) {
    let mut connection = h2::server::handshake(wire).await.expect("HTTP/2");
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let desk = desk.clone();
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            assert_eq!(
                head.uri.path(),
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
            );
            assert_eq!(head.headers["content-type"], "application/grpc");
            let mut message = BytesMut::new();
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
                message.extend_from_slice(&data);
            }
            let length = u32::from_be_bytes(message[1..5].try_into().expect("four bytes"));
            assert_eq!((message[0], length as usize), (0, message.len() - 5));
            let status = desk.take(&message[5..]).await;
            let head = http::Response::builder().header("content-type", "application/grpc");
            if status != 0 {
                // Nothing but a head: "trailers only".
                let head = head.header("grpc-status", status).header("grpc-message", "not now");
                let _ = respond.send_response(head.body(()).expect("a head"), true);
                return;
            }
            let mut stream =
                respond.send_response(head.body(()).expect("a head"), false).expect("sent");
            let answer = desk.answer();
            let prefix = [&[0][..], &(answer.len() as u32).to_be_bytes()].concat();
            let _ = stream.send_data(Bytes::from([prefix, answer].concat()), false);
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
            let _ = stream.send_trailers(trailers);
        });
    }
}

async fn http1(mut wire: Box<dyn Wire>, desk: Desk) {
    let mut read = BytesMut::new();
    loop {
        let head = loop {
            if let Some(end) = read.windows(4).position(|end| end == b"\r\n\r\n") {
                break read.split_to(end + 4);
            }
            if !matches!(wire.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
        };
        let head = String::from_utf8_lossy(&head).into_owned();
        assert!(head.starts_with("POST /base/v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/x-protobuf\r\n"), "{head}");
        assert!(head.contains("\r\nauthorization: Basic abc\r\n"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
        while read.len() < length {
            assert!(matches!(wire.read_buf(&mut read).await, Ok(1..)), "the body is whole");
        }
        let status = match desk.take(&read.split_to(length)).await {
            0 => 200,
            other => other,
        };
        let answer = desk.answer();
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", answer.len());
        let _ = wire.write_all(&[head.as_bytes(), &answer].concat()).await;
    }
}
