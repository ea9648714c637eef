//! A service that publishes itself, and says what happens to its registration.
//!
//! `cargo run --example client -- NAME [PREFERRED_PORT]` answers every line with the name in front of it. Others reach it
//! at the address it prints, across restarts of the daemon and of this program. Ctrl-C ends it.
#![allow(clippy::print_stdout)]
use stado::client::{Api, FirstAttempt, RegistrationOptions, State, default_socket, listen};
use std::error::Error;
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: client NAME [PREFERRED_PORT]")?;
    let preferred_port = arguments.next().map(|text| text.parse()).transpose()?;
    let socket = std::env::var_os("DEVMESH_SOCKET").map_or_else(default_socket, PathBuf::from);

    // Binds a port of the system's choice first, then publishes it; a daemon that is not up yet is waited for.
    let listener = listen(RegistrationOptions {
        preferred_port,
        socket: Some(socket.clone()),
        first_attempt: FirstAttempt::RetryForever,
        ..RegistrationOptions::new(name.as_str(), "")
    })
    .await?;
    println!("{name} is at {}", listener.registration().endpoint());

    // What others see of it.
    let seen = Api::new(socket).resolve(&name).await?;
    println!("{} is {}", seen.name, seen.status);

    let mut changes = listener.registration().changes();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                tokio::spawn(answer(stream, name.clone()));
            }
            changed = changes.changed() => {
                changed?;
                match &*changes.borrow_and_update() {
                    State::Registered => println!("registered at {}", listener.registration().endpoint()),
                    State::Retrying { error, .. } => println!("trying on: {error}"),
                    State::Conflict { error, .. } => println!("somebody else has the name: {error}"),
                    State::Closed => break,
                }
            }
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    listener.close().await;
    Ok(())
}

/// Each line comes back with the name of the service in front.
async fn answer(mut stream: TcpStream, name: String) -> std::io::Result<()> {
    let (from, mut to) = stream.split();
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await? {
        to.write_all(format!("{name}: {line}\n").as_bytes()).await?;
    }
    Ok(())
}
