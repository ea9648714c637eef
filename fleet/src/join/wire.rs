//! What a candidate says and what it is told: one JSON document each way.
use crate::name::TargetName;
use serde::{Deserialize, Serialize};

/// Version of both.
pub(super) const VERSION: u32 = 1;

/// A host that asks to join, on the standard input of `fleet admit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// 1.
    pub version: u32,
    /// The name that it wants.
    pub name: TargetName,
    /// Its own key, as `type base64`.
    pub key: String,
    /// `linux-amd64` or `darwin-arm64`.
    pub release_platform: String,
    /// Absolute path of `stado` there.
    pub command: String,
    /// Where others reach it, `[user@]host[:port]`, when they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// The keys by which it is known there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_keys: Vec<String>,
}

/// What it is told when it is taken in, on standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// 1.
    pub version: u32,
    /// Its target.
    pub target: TargetName,
    /// The authority.
    pub authority: TargetName,
    /// Version of the registry that has it.
    pub store_version: String,
    /// It was a target already: the step was done before.
    #[serde(default)]
    pub again: bool,
}
