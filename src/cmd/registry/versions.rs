//! Versions as people name them: whole, by their beginning, or not at all.
use crate::cmd::fleet::Fleet;
use crate::exit::Failure;
use stado_fleet::authority::{self, Source};
use stado_fleet::document::Document;
use stado_fleet::name::StoreVersion;
use stado_fleet::store::history::Version;

/// Fewer characters name nothing.
const SHORTEST: usize = 4;

/// The remembered versions beside what is stored now.
pub(super) struct Versions {
    pub(super) source: Source,
    /// What is stored now.
    pub(super) held: Document,
    pub(super) now: StoreVersion,
    known: Vec<Version>,
}

impl Versions {
    /// Reads both; `write`: what is read is about to be written over.
    pub(super) async fn read(fleet: &Fleet, write: bool) -> Result<Self, Failure> {
        let source = fleet.source().await?;
        let read = match write {
            true => authority::fetch_for_write(&source, &fleet.link).await?,
            false => authority::fetch_raw(&source, &fleet.link).await?,
        };
        let absent = || Failure::not_found(format!("no registry document at {}", source.location()));
        let (held, now) = read.ok_or_else(absent)?;
        let known = authority::history(&source, &fleet.link).await?.versions;
        Ok(Self { source, held, now, known })
    }

    /// The version that is meant; the one before what is stored now when none is named.
    pub(super) fn find(&self, asked: Option<&str>) -> Result<StoreVersion, Failure> {
        match asked {
            Some(text) => named(&self.known, &self.now, text),
            None => before(&self.known, &self.now).ok_or_else(|| {
                let sentence = format!("{} remembers no version before {}", self.source.location(), self.now);
                Failure::not_found(sentence)
            }),
        }
    }

    /// What a version says.
    pub(super) async fn content(&self, fleet: &Fleet, version: &StoreVersion) -> Result<Document, Failure> {
        match version == &self.now {
            true => Ok(self.held.clone()),
            false => Ok(authority::content(&self.source, &fleet.link, version).await?),
        }
    }
}

fn before(known: &[Version], now: &StoreVersion) -> Option<StoreVersion> {
    let current = known.iter().find(|version| version.version == *now);
    let replaced = current.and_then(|version| version.replaced.clone());
    replaced.or_else(|| known.iter().map(|v| &v.version).find(|version| *version != now).cloned())
}

fn named(known: &[Version], now: &StoreVersion, text: &str) -> Result<StoreVersion, Failure> {
    let mut all: Vec<&StoreVersion> = known.iter().map(|version| &version.version).collect();
    all.push(now);
    if let Some(whole) = all.iter().find(|version| version.as_str() == text) {
        return Ok((*whole).clone());
    }
    let mut begun: Vec<&StoreVersion> = all.into_iter().filter(|version| version.as_str().starts_with(text)).collect();
    begun.sort();
    begun.dedup();
    match begun.as_slice() {
        [one] if text.len() >= SHORTEST => Ok((*one).clone()),
        [_] => Err(Failure::usage(format!("{text:?} is too short to name a generation; give {SHORTEST} characters"))),
        [] => Err(Failure::not_found(format!(
            "no remembered generation begins with {text:?}; see `stado registry history`"
        ))),
        several => Err(Failure::usage(format!("{text:?} begins {} generations; give more of it", several.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(version: &str, replaced: Option<&str>) -> Version {
        let parse = |text: &str| text.parse().unwrap();
        let (version, replaced) = (parse(version), replaced.map(parse));
        Version { version, replaced, at: String::new(), writer: None, directory_generation: None }
    }

    #[test]
    fn a_version_is_named_by_its_beginning_when_that_is_enough() {
        let known = [version("abcd11", Some("abcd22")), version("abcd22", None), version("ffff00", None)];
        let find = |text: &str| named(&known, &"abcd11".parse().unwrap(), text).map(|v| v.to_string());
        assert_eq!(find("abcd1"), Ok("abcd11".into()));
        assert_eq!(find("ffff00"), Ok("ffff00".into()));
        assert!(find("abcd").unwrap_err().message.contains("begins 2 generations"));
        assert!(find("fff").unwrap_err().message.contains("too short"));
        assert!(find("0000").unwrap_err().message.contains("no remembered generation"));
    }

    #[test]
    fn the_version_before_is_the_one_that_was_replaced() {
        let now: StoreVersion = "c".parse().unwrap();
        let known = [version("c", Some("a")), version("b", Some("a")), version("a", None)];
        assert_eq!(
            before(&known, &now).unwrap().as_str(),
            "a",
            "not the one in between, which never was stored before it"
        );
        assert_eq!(before(&known[1..], &now).unwrap().as_str(), "b");
        assert_eq!(before(&[version("c", None)], &now), None);
    }
}
