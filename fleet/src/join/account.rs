//! Hosts of the fleet that come in over this machine's sshd: a line each in the account's `authorized_keys`, with a command
//! that is the gate's closed table and no shell. Lines of a person stay as they are.
use super::{Book, Door, keep, public_key, read_or_make};
use crate::disk::DiskError;
use crate::document::Registry;
use crate::link::{Timing, offered_key};
use crate::name::{SshDestination, TargetName};
use std::path::{Path, PathBuf};

/// An `authorized_keys` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    file: PathBuf,
    /// Absolute path of `stado` here.
    command: String,
}

impl Account {
    /// The file, and the program that its lines run.
    pub fn new(file: &Path, command: &str) -> Self {
        Self { file: file.to_owned(), command: command.to_owned() }
    }

    /// Makes the lines of ours those of the registry's other hosts and of the invitations that this host remembers: also of
    /// those that are over, so that whoever shows one is told so. Whether anything was written.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn keep(&self, registry: &Registry, me: &TargetName, book: &Book) -> Result<bool, DiskError> {
        let others = registry.targets.values().filter(|target| target.name != *me);
        let members = others.flat_map(|t| t.resolver_keys.iter().map(move |key| self.line(key, t.name.as_str())));
        let guests = book.invitations.iter().map(|record| self.line(&record.key, &format!("invitation:{}", record.id)));
        keep(&self.file, &members.chain(guests).collect::<Vec<_>>(), true)
    }

    fn line(&self, key: &str, whose: &str) -> String {
        // In single quotes for the shell that sshd starts, in double quotes for sshd.
        let program = self.command.replace('\'', r"'\''").replace('\\', r"\\").replace('"', "\\\"");
        format!("restrict,command=\"'{program}' fleet door --key '{key}'\" {key} stado:{whose}")
    }
}

impl Door {
    /// The keys by which this host is known behind the door: the gate's own, or those that sshd offers at `address`.
    ///
    /// # Errors
    /// A sentence.
    pub async fn host_keys(
        &self,
        stado_home: &Path,
        address: &SshDestination,
        timing: &Timing,
    ) -> Result<Vec<String>, String> {
        match self {
            Self::Gate(_) => {
                let file = stado_home.join("gate/host_ed25519");
                let key = read_or_make(&file).map_err(|why| format!("the gate's host key {} {why}", file.display()))?;
                Ok(vec![public_key(&key)])
            }
            Self::Sshd(_) => {
                let key = offered_key(address, timing).await;
                key.map(|key| vec![key]).map_err(|e| format!("the sshd of this host does not answer at {address}: {e}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{Member, add_member, found};
    use crate::validate::validate;

    const A: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const B: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZK";

    #[test]
    fn members_have_a_line_each_without_a_shell_and_a_persons_lines_stay() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ssh/authorized_keys");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "ssh-rsa AAAA me@desk\n# a comment\n").unwrap();
        let member = |name: &str, key: &str| Member {
            name: name.into(),
            release_platform: "linux-amd64".into(),
            ssh: Some(format!("me@{name}.local")),
            command: "/usr/bin/stado".into(),
            host_keys: vec![],
            key: key.into(),
        };
        let document = add_member(&found(&member("tower", A)), &member("laptop", B), false).unwrap().document;
        let registry = &validate(document).unwrap().registry;
        let account = Account::new(&file, "/opt/my tools/stado");
        let me = "tower".parse().unwrap();
        assert!(account.keep(registry, &me, &Book::default()).unwrap());
        let text = std::fs::read_to_string(&file).unwrap();
        let line = format!("restrict,command=\"'/opt/my tools/stado' fleet door --key '{B}'\" {B} stado:laptop");
        assert_eq!(text, format!("ssh-rsa AAAA me@desk\n# a comment\n{line}\n"));
        assert!(!account.keep(registry, &me, &Book::default()).unwrap());
        account.keep(registry, &"laptop".parse().unwrap(), &Book::default()).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("stado:tower") && !text.contains("stado:tower"));
    }
}
