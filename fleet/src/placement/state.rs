//! What is said to a host about the state of a profile. On the destination everything stands beside the path it is for,
//! named after the transaction, so that each step is one rename and every cut leaves what tells how to go on:
//!
//! | file beside `P` | says |
//! |---|---|
//! | `P.stado-<id>.new` | copied and checked, not in place |
//! | `P.stado-<id>.gone` | the source has none, so the destination shall have none |
//! | `P.stado-<id>.before` | what was at `P`; it is set aside, or the copy is in its place |
//! | `P.stado-<id>.none` | nothing was at `P` before the copy |
//!
//! The source's state is never changed.
use super::StatePath;
use super::shell::quoted;

/// Functions for checksums of a file, and of a tree with its names, kinds and modes.
const SUMS: &str = "if command -v sha256sum >/dev/null 2>&1; then SUM=sha256sum; else SUM='shasum -a 256'; fi\n\
    export LC_ALL=C\n\
    mode() { ls -ld \"$1\" | cut -c1-10; }\n\
    digest() { if [ -d \"$1\" ]; then ( cd \"$1\" && {\n\
    mode . && find . -type f -exec $SUM {} + &&\n\
    find . \\( -type f -o -type d \\) ! -name . -exec ls -ld {} + | sed 's|^\\(..........\\).* \\./|\\1 ./|' &&\n\
    find . -type l | while IFS= read -r l; do printf '%s -> %s\\n' \"$l\" \"$(readlink \"$l\")\"; done; } | sort | $SUM | cut -c1-64 )\n\
    else { mode \"$1\"; $SUM <\"$1\"; } | $SUM | cut -c1-64; fi; }\n";

/// One path of the state on one host.
#[derive(Debug, Clone)]
pub struct Place {
    /// As a word of a script.
    word: String,
    /// Its last part.
    name: String,
    /// As people see it.
    pub shown: String,
    state: StatePath,
}

impl Place {
    /// Where `state` is on a host with this `work_root`; `None` when it is below one and the host has none.
    pub fn of(state: &StatePath, work_root: Option<&str>) -> Option<Self> {
        let root = if state.work { quoted(work_root?) } else { "\"$HOME\"".to_owned() };
        let name = state.path.rsplit('/').next().unwrap_or(&state.path).to_owned();
        let shown = if state.work { format!("{}/{}", work_root?, state.path) } else { format!("~/{}", state.path) };
        Some(Self { word: format!("{root}/{}", quoted(&state.path)), name, shown, state: state.clone() })
    }

    fn beside(&self, transaction: &str, end: &str) -> String {
        format!("{}.stado-{transaction}.{end}", self.word)
    }
}

/// Says for each path, one a line: `absent`, or `present <kilobytes>`. Refuses what is not of its kind, and a host
/// without what copying needs.
pub fn look(places: &[Place]) -> String {
    let mut script = String::from(
        "for tool in tar find sort cut sed awk; do command -v $tool >/dev/null 2>&1 || { echo \"$tool is not installed\" >&2; exit 1; }; done\n\
         { command -v sha256sum || command -v shasum; } >/dev/null 2>&1 || { echo 'neither sha256sum nor shasum is installed' >&2; exit 1; }\n",
    );
    for place in places {
        let Place { word, shown, state, .. } = place;
        let (test, kind) = if state.tree { ("-d", "directory") } else { ("-f", "regular file") };
        let wrong = quoted(&format!("{shown} is not a {kind}"));
        let absent = match state.required {
            true => format!("echo {} >&2; exit 1", quoted(&format!("required state {shown} is missing"))),
            false => "echo absent".to_owned(),
        };
        script.push_str(&format!(
            "if [ -L {word} ] || {{ [ -e {word} ] && ! [ {test} {word} ]; }}; then echo {wrong} >&2; exit 1\n\
             elif [ -e {word} ]; then echo present \"$(du -sk {word} 2>/dev/null | cut -f1)\"\nelse {absent}; fi\n"
        ));
    }
    script
}

/// Prints the free kilobytes where each path will be; also removes what transactions before left beside it.
pub fn room(places: &[Place]) -> String {
    let mut script = String::new();
    for Place { word, .. } in places {
        script.push_str(&format!(
            "(umask 077; mkdir -p \"$(dirname {word})\") || exit 1\n\
             for left in {word}.stado-*.new {word}.stado-*.part {word}.stado-*.gone {word}.stado-*.before {word}.stado-*.none; do\n\
             if [ -e \"$left\" ]; then rm -rf \"$left\" || exit 1; fi; done\n\
             df -Pk \"$(dirname {word})\" | tail -n 1 | awk '{{print $4}}'\n"
        ));
    }
    script
}

/// The path as an archive on standard output.
pub fn pack(place: &Place) -> String {
    let Place { word, name, .. } = place;
    format!("cd \"$(dirname {word})\" && COPYFILE_DISABLE=1 exec tar -cf - {}", quoted(&format!("./{name}")))
}

/// Puts an archive from standard input beside the path, and prints what went wrong, then the checksum of what arrived.
pub fn unpack(place: &Place, transaction: &str) -> String {
    let (new, part) = (place.beside(transaction, "new"), place.beside(transaction, "part"));
    let name = quoted(&place.name);
    format!(
        "{SUMS}exec 2>&1\nrm -rf {new} {part} && (umask 077; mkdir -p {part}) && tar -xpf - -C {part} && mv {part}/{name} {new} && \
         rmdir {part} && echo \"checksum $(digest {new})\"\n"
    )
}

/// Says that the destination shall have none.
pub fn absent(place: &Place, transaction: &str) -> String {
    let (gone, word) = (place.beside(transaction, "gone"), &place.word);
    format!("(umask 077; mkdir -p \"$(dirname {word})\") && : >{gone} && echo absent\n")
}

/// Prints `checksum <hash>` of the path as it is.
pub fn checksum(place: &Place) -> String {
    format!("{SUMS}echo \"checksum $(digest {})\"\n", place.word)
}

/// Puts what was copied in place, and what was there aside. Once it is in place, nothing.
pub fn install(places: &[Place], transaction: &str) -> String {
    let mut script = String::from("set -e\n");
    for place in places {
        let [new, gone, before, none] = ["new", "gone", "before", "none"].map(|end| place.beside(transaction, end));
        let word = &place.word;
        script.push_str(&format!(
            "if [ -e {new} ] || {{ [ -e {gone} ] && ! [ -e {before} ]; }}; then\n\
             if ! [ -e {before} ] && ! [ -e {none} ]; then\n\
             if [ -e {word} ] || [ -L {word} ]; then mv {word} {before}; else : >{none}; fi\n\
             fi\n\
             if [ -e {new} ]; then mv {new} {word}; fi\n\
             fi\n"
        ));
    }
    script.push_str("sync\n");
    script
}

/// Puts back what was there before the transaction, whatever it had come to.
pub fn restore(places: &[Place], transaction: &str) -> String {
    let mut script = String::from("set -e\n");
    for place in places {
        let [new, part, gone, before, none] =
            ["new", "part", "gone", "before", "none"].map(|end| place.beside(transaction, end));
        let word = &place.word;
        script.push_str(&format!(
            "if [ -e {before} ] || [ -L {before} ]; then rm -rf {word}; mv {before} {word}\n\
             elif [ -e {none} ]; then rm -rf {word}; fi\n\
             rm -rf {new} {part} {gone} {none}\n"
        ));
    }
    script
}

/// Removes what the transaction kept for its undoing.
pub fn tidy(places: &[Place], transaction: &str) -> String {
    let words =
        places.iter().flat_map(|p| ["new", "part", "gone", "before", "none"].map(|end| p.beside(transaction, end)));
    format!("rm -rf {}\n", words.collect::<Vec<_>>().join(" "))
}
