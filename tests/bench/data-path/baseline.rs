//! The plain proxy that everybody writes first: `tokio::io::copy_bidirectional` on the multi-thread runtime.
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};

/// `FRONTEND=BACKEND …`, until killed.
pub fn serve(pairs: &[String]) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for pair in pairs {
            let (frontend, backend) = pair.split_once('=').unwrap();
            let listener = TcpListener::bind(frontend).await.unwrap();
            tokio::spawn(accept(listener, backend.parse().unwrap()));
        }
        std::future::pending::<()>().await;
    });
}

async fn accept(listener: TcpListener, backend: SocketAddr) {
    loop {
        let Ok((mut client, _)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let Ok(mut service) = TcpStream::connect(backend).await else { return };
            let _ = (client.set_nodelay(true), service.set_nodelay(true));
            let _ = tokio::io::copy_bidirectional(&mut client, &mut service).await;
        });
    }
}
