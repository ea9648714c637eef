//! One service for all kinds of work: the first byte of a connection says which.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

pub const SINK: u8 = b'u';
pub const SOURCE: u8 = b'd';
pub const ECHO: u8 = b'e';
pub const RESET: u8 = b'r';
const PIECE: usize = 256 * 1024;

pub fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Small stacks: there are a thousand idle ones.
            thread::Builder::new().stack_size(512 * 1024).spawn(move || serve(stream)).unwrap();
        }
    });
    at
}

fn serve(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut kind = [0];
    if stream.read_exact(&mut kind).is_err() {
        return;
    }
    let _ = match kind[0] {
        SINK => sink(&mut stream),
        SOURCE => source(&mut stream),
        RESET => rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).map_err(Into::into),
        _ => echo(&mut stream),
    };
}

/// Reads all and then says how much it was.
fn sink(stream: &mut TcpStream) -> std::io::Result<()> {
    let (mut piece, mut total) = (vec![0; PIECE], 0_u64);
    loop {
        match stream.read(&mut piece)? {
            0 => break,
            n => total += n as u64,
        }
    }
    stream.write_all(&total.to_be_bytes())
}

/// Sends as much as it is asked for.
fn source(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut wanted = [0; 8];
    stream.read_exact(&mut wanted)?;
    let (mut left, piece) = (u64::from_be_bytes(wanted), vec![7; PIECE]);
    while left > 0 {
        let n = usize::try_from(left).unwrap().min(PIECE);
        stream.write_all(&piece[..n])?;
        left -= n as u64;
    }
    Ok(())
}

fn echo(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            n => stream.write_all(&piece[..n])?,
        }
    }
}
