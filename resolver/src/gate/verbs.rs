//! The closed table of verbs, and the words of what is refused.
use super::words;

/// A command that the gate runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verb {
    /// Without the program name.
    pub(super) argv: Vec<String>,
    pub(super) kind: Kind,
}

/// What goes over its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One answer.
    Answer,
    /// One answer to what comes on standard input.
    AnswerToInput,
    /// One answer to a host that shows an invitation, on standard input.
    Admit,
    /// One answer to a host that leaves.
    Leave,
    /// A multiplex, until the client leaves.
    Relay,
    /// Versions of the store, until the client leaves.
    Watch,
}

/// Exit status of a refused command, as a shell gives for what it may not run.
pub const REFUSED: u32 = 126;

/// The verb that `command` asks for. Its program name is ignored: the verbs run in this process.
pub(super) fn parse(command: &[u8]) -> Result<Verb, String> {
    let line = std::str::from_utf8(command).map_err(|_| refusal("the command is not UTF-8"))?;
    let words = words::split(line).map_err(|why| refusal(&why))?;
    let argv: Vec<String> = words.into_iter().skip(1).collect();
    let verb: Vec<&str> = argv.iter().map(String::as_str).collect();
    match verb.as_slice() {
        ["resolver", "snapshot"]
        | ["resolver", "snapshot", "--if-newer-than", _]
        | ["registry", "history", "--here", ..]
        | ["registry", "holders", "--here", "--json"]
        | ["service", "resolve", _, "--raw"] => Ok(Verb { argv, kind: Kind::Answer }),
        ["registry", "push", "-", ..] => Ok(Verb { argv, kind: Kind::AnswerToInput }),
        ["fleet", "admit"] => Ok(Verb { argv, kind: Kind::Admit }),
        ["fleet", "leave"] => Ok(Verb { argv, kind: Kind::Leave }),
        ["resolver", "watch"] => Ok(Verb { argv, kind: Kind::Watch }),
        ["resolver", "relay"] => Ok(Verb { argv, kind: Kind::Relay }),
        _ => Err(refusal(&format!("{:?} is none of its verbs", verb.join(" ")))),
    }
}

/// What a command asks for that comes in by another door with the same table: over sshd, where its line in `authorized_keys`
/// says who it is. `guest`: it shows an invitation. The words of the verb, without a program.
///
/// # Errors
/// A sentence for standard error; the exit status is [`REFUSED`].
pub fn admitted(command: &[u8], guest: bool) -> Result<Vec<String>, String> {
    match parse(command)? {
        verb if guest && verb.kind != Kind::Admit => Err(GUEST.to_owned()),
        verb => Ok(verb.argv),
    }
}

/// What a host hears that has nothing but an invitation.
pub(super) const GUEST: &str = "stado gate: an invitation joins and does nothing else\n";

/// The table, for whoever asks for something else.
pub const TABLE: &str = "`resolver snapshot`, `resolver watch`, `resolver relay`, `registry push -`, `registry history --here`, `registry \
                         holders --here`, `service resolve NAME --raw`, `fleet admit` and `fleet leave`";

/// A sentence for standard error.
pub(super) fn refusal(why: &str) -> String {
    format!("stado gate: {why}; this gate runs {TABLE}, everything else needs an account and sshd\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_closed_and_ignores_the_program() {
        let verb = parse(b"'/opt/my tools/stado' resolver snapshot").unwrap();
        assert_eq!(verb, Verb { argv: vec!["resolver".into(), "snapshot".into()], kind: Kind::Answer });
        let kind = |line: &[u8]| parse(line).unwrap().kind;
        assert_eq!(kind(b"stado resolver snapshot --if-newer-than abc"), Kind::Answer);
        assert_eq!(kind(b"stado registry history --here --json"), Kind::Answer);
        assert_eq!(kind(b"stado registry holders --here --json"), Kind::Answer);
        assert_eq!(kind(b"stado 'service' 'resolve' 'checkout.db' --raw"), Kind::Answer);
        assert_eq!(kind(b"/bin/anything registry push - --if-generation abc --json"), Kind::AnswerToInput);
        assert_eq!(kind(b"stado resolver relay"), Kind::Relay);
        assert_eq!((kind(b"stado fleet admit"), kind(b"stado fleet leave")), (Kind::Admit, Kind::Leave));
        for refused in [
            "sh",
            "stado",
            "stado resolver serve",
            "stado resolver snapshot extra",
            "stado resolver relay extra",
            "stado registry push f",
            "stado registry history",
            "stado registry holders",
            "stado service resolve checkout.db",
            "stado service list",
            "stado fleet invite",
            "stado fleet leave laptop",
        ] {
            let sentence = parse(refused.as_bytes()).unwrap_err();
            assert!(sentence.contains("needs an account and sshd"), "{refused}: {sentence}");
        }
        assert!(parse(b"stado resolver snapshot; id").unwrap_err().contains("for a shell"));
    }
}
