//! A listener that is published as it is bound.
use super::error::Error;
use super::handle::{Handle, register};
use super::options::RegistrationOptions;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpStream};

/// A bound listener and its registration.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    local: SocketAddr,
    registration: Handle,
}

/// Binds a port of the system's choice on 127.0.0.1 and publishes it at the default socket. The program owns the port
/// before anyone hears of it.
pub async fn listen_tcp(name: &str, preferred_port: Option<u16>) -> Result<Listener, Error> {
    listen(RegistrationOptions { preferred_port, ..RegistrationOptions::new(name, "") }).await
}

/// Like [`listen_tcp`] with every option; an empty `backend` binds `127.0.0.1:0`, any other is bound as written.
pub async fn listen(mut options: RegistrationOptions) -> Result<Listener, Error> {
    let listener = if options.backend.is_empty() {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?
    } else {
        TcpListener::bind(&options.backend).await?
    };
    let local = listener.local_addr()?;
    options.backend = local.to_string();
    let registration = register(options).await?;
    Ok(Listener { listener, local, registration })
}

impl Listener {
    /// The next client; connections arrive from the daemon.
    pub async fn accept(&self) -> Result<(TcpStream, SocketAddr), Error> {
        Ok(self.listener.accept().await?)
    }

    /// The program's own address, which only the daemon dials.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The registration.
    pub fn registration(&self) -> &Handle {
        &self.registration
    }

    /// The parts, for servers that take a listener of their own.
    pub fn into_parts(self) -> (TcpListener, Handle) {
        (self.listener, self.registration)
    }

    /// Closes the listener, then the registration.
    pub async fn close(self) {
        drop(self.listener);
        self.registration.close().await;
    }
}
