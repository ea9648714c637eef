//! gRPC end to end (proxy rule 18): a server and a client that are tonic's own, and the built daemon between them. `STADO_BIN` is
//! the folder of its programs, `target/debug` unless it says otherwise.
mod daemon;

use bytes::{Buf, BufMut, Bytes};
use daemon::Daemon;
use futures_util::{Stream, StreamExt, stream};
use http::uri::PathAndQuery;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tonic::body::Body;
use tonic::client::Grpc as Client;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, Service};
use tonic::metadata::MetadataMap;
use tonic::server::{ClientStreamingService, Grpc as Server, ServerStreamingService, StreamingService, UnaryService};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};

/// Messages are the bytes that they are: what is in them is nothing to a proxy.
#[derive(Debug, Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        Self
    }
    fn decoder(&mut self) -> Self {
        Self
    }
}
impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}
impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

type Messages = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One message, one answer: in capitals, with the client's `x-ask` as `x-answer`. `fail` fails.
struct Shout;
impl UnaryService<Bytes> for Shout {
    type Response = Bytes;
    type Future = BoxFuture<Response<Bytes>, Status>;
    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        Box::pin(async move {
            let asked = request.metadata().get("x-ask").cloned();
            let words = text(request.get_ref());
            if words == "fail" {
                let mut more = MetadataMap::new();
                more.insert("x-why", "it was asked to".parse().unwrap());
                let details = Bytes::from_static(b"\0details\xff");
                let why = "nicht möglich: 100 %";
                return Err(Status::with_details_and_metadata(Code::FailedPrecondition, why, details, more));
            }
            let mut response = Response::new(words.to_uppercase().into());
            if let Some(asked) = asked {
                response.metadata_mut().insert("x-answer", asked);
            }
            Ok(response)
        })
    }
}

/// As many answers as the message says; with `!` behind the number an error follows them.
struct Count;
impl ServerStreamingService<Bytes> for Count {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<Response<Messages>, Status>;
    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        Box::pin(async move {
            let asked = text(request.get_ref());
            let number: u32 = asked.trim_end_matches('!').parse().unwrap();
            let answers = (0..number).map(|n| Ok(n.to_string().into()));
            let last = asked.ends_with('!').then(|| Err(Status::aborted("enough")));
            Ok(Response::new(Box::pin(stream::iter(answers.chain(last))) as Messages))
        })
    }
}

/// All messages in one answer.
struct Join;
impl ClientStreamingService<Bytes> for Join {
    type Response = Bytes;
    type Future = BoxFuture<Response<Bytes>, Status>;
    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let (mut messages, mut all) = (request.into_inner(), Vec::new());
            while let Some(message) = messages.message().await? {
                all.push(text(&message));
            }
            Ok(Response::new(all.join(" ").into()))
        })
    }
}

/// Tells when it is dropped.
struct Told(Arc<Notify>);
impl Drop for Told {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// One answer, and then nothing for ever.
struct Wait(Arc<Notify>);
impl ServerStreamingService<Bytes> for Wait {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<Response<Messages>, Status>;
    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        let told = Told(self.0.clone());
        let never = stream::pending().map(move |message| {
            let _ = &told;
            message
        });
        let answers = stream::iter([Ok(Bytes::from("here"))]).chain(never);
        Box::pin(async move { Ok(Response::new(Box::pin(answers) as Messages)) })
    }
}

/// Each message back when it comes.
struct Echo;
impl StreamingService<Bytes> for Echo {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<Response<Messages>, Status>;
    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(async move { Ok(Response::new(Box::pin(request.into_inner()) as Messages)) })
    }
}

/// What `protoc` would make of five methods.
#[derive(Clone, Default)]
struct Words {
    /// A [`Wait`] has ended.
    over: Arc<Notify>,
}

impl Service<http::Request<Body>> for Words {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let over = self.over.clone();
        Box::pin(async move {
            let mut server = Server::new(Raw);
            Ok(match request.uri().path().to_owned().as_str() {
                "/test.Words/Shout" => server.unary(Shout, request).await,
                "/test.Words/Count" => server.server_streaming(Count, request).await,
                "/test.Words/Join" => server.client_streaming(Join, request).await,
                "/test.Words/Echo" => server.streaming(Echo, request).await,
                "/test.Words/Wait" => server.server_streaming(Wait(over), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

async fn server(words: Words) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let incoming = stream::unfold(listener, |listener| async move {
        Some((listener.accept().await.map(|(stream, _)| stream), listener))
    });
    tokio::spawn(tonic::transport::Server::builder().serve_with_incoming(words, incoming));
    addr
}

/// `work`, which has to end.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it ends")
}

/// A client of the host `words.test`, ready for its next call.
async fn client(daemon: &Daemon, host: &str) -> Client<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{}", daemon.port)).unwrap();
    let channel = endpoint.origin(format!("http://{host}").parse().unwrap()).connect().await.unwrap();
    let mut client = Client::new(channel);
    client.ready().await.unwrap();
    client
}

async fn through() -> (Daemon, Client<Channel>, Arc<Notify>) {
    let words = Words::default();
    let over = words.over.clone();
    let daemon = Daemon::start().await;
    daemon.register("words", server(words).await).await;
    let client = client(&daemon, "words.test").await;
    (daemon, client, over)
}

fn method(name: &str) -> PathAndQuery {
    format!("/test.Words/{name}").parse().unwrap()
}

async fn all(mut messages: Streaming<Bytes>) -> (Vec<String>, Option<Status>) {
    let mut got = Vec::new();
    loop {
        match soon(messages.message()).await {
            Ok(Some(message)) => got.push(text(&message)),
            Ok(None) => return (got, None),
            Err(status) => return (got, Some(status)),
        }
    }
}

#[tokio::test]
async fn a_unary_call_carries_metadata_both_ways_and_messages_larger_than_a_window() {
    let (_daemon, mut client, _) = through().await;
    let mut request = Request::new(Bytes::from_static(b"hello"));
    request.metadata_mut().insert("x-ask", "who".parse().unwrap());
    let answer = soon(client.unary(request, method("Shout"), Raw)).await.unwrap();
    assert_eq!(text(answer.get_ref()), "HELLO");
    assert_eq!(answer.metadata().get("x-answer").unwrap(), "who");
    client.ready().await.unwrap();
    let large = Request::new(Bytes::from(vec![b'a'; 3 << 20]));
    let answer = soon(client.unary(large, method("Shout"), Raw)).await.unwrap().into_inner();
    assert!(answer.len() == 3 << 20 && answer.iter().all(|byte| *byte == b'A'));
}

#[tokio::test]
async fn an_error_arrives_with_its_status_message_details_and_metadata() {
    let (_daemon, mut client, _) = through().await;
    let status = soon(client.unary(Request::new(Bytes::from_static(b"fail")), method("Shout"), Raw)).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "nicht möglich: 100 %"));
    assert_eq!(status.details(), b"\0details\xff");
    assert_eq!(status.metadata().get("x-why").unwrap(), "it was asked to");
    client.ready().await.unwrap();
    let status = soon(client.unary(Request::new(Bytes::new()), method("Else"), Raw)).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, "no such method"));
}

#[tokio::test]
async fn a_stream_of_answers_ends_with_the_servers_own_status() {
    let (_daemon, mut client, _) = through().await;
    let answers = soon(client.server_streaming(Request::new("1000".into()), method("Count"), Raw)).await.unwrap();
    let (got, status) = all(answers.into_inner()).await;
    assert!(status.is_none() && got.len() == 1000 && got[999] == "999", "{status:?} behind {} messages", got.len());
    client.ready().await.unwrap();
    let answers = soon(client.server_streaming(Request::new("3!".into()), method("Count"), Raw)).await.unwrap();
    let (got, status) = all(answers.into_inner()).await;
    let status = status.unwrap();
    assert_eq!((got.len(), status.code(), status.message()), (3, Code::Aborted, "enough"));
}

#[tokio::test]
async fn a_stream_of_messages_gets_one_answer() {
    let (_daemon, mut client, _) = through().await;
    let words = stream::iter(["one", "two", "three"].map(Bytes::from));
    let answer = soon(client.client_streaming(Request::new(words), method("Join"), Raw)).await.unwrap();
    assert_eq!(text(answer.get_ref()), "one two three");
}

#[tokio::test]
async fn both_directions_stream_at_once() {
    let (_daemon, mut client, _) = through().await;
    let (send, messages) = mpsc::channel(1);
    let messages = stream::unfold(messages, |mut rest| async move { Some((rest.recv().await?, rest)) });
    let answers = soon(client.streaming(Request::new(messages), method("Echo"), Raw)).await.unwrap();
    let mut answers = answers.into_inner();
    // Nothing of the next message exists before the answer to this one has arrived.
    for n in 0..20 {
        send.send(Bytes::from(n.to_string())).await.unwrap();
        assert_eq!(text(&soon(answers.message()).await.unwrap().unwrap()), n.to_string());
    }
    drop(send);
    assert!(soon(answers.message()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_client_that_leaves_is_told_to_the_server() {
    let (_daemon, mut client, over) = through().await;
    let answers = soon(client.server_streaming(Request::new(Bytes::new()), method("Wait"), Raw)).await.unwrap();
    let mut answers = answers.into_inner();
    assert_eq!(text(&soon(answers.message()).await.unwrap().unwrap()), "here");
    drop(answers);
    soon(over.notified()).await;
}

#[tokio::test]
async fn calls_of_one_client_run_side_by_side() {
    let (_daemon, client, _) = through().await;
    let calls = (0..100).map(|n| {
        let mut client = client.clone();
        async move {
            client.ready().await.unwrap();
            let request = Request::new(Bytes::from(format!("call {n}")));
            text(client.unary(request, method("Shout"), Raw).await.unwrap().get_ref())
        }
    });
    let answers = soon(futures_util::future::join_all(calls)).await;
    assert!(answers.iter().enumerate().all(|(n, answer)| *answer == format!("CALL {n}")), "{answers:?}");
}

#[tokio::test]
async fn what_the_router_answers_itself_is_a_status_that_a_client_of_grpc_understands() {
    let daemon = Daemon::start().await;
    daemon.register_and_leave("words").await;
    for (host, code, why) in [
        ("words.test", Code::Unavailable, "service words is known and has no backend now"),
        ("else.test", Code::Unimplemented, "no service has the hostname else.test"),
    ] {
        let mut client = client(&daemon, host).await;
        let request = Request::new(Bytes::from_static(b"hello"));
        let status = soon(client.unary(request, method("Shout"), Raw)).await.unwrap_err();
        assert_eq!(status.code(), code, "{status:?}");
        assert!(status.message().contains(why), "{status:?}");
    }
}
