//! The one error envelope, and which status each code has (mesh contract §1.4).
use super::respond::{Body, json};
use crate::mesh::{Code, Refusal};
use hyper::{Response, StatusCode};
use stado_fleet::wire::{ApiError, ErrorEnvelope};

/// The answer to a request that is refused.
pub(super) fn refusal(refusal: &Refusal) -> Response<Body> {
    let status = status(refusal);
    let code = refusal.code().as_str();
    if status.is_server_error() {
        tracing::warn!(target: "stado::mesh", code, error = %refusal, "api_error");
    } else {
        tracing::debug!(target: "stado::mesh", code, error = %refusal, "api_error");
    }
    envelope(status, code, &refusal.to_string())
}

/// A request that comes from a browser page or from another user.
pub(super) fn forbidden(why: &str) -> Response<Body> {
    tracing::warn!(target: "stado::mesh", code = "unauthorized", error = why, "api_error");
    envelope(StatusCode::FORBIDDEN, Code::Unauthorized.as_str(), why)
}

/// A process that speaks another version of a protocol.
pub(super) fn upgrade_required(why: &str) -> Response<Body> {
    envelope(StatusCode::UPGRADE_REQUIRED, Code::InvalidRequest.as_str(), why)
}

/// Something that cannot be had in the state that this daemon is in.
pub(super) fn conflict(why: &str) -> Response<Body> {
    envelope(StatusCode::CONFLICT, Code::InvalidRequest.as_str(), why)
}

fn envelope(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    json(status, &ErrorEnvelope { error: ApiError { code: code.into(), message: message.into() } })
}

fn status(refusal: &Refusal) -> StatusCode {
    if matches!(refusal, Refusal::KeyReused(_)) {
        return StatusCode::UNPROCESSABLE_ENTITY;
    }
    if matches!(refusal, Refusal::HandedOver) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    match refusal.code() {
        Code::InvalidRequest | Code::InvalidName | Code::InvalidBackend | Code::UnsupportedKind => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::RegistrationNotFound | Code::ServiceNotFound => StatusCode::NOT_FOUND,
        Code::NameConflict => StatusCode::CONFLICT,
        Code::PortExhausted => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
