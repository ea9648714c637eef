//! The request target (RFC 9112 §3.2).

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Target<'b> {
    /// Path and query, as the client wrote them.
    Origin(&'b [u8]),
    /// `http://host/path?query`: its host is the one asked for.
    Absolute {
        /// Host and port as written.
        authority: &'b [u8],
        /// What follows: a path, a query alone, or nothing.
        rest: &'b [u8],
    },
    /// `*`, for OPTIONS.
    Asterisk,
    /// `host:port`, for CONNECT.
    Authority,
}

impl<'b> Target<'b> {
    /// Reads what stands between method and version.
    pub(super) fn read(method: &[u8], target: &'b [u8]) -> Result<Self, &'static str> {
        match target {
            _ if method == b"CONNECT" => Ok(Self::Authority),
            [b'/', ..] => Ok(Self::Origin(target)),
            b"*" if method == b"OPTIONS" => Ok(Self::Asterisk),
            _ => absolute(target),
        }
    }

    /// Path and query as they are sent on, in at most two pieces.
    pub(in crate::http) fn pieces(&self, method: &[u8]) -> (&'static [u8], &'b [u8]) {
        match *self {
            Self::Origin(path) => (b"", path),
            Self::Absolute { rest: [], .. } if method == b"OPTIONS" => (b"*", b""),
            Self::Absolute { rest: [], .. } => (b"/", b""),
            Self::Absolute { rest: rest @ [b'?', ..], .. } => (b"/", rest),
            Self::Absolute { rest, .. } => (b"", rest),
            Self::Asterisk | Self::Authority => (b"*", b""),
        }
    }
}

fn absolute(target: &[u8]) -> Result<Target<'_>, &'static str> {
    const UNKNOWN: &str = "the request target is neither a path nor an http URL";
    let after = |scheme: &[u8]| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let rest = after(b"http://").or_else(|| after(b"https://")).ok_or(UNKNOWN)?;
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).ok_or(UNKNOWN)?;
    if authority.is_empty() {
        return Err("an http URL without a host in the request target");
    }
    if rest.first() == Some(&b'#') {
        return Err("a fragment in the request target");
    }
    Ok(Target::Absolute { authority, rest })
}
