//! What is kept of a request while it is answered.
use crate::http::framing::Framing;
use crate::http::head::{Request, Version};

/// The parts of a head that its answer depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) http11: bool,
    pub(super) persists: bool,
    pub(super) is_head: bool,
    pub(super) is_idempotent: bool,
    pub(super) upgrade: bool,
    pub(super) expects: bool,
    pub(super) framing: Framing,
}
impl Facts {
    pub(super) fn of(request: &Request<'_, '_>) -> Self {
        Self {
            http11: request.version == Version::Http11,
            persists: request.persists,
            is_head: request.method == b"HEAD",
            is_idempotent: request.is_idempotent(),
            upgrade: request.upgrade,
            expects: request.expects,
            framing: request.framing,
        }
    }
    /// Of a head that could not be read: the connection ends with the answer.
    pub(super) fn unread() -> Self {
        Self {
            http11: true,
            persists: false,
            is_head: false,
            is_idempotent: false,
            upgrade: false,
            expects: false,
            framing: Framing::None,
        }
    }
}
