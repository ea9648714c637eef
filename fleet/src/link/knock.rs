//! Whether one path carries a session, and how soon.
use super::error::{LinkError, Stage};
use super::{Link, handshake};
use crate::fault::Class;
use crate::name::ConnectionPath;
use std::time::{Duration, Instant};

/// How a host answered over one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knock {
    /// From the first packet to an authenticated session.
    pub session: Duration,
    /// From a question in the session to its answer.
    pub round_trip: Duration,
}

impl Link {
    /// Opens a session over exactly this path, asks for one sign of life, and closes it. No session that stands is used, and
    /// none is left.
    pub async fn knock(&self, path: &ConnectionPath) -> Result<Knock, LinkError> {
        let config = self.pool.config();
        let began = Instant::now();
        let session = handshake::establish(path, None, &self.pool).await?;
        let stood = began.elapsed();
        let asked = Instant::now();
        let alive = session.probe(config.timing.probe).await;
        let round_trip = asked.elapsed();
        let mute = session.mute();
        session.close().await;
        if alive {
            Ok(Knock { session: stood, round_trip })
        } else {
            Err(LinkError::new(Stage::Open, Class::InfraDown, mute))
        }
    }
}
