//! The server behind the proxies that `tests/bench/http-speed` measures: as little work for a request as there can be.
//!
//! `GET /1k` is 1 KiB, `GET /1g` is 1 GiB, `GET /ws` a WebSocket that returns every byte, `GET /events` an event every two
//! milliseconds that says when it was written (nanoseconds of the wall clock); `Connection: close` is obeyed. It says its port
//! in one line and ends with its standard input.
#![allow(clippy::print_stdout)]
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const KIB: usize = 1 << 10;
const GIB: usize = 1 << 30;
const PART: usize = 256 * KIB;
const EVERY: Duration = Duration::from_millis(2);

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("port {}", listener.local_addr()?.port());
    let accept = async {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    };
    let (mut input, mut nowhere) = (tokio::io::stdin(), tokio::io::sink());
    tokio::select! {
        () = accept => {}
        _ = tokio::io::copy(&mut input, &mut nowhere) => {}
    }
    Ok(())
}

/// One request after the other; requests without a body only.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let small = [format!("HTTP/1.1 200 OK\r\nContent-Length: {KIB}\r\n\r\n").as_bytes(), &[b'a'; KIB]].concat();
    let (mut held, mut part) = (Vec::new(), vec![0; 16 * KIB]);
    loop {
        let Some(end) = held.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            match stream.read(&mut part).await? {
                0 => return Ok(()),
                read => held.extend_from_slice(part.get(..read).unwrap_or_default()),
            }
            continue;
        };
        let rest = held.split_off(end + 4);
        let head = std::mem::replace(&mut held, rest).to_ascii_lowercase();
        if head.starts_with(b"get /ws ") {
            return echo(stream).await;
        } else if head.starts_with(b"get /events ") {
            return events(stream).await;
        } else if head.starts_with(b"get /1g ") {
            large(&mut stream).await?;
        } else {
            stream.write_all(&small).await?;
        }
        if head.windows(17).any(|bytes| bytes == b"connection: close") {
            return stream.shutdown().await;
        }
    }
}

async fn large(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {GIB}\r\n\r\n").as_bytes()).await?;
    let part = vec![b'a'; PART];
    for _ in 0..GIB / PART {
        stream.write_all(&part).await?;
    }
    Ok(())
}

/// A WebSocket for a client with RFC 6455's own sample key: every byte goes back as it came.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    stream.write_all(accepted.as_bytes()).await?;
    let mut part = vec![0; 16 * KIB];
    loop {
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            read => stream.write_all(part.get(..read).unwrap_or_default()).await?,
        }
    }
}

/// Until the client goes. `X-Accel-Buffering` is how a server asks nginx not to keep an answer back.
async fn events(mut stream: TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
                X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    loop {
        tokio::time::sleep(EVERY).await;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let event = format!("data: {now}\n\n");
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
    }
}
