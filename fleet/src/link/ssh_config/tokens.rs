//! `~` and the `%` tokens of values. One that cannot be filled in is refused, never left in place.
use std::path::{Path, PathBuf};

/// What tokens stand for.
pub(super) struct Tokens<'a> {
    /// As the registry names the host: `%n`.
    pub(super) original: &'a str,
    /// As resolved: `%h`.
    pub(super) host: &'a str,
    /// `%p`.
    pub(super) port: u16,
    /// `%r`.
    pub(super) user: &'a str,
    /// `%u`.
    pub(super) local_user: &'a str,
    /// `%d`, and what `~` is.
    pub(super) home: &'a Path,
}

impl Tokens<'_> {
    /// Fills in the tokens of a value.
    pub(super) fn fill(&self, value: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = value.chars();
        while let Some(c) = rest.next() {
            match c {
                '%' => match rest.next() {
                    Some('%') => filled.push('%'),
                    Some('h') => filled.push_str(self.host),
                    Some('n') => filled.push_str(self.original),
                    Some('p') => filled.push_str(&self.port.to_string()),
                    Some('r') => filled.push_str(self.user),
                    Some('u') => filled.push_str(self.local_user),
                    Some('d') => filled.push_str(&self.home.to_string_lossy()),
                    other => {
                        let token = other.map(String::from).unwrap_or_default();
                        return Err(format!("has the token %{token}, which Stado's own SSH does not fill in"));
                    }
                },
                '$' if rest.as_str().starts_with('{') => {
                    return Err("names a variable of the environment, which Stado's own SSH does not fill in".into());
                }
                c => filled.push(c),
            }
        }
        Ok(filled)
    }

    /// A path of a value.
    pub(super) fn path(&self, value: &str) -> Result<PathBuf, String> {
        expanded(&self.fill(value)?, self.home)
    }
}

/// Replaces `~` in front; a path must lead from the root, since a daemon has no directory that a person would mean.
pub(super) fn expanded(path: &str, home: &Path) -> Result<PathBuf, String> {
    if path == "~" {
        return Ok(home.to_owned());
    }
    if let Some(rest) = path.strip_prefix("~/") {
        return Ok(home.join(rest));
    }
    if path.starts_with('/') {
        return Ok(path.into());
    }
    Err(format!("has the path {path:?}, which begins with neither / nor ~/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_filled_in_and_unknown_ones_refused() {
        let home = Path::new("/home/ann");
        let tokens = Tokens { original: "tower", host: "10.0.0.7", port: 2222, user: "ops", local_user: "ann", home };
        assert_eq!(tokens.fill("%n-%h-%p-%r-%u-%d-%%").unwrap(), "tower-10.0.0.7-2222-ops-ann-/home/ann-%");
        assert_eq!(tokens.path("~/.ssh/%n").unwrap(), home.join(".ssh/tower"));
        assert!(tokens.fill("%C").unwrap_err().contains("%C"));
        assert!(tokens.path("${HOME}/x").unwrap_err().contains("environment"));
        assert!(tokens.path("keys/x").unwrap_err().contains("keys/x"));
        assert!(tokens.path("~bob/x").is_err());
    }
}
