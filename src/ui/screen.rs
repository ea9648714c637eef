//! A terminal that is taken over for a while, and given back whatever happens: at the end, by a panic, and while the process
//! is stopped.
use crate::config::Env;
use crate::exit::Failure;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, IsTerminal, Stdout, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// How soon the reader of keys sees that nobody wants any.
const GLANCE: Duration = Duration::from_millis(100);
/// Keys that are typed ahead.
const AHEAD: usize = 64;

/// Whether standard output is a terminal that a view can be drawn on, and whether in colour.
///
/// # Errors
/// What to do instead.
pub fn fit(env: &Env) -> Result<bool, Failure> {
    let instead = "`stado status` prints everything once, `stado resolver status --watch` the routes again and again";
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(format!("standard output is no terminal, and a live view needs one: {instead}")));
    }
    match env.raw("TERM").and_then(|term| term.to_str()) {
        None => {
            Err(Failure::usage(format!("TERM is not set, so that nobody knows what this terminal can show: {instead}")))
        }
        Some("dumb") => Err(Failure::usage(format!("this terminal (TERM=dumb) cannot move its cursor: {instead}"))),
        Some(_) => Ok(env.raw("NO_COLOR").is_none()),
    }
}

/// The terminal, taken over until this value is dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    events: mpsc::Receiver<Event>,
    unwanted: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn enter() -> Result<Self, Failure> {
        let before = std::panic::take_hook();
        // A panic is told on the screen that people came from.
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
        enter().map_err(|e| {
            leave();
            cannot(&e)
        })?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).map_err(|e| {
            leave();
            cannot(&e)
        })?;
        let (send, events) = mpsc::channel(AHEAD);
        let unwanted = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&unwanted);
        // Reading keys blocks: on a thread of its own.
        std::thread::spawn(move || read(&send, &seen));
        Ok(Self { terminal, events, unwanted })
    }

    /// Draws.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> Result<(), Failure> {
        self.terminal.draw(|frame| draw(frame.buffer_mut())).map(drop).map_err(|e| cannot(&e))
    }

    /// The next key or change of size; `None` when there will be none any more.
    pub async fn event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Forgets what is on the screen: the next drawing draws everything.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn clear(&mut self) -> Result<(), Failure> {
        // `Terminal::clear` would ask the terminal for its cursor, and the answer would come among the keys.
        let size = self.terminal.size().map_err(|e| cannot(&e))?;
        self.terminal.resize(size.into()).map_err(|e| cannot(&e))
    }

    /// Puts text into the clipboard of the terminal (OSC 52): of the one in front of the person, however far from here.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn copy(&mut self, text: &str) -> Result<(), Failure> {
        let out = self.terminal.backend_mut();
        let written = write!(out, "\x1b]52;c;{}\x07", base64(text.as_bytes()));
        written.and_then(|()| Write::flush(out)).map_err(|e| cannot(&e))
    }

    /// Gives the terminal back and stops the process, as Ctrl-Z does; takes it again when the process goes on.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn suspend(&mut self) -> Result<(), Failure> {
        leave();
        let stopped = kill_process(getpid(), Signal::TSTP).map_err(io::Error::from);
        stopped.and_then(|()| enter()).map_err(|e| cannot(&e))?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// As it was. A terminal that is gone needs nothing.
fn leave() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Hands on keys and changes of size until nobody wants any, or there are none.
fn read(send: &mpsc::Sender<Event>, unwanted: &AtomicBool) {
    while !unwanted.load(Ordering::Relaxed) {
        let typed = event::poll(GLANCE).and_then(|any| if any { event::read().map(Some) } else { Ok(None) });
        match typed {
            Ok(None) => {}
            Ok(Some(event)) => {
                if send.blocking_send(event).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

fn cannot(error: &io::Error) -> Failure {
    Failure::here(format!("cannot use the terminal: {error}"))
}

/// Base 64 with its padding, as OSC 52 wants it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let all = three.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let six = usize::try_from(all >> (18 - 6 * at) & 63).unwrap_or_default();
            let letter = LETTERS.get(six).filter(|_| at <= three.len());
            text.push(letter.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn a_clipboard_gets_base_64() {
        let of = ["", "f", "fo", "foo", "foob", "127.0.0.1:15000"].map(|text| base64(text.as_bytes()));
        assert_eq!(of, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "MTI3LjAuMC4xOjE1MDAw"]);
    }
}
