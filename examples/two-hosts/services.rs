//! The services on the authority's side: small servers on ports of the system's choice.
use crate::Held;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// A server until it is dropped; then its port refuses and its connections end.
pub(crate) struct Server {
    port: u16,
    stopped: Arc<AtomicBool>,
}

impl Server {
    fn start(serve: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Held<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (port, stopped) = (listener.local_addr()?.port(), Arc::new(AtomicBool::new(false)));
        let (serve, stop) = (Arc::new(serve), Arc::clone(&stopped));
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                if stop.load(Relaxed) {
                    break;
                }
                open.extend(stream.try_clone());
                let serve = Arc::clone(&serve);
                thread::spawn(move || {
                    let _ = stream.try_clone().and_then(|stream| serve(stream));
                    // Its copy above keeps the connection open otherwise, and the client waiting for its end.
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
            for stream in open {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        Ok(Self { port, stopped })
    }

    /// Repeats every line behind `word`.
    pub(crate) fn echo(word: &str) -> Held<Self> {
        let word = word.to_owned();
        Self::start(move |mut stream| {
            for line in BufReader::new(stream.try_clone()?).lines() {
                stream.write_all(format!("{word}: {}\n", line?).as_bytes())?;
            }
            Ok(())
        })
    }

    /// Answers every request with one page.
    pub(crate) fn http(page: &str) -> Held<Self> {
        let page = page.to_owned();
        Self::start(move |mut stream| {
            let mut lines = BufReader::new(stream.try_clone()?).lines();
            while let Some(line) = lines.next().transpose()? {
                if line.is_empty() {
                    let length = page.len();
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n");
                    stream.write_all(format!("{head}{page}").as_bytes())?;
                }
            }
            Ok(())
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
        // Wakes the accept loop, which then ends what it holds.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}
