//! The report of one host: fleet contract §6.13, and what is added to it.
use super::markers::{Declared, Marker, Socket};
use super::sanitize::Sanitizer;
use super::sockets::Listener;
use super::versions::Verdict;
use serde::Serialize;

/// `--json`; field order is the order on the wire.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) target: String,
    /// Destination that carried the question; null for this host itself.
    pub(super) ssh: Option<String>,
    /// Name of its path; `here` for this host itself.
    pub(super) path: Option<String>,
    pub(super) sanitizer_state: &'static str,
    pub(super) hostname: Option<String>,
    pub(super) release_platform: Option<String>,
    pub(super) declared_release_platform: Option<String>,
    /// `matched`, `mismatched`, `unknown`.
    pub(super) release_platform_verdict: &'static str,
    pub(super) forwards_dir: Option<String>,
    pub(super) forwards_dir_state: Option<String>,
    pub(super) managed_binaries: Vec<Binary>,
    pub(super) forwards: Vec<Forward>,
    pub(super) listeners: Vec<Listener>,
    /// `read` or `failed`.
    pub(super) listeners_state: &'static str,
    /// Verbs that the host's own `stado` has.
    pub(super) subcommands: Vec<String>,
    pub(super) vaults: Vec<Vault>,
    pub(super) resolver: Option<Resolver>,
    pub(super) reconciliation: Reconciliation,
    pub(super) exit_code: Option<u32>,
    /// `inventory`, even with drift; `failed` otherwise.
    pub(super) status: &'static str,
    pub(super) error: Option<String>,
}

/// A binary of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Binary {
    pub(super) name: String,
    pub(super) path: Option<String>,
    pub(super) version: Option<String>,
    pub(super) declared_version: Option<String>,
    pub(super) verdict: Verdict,
}

/// A marker of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Forward {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) state: String,
    pub(super) url: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) reconciliation: Socket,
    pub(super) declared_url: Option<String>,
    pub(super) declaration_verdict: Declared,
}

/// A vault's file, never what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Vault {
    pub(super) path: String,
    /// `file`, `directory`, `symlink`, `other`.
    pub(super) state: String,
    pub(super) bytes: Option<u64>,
}

/// What the host's resolver has published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Resolver {
    pub(super) state: String,
    pub(super) pid: u32,
    pub(super) updated_at: String,
    pub(super) generation: Option<u64>,
    pub(super) unserved: usize,
}

/// The axes, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Reconciliation {
    pub(super) markers: usize,
    pub(super) matched: usize,
    pub(super) stale: usize,
    pub(super) unreadable: usize,
    pub(super) unknown: usize,
    pub(super) stale_markers: Vec<String>,
    pub(super) declaration_matched: usize,
    pub(super) declaration_disagrees: usize,
    pub(super) declaration_undeclared: usize,
    pub(super) disagreeing_markers: Vec<String>,
    pub(super) undeclared_markers: Vec<String>,
    /// Services that the directory declares an address for and no marker names: an addition of ours.
    pub(super) missing_markers: Vec<String>,
    pub(super) versions_matched: usize,
    pub(super) versions_behind: usize,
    pub(super) versions_ahead: usize,
    pub(super) versions_mismatched: usize,
    pub(super) versions_undeclared: usize,
    pub(super) versions_unknown: usize,
}

impl Forward {
    pub(super) fn of(marker: Marker, clean: &Sanitizer) -> Self {
        Self {
            name: clean.text(&marker.name),
            file: clean.text(&marker.file),
            state: clean.text(&marker.state),
            url: marker.url.map(|url| clean.text(&url)),
            port: marker.port,
            reconciliation: marker.socket,
            declared_url: marker.declared_url,
            declaration_verdict: marker.declared,
        }
    }
}

impl Reconciliation {
    /// Counts. `missing`: declared services without a marker.
    pub(super) fn of(forwards: &[Forward], binaries: &[Binary], missing: Vec<String>) -> Self {
        let socket = |axis| forwards.iter().filter(|f| f.reconciliation == axis).count();
        let declared = |axis| forwards.iter().filter(|f| f.declaration_verdict == axis).count();
        let names = |keep: &dyn Fn(&&Forward) -> bool| forwards.iter().filter(keep).map(|f| f.name.clone()).collect();
        let versions = |verdict| binaries.iter().filter(|b| b.verdict == verdict).count();
        Self {
            markers: forwards.len(),
            matched: socket(Socket::Matched),
            stale: socket(Socket::Stale),
            unreadable: socket(Socket::Unreadable),
            unknown: socket(Socket::Unknown),
            stale_markers: names(&|f| f.reconciliation == Socket::Stale),
            declaration_matched: declared(Declared::Matched),
            declaration_disagrees: declared(Declared::Disagrees),
            declaration_undeclared: declared(Declared::Undeclared),
            disagreeing_markers: names(&|f| f.declaration_verdict == Declared::Disagrees),
            undeclared_markers: names(&|f| f.declaration_verdict == Declared::Undeclared),
            missing_markers: missing,
            versions_matched: versions(Verdict::Matched),
            versions_behind: versions(Verdict::Behind),
            versions_ahead: versions(Verdict::Ahead),
            versions_mismatched: versions(Verdict::Mismatched),
            versions_undeclared: versions(Verdict::Undeclared),
            versions_unknown: versions(Verdict::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(name: &str, socket: Socket, declared: Declared) -> Forward {
        let file = format!("{name}.local");
        Forward {
            name: name.into(),
            file,
            state: "read".into(),
            url: None,
            port: None,
            reconciliation: socket,
            declared_url: None,
            declaration_verdict: declared,
        }
    }

    #[test]
    fn each_axis_counts_every_marker_once() {
        let forwards = [
            forward("a", Socket::Matched, Declared::Disagrees),
            forward("b", Socket::Stale, Declared::Matched),
            forward("c", Socket::Unreadable, Declared::Undeclared),
            forward("d", Socket::Unknown, Declared::Undeclared),
        ];
        let binary = Binary {
            name: "stado".into(),
            path: None,
            version: None,
            declared_version: Some("1.0".into()),
            verdict: Verdict::Unknown,
        };
        let all = Reconciliation::of(&forwards, &[binary], vec!["e".into()]);
        assert_eq!((all.markers, all.matched, all.stale, all.unreadable, all.unknown), (4, 1, 1, 1, 1));
        assert_eq!((all.declaration_matched, all.declaration_disagrees, all.declaration_undeclared), (1, 1, 2));
        assert_eq!((all.stale_markers, all.disagreeing_markers), (vec!["b".to_owned()], vec!["a".to_owned()]));
        assert_eq!((all.undeclared_markers, all.missing_markers.len()), (vec!["c".to_owned(), "d".to_owned()], 1));
        assert_eq!((all.versions_unknown, all.versions_matched), (1, 0));
    }
}
