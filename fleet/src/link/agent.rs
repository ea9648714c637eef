//! The SSH agent, under a deadline: one that never answers costs seconds, not the connection.
use super::error::seconds;
use russh::keys::HashAlg;
use russh::keys::agent::client::AgentClient;
use russh::keys::agent::{AgentIdentity, AgentSessionBinding};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A connected agent; each of its answers has the same deadline.
pub(super) struct Agent {
    client: AgentClient<UnixStream>,
    deadline: Duration,
}

impl Agent {
    /// Connects and lists its keys and certificates.
    pub(super) async fn connect(
        socket: &Path,
        binding: Option<&AgentSessionBinding>,
        deadline: Duration,
    ) -> Result<(Self, Vec<AgentIdentity>), String> {
        let listing = async {
            let mut client = AgentClient::connect_uds(socket).await.map_err(|e| e.to_string())?;
            if let Some(binding) = binding {
                // Older agents refuse the extension; only keys bound to a destination need it.
                let _ = client.bind_session(binding, false).await;
            }
            let identities = client.request_identities().await.map_err(|e| e.to_string())?;
            Ok::<_, String>((Self { client, deadline }, identities))
        };
        match timeout(deadline, listing).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(why)) => Err(format!("the agent at {} failed: {why}", socket.display())),
            Err(_) => Err(format!("the agent at {} did not answer within {}", socket.display(), seconds(deadline))),
        }
    }
}

/// Why the agent gave no signature.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentError {
    #[error("the agent did not sign within {}", seconds(*.0))]
    Silent(Duration),
    #[error("the agent did not sign: {0}")]
    Failed(#[from] russh::keys::Error),
    #[error("the session ended")]
    Session,
}

impl From<russh::SendError> for AgentError {
    fn from(_: russh::SendError) -> Self {
        Self::Session
    }
}

impl russh::Signer for Agent {
    type Error = AgentError;
    async fn auth_sign(
        &mut self,
        key: &AgentIdentity,
        hash: Option<HashAlg>,
        to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, AgentError> {
        match timeout(self.deadline, self.client.sign_request(key, hash, to_sign)).await {
            Ok(signed) => Ok(signed?),
            Err(_) => Err(AgentError::Silent(self.deadline)),
        }
    }
}
