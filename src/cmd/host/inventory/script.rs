//! What is asked of a host: a POSIX shell script on its standard input, so that nothing of Stado has to be there.

const FUNCTIONS: &str = include_str!("inventory.sh");

/// What runs it, in whatever shell the account has.
pub(crate) const COMMAND: &str = "sh -s";
/// First line of an answer.
pub(super) const BEGIN: &str = "stado-inventory 1";
/// Last line of a whole answer.
pub(super) const END: &str = "stado-inventory end";

/// A program whose version is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    /// Its declared path; empty when the host is to find it.
    pub(super) path: String,
}

/// Whether a program's name may be asked for: one word of plain characters.
pub(super) fn is_askable(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+');
    !name.starts_with(['-', '.']) && !name.is_empty() && name.len() <= 100 && name.bytes().all(plain)
}

/// The whole inventory.
pub(super) fn inventory(binaries: &[Wanted]) -> String {
    let quoted = crate::cmd::remote::quoted;
    let asked = binaries.iter().filter(|wanted| is_askable(&wanted.name));
    let binaries: String = asked.map(|w| format!("    binary {} {}\n", quoted(&w.name), quoted(&w.path))).collect();
    let body = format!(
        "    fact host \"$(uname -n)\"\n    fact platform \"$(uname -s)\" \"$(uname -m)\"\n    forwards\n    listeners\n{binaries}    \
         vaults\n    resolver_state\n"
    );
    whole(&body)
}

/// Only what the resolver of the host has published, and the host's clock.
pub(crate) fn beacon() -> String {
    whole("    fact clock \"$(date -u +%s)\"\n    resolver_state\n")
}

/// Only the socket table.
pub(super) fn sockets() -> String {
    whole("    listeners\n")
}

/// One function, so that a script that arrives in part does nothing.
fn whole(body: &str) -> String {
    format!("{FUNCTIONS}\nmain() {{\n    echo '{BEGIN}'\n{body}    echo '{END}'\n}}\nmain </dev/null\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_asked_for_and_paths_are_kept_whole() {
        let wanted = |name: &str, path: &str| Wanted { name: name.into(), path: path.into() };
        let script = inventory(&[wanted("stado", "/opt/my stado's/bin"), wanted("$(id)", ""), wanted("-x", "")]);
        assert!(script.contains(r"binary 'stado' '/opt/my stado'\''s/bin'"), "{script}");
        assert!(!script.contains("$(id)") && !script.contains("'-x'"));
        assert!(is_askable("g++-12") && !is_askable("") && !is_askable("a b") && !is_askable("../x"));
    }
}
