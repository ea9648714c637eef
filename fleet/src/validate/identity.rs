//! One identity belongs to one target: names, hostnames and the hosts of connection paths (§1.2).
use super::at::{At, Findings};
use super::read::Object;
use super::targets::Described;
use crate::document::{destination_identity, names_users};
use crate::name::TargetName;
use std::collections::HashMap;

/// Where an identity was declared first.
#[derive(Clone, Copy)]
enum Place {
    Name,
    Hostname(usize),
    Ssh,
    Fallback(usize),
}

/// The identities of the targets read so far, each with the target that declared it.
#[derive(Default)]
pub(super) struct Identities(HashMap<String, (usize, Place)>);

impl Identities {
    /// Takes the identities of one target. The same one twice within a target is fine: its name often is its hostname.
    pub(super) fn declare(
        &mut self,
        index: usize,
        name: Option<&TargetName>,
        target: &Described,
        raw: &Object,
        out: &mut Findings,
    ) {
        let by_user = names_users(target.hostnames.iter().map(String::as_str));
        if let Some(name) = name {
            self.take(index, Place::Name, name.as_str().to_owned(), out);
        }
        // The usable ones are there in the order in which they are written.
        let mut usable = target.hostnames.iter().peekable();
        for (j, value) in raw.get("hostnames").and_then(|v| v.as_array()).into_iter().flatten().enumerate() {
            if let Some(hostname) = usable.next_if(|usable| value.as_str() == Some(usable)) {
                self.take(index, Place::Hostname(j), hostname.clone(), out);
            }
        }
        for path in &target.paths {
            let place = fallback_index(raw, &path.name).map_or(Place::Ssh, Place::Fallback);
            self.take(index, place, destination_identity(&path.destination, by_user), out);
        }
    }

    fn take(&mut self, index: usize, place: Place, identity: String, out: &mut Findings) {
        match self.0.get(&identity) {
            None => {
                self.0.insert(identity, (index, place));
            }
            Some((owner, _)) if *owner == index => {}
            Some((owner, other)) => {
                let other = location(*owner, *other);
                let sentence = format!("host identity '{identity}' is already declared by {other}");
                out.add_at(location(index, place), sentence);
            }
        }
    }
}

fn fallback_index(raw: &Object, name: &str) -> Option<usize> {
    let fallbacks = raw.get("ssh_fallbacks")?.as_array()?;
    fallbacks.iter().position(|f| f.get("name").and_then(|n| n.as_str()) == Some(name))
}

fn location(index: usize, place: Place) -> String {
    let targets = At::ROOT.key("targets");
    let at = targets.index(index);
    match place {
        Place::Name => at.key("name").to_string(),
        Place::Ssh => at.key("ssh").to_string(),
        Place::Hostname(j) => at.key("hostnames").index(j).to_string(),
        Place::Fallback(j) => at.key("ssh_fallbacks").index(j).key("destination").to_string(),
    }
}
