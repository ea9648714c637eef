//! A service that takes every connection and answers nobody, until it is told to.
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[derive(Default)]
struct State {
    taken: Vec<TcpStream>,
    speaks: bool,
}

/// Runs until the test ends.
pub struct Mute {
    pub at: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Mute {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut state = shared.lock().unwrap();
                if state.speaks {
                    let _ = stream.write_all(ANSWER);
                }
                state.taken.push(stream);
            }
        });
        Self { at, state }
    }

    /// Connections that were sent something.
    pub fn asked(&self) -> usize {
        let state = self.state.lock().unwrap();
        let sent = |stream: &&TcpStream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.peek(&mut [0]), Ok(1))
        };
        state.taken.iter().filter(sent).count()
    }

    /// Answers everybody who waits, and from now on everybody at once.
    pub fn speak(&self) {
        let mut state = self.state.lock().unwrap();
        state.speaks = true;
        for stream in &mut state.taken {
            let _ = stream.write_all(ANSWER);
        }
    }
}
