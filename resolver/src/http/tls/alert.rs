//! Alerts that rustls has no occasion to send, since they are decided before a certificate is chosen.
use super::problem::TlsProblem;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The fatal alert of RFC 8446 §6.2 that says what the problem says.
fn description(problem: &TlsProblem) -> Option<u8> {
    match problem {
        TlsProblem::NotInForce { .. } => Some(45),
        TlsProblem::NotIssued(..) => Some(80),
        TlsProblem::NoCertificate(_) => Some(112),
        _ => None,
    }
}

/// Tells the client in TLS, in the clear as every alert before the keys.
pub(super) async fn send(stream: &mut (impl AsyncWrite + Unpin), problem: &TlsProblem) {
    if let Some(description) = description(problem) {
        // A client that is gone needs no alert.
        let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, description]).await;
        let _ = stream.shutdown().await;
    }
}
