//! The seam to the link: one command on another host.
use crate::link::{ExecLimits, ExecOutput, Link, LinkError};
use crate::name::{ConnectionPath, TargetName};
use std::future::Future;
use std::pin::Pin;

/// Runs commands on other hosts; [`Link`] in the product.
pub trait Exec: Send + Sync {
    /// As [`Link::exec`].
    fn exec<'a>(
        &'a self,
        host: &'a TargetName,
        paths: &'a [ConnectionPath],
        command: &'a str,
        stdin: &'a [u8],
        limits: ExecLimits,
    ) -> Pin<Box<dyn Future<Output = Result<ExecOutput, LinkError>> + Send + 'a>>;
}

impl Exec for Link {
    fn exec<'a>(
        &'a self,
        host: &'a TargetName,
        paths: &'a [ConnectionPath],
        command: &'a str,
        stdin: &'a [u8],
        limits: ExecLimits,
    ) -> Pin<Box<dyn Future<Output = Result<ExecOutput, LinkError>> + Send + 'a>> {
        Box::pin(Link::exec(self, host, paths, command, stdin, limits))
    }
}

/// A word for a POSIX shell, in single quotes.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// As [`quoted`], unless the word needs none.
pub(super) fn quoted_if_needed(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'/' | b'=' | b'+');
    if !word.is_empty() && word.bytes().all(plain) { word.to_owned() } else { quoted(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_far_shell_whole() {
        assert_eq!(quoted("/opt/my stado/bin"), "'/opt/my stado/bin'");
        assert_eq!(quoted("a'b"), r"'a'\''b'");
        assert_eq!(quoted_if_needed("945077b5e1c74a0c"), "945077b5e1c74a0c");
        assert_eq!(quoted_if_needed("\"etag\""), "'\"etag\"'");
        assert_eq!(quoted_if_needed(""), "''");
    }
}
