//! A connection that has become another protocol's: from the 101 on only bytes are moved (proxy rule 17).
use super::Conn;
use crate::conn::ledger::Entry;
use crate::conn::{End, relay_ends};
use crate::http::far::Far;
use crate::http::site::Site;
use crate::http::socket::{Client, Socket};
use crate::http::stats::InFlight;
use std::sync::Arc;

/// The backend's end, and what counts the connection.
pub(super) struct Switch {
    pub(super) far: Far,
    pub(super) entry: Entry,
    pub(super) site: Arc<Site>,
    pub(super) place: InFlight,
}

impl Switch {
    /// Moves bytes until both ends are done. What the client sent behind its request goes first.
    pub(super) async fn run<S: Client>(mut self, mut conn: Conn<S>) {
        let early = conn.input.take();
        let context = Arc::clone(&conn.context);
        let mut keep: Option<Socket> = None;
        let service = self.far.into_end(&mut keep);
        let (clear, socket) = (conn.stream.clear().cloned(), conn.stream.socket().clone());
        let client = match &clear {
            Some(socket) => End::Socket(socket.tcp()),
            None => End::Stream(Box::pin(conn.stream)),
        };
        let withdrawal = self.entry.withdrawal();
        let whole = tokio::select! {
            biased;
            () = withdrawal.withdrawn() => false,
            whole = relay_ends(client, service, early, &mut self.entry, &context.conn) => whole,
        };
        if !whole {
            socket.reset_on_close();
            keep.iter().for_each(Socket::reset_on_close);
        }
        drop((self.site, self.place));
    }
}
