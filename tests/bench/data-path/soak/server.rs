//! A service that does what its client asks for with the first byte.
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answer every byte.
pub const ECHO: u8 = b'e';
/// Reset the connection.
pub const RESET: u8 = b'r';
/// Read to the end, then answer how many bytes came, eight bytes.
pub const COUNT: u8 = b'c';
/// Write [`BULK`] bytes and end.
pub const GIVE: u8 = b'g';

pub const BULK: usize = 8 << 20;

pub async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        }
    });
    address
}

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    match stream.read_u8().await? {
        RESET => return socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
        GIVE => {
            let mut left = BULK;
            while left > 0 {
                left -= stream.write(&buffer[..left.min(64 << 10)]).await?;
            }
        }
        COUNT => {
            let mut count = 0u64;
            loop {
                match stream.read(&mut buffer).await? {
                    0 => break,
                    n => count += u64::try_from(n).unwrap(),
                }
            }
            stream.write_u64(count).await?;
        }
        _ => loop {
            match stream.read(&mut buffer).await? {
                0 => break,
                n => stream.write_all(&buffer[..n]).await?,
            }
        },
    }
    stream.shutdown().await
}
