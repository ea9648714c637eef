//! Small servers and clients of plain TCP.
use super::PATIENCE;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

/// Answers every line with its own word in front; on a port of the system's choice until the test ends.
pub fn echo(word: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, word);
    address
}

/// [`echo`] on a listener that the test has made.
pub fn serve(listener: TcpListener, word: &str) {
    let word: Arc<str> = word.into();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let word = Arc::clone(&word);
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let (mut line, mut stream) = (String::new(), stream);
                while lines.read_line(&mut line).unwrap_or(0) > 0 {
                    if stream.write_all(format!("{word}:{line}").as_bytes()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
}

/// A connection that stays open.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn connect(address: impl ToSocketAddrs) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a line; the line that comes back, or `None` when the connection has ended.
    pub fn ask(&mut self, line: &str) -> Option<String> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        (self.0.read_line(&mut answer).ok()? > 0).then(|| answer.trim_end().to_owned())
    }
}

/// Connects and asks once.
pub fn ask(address: impl ToSocketAddrs, line: &str) -> Option<String> {
    Client::connect(address).ok()?.ask(line)
}
