//! The three writes of a transaction, on the authority.
use super::mover::Mover;
use crate::cmd::write;
use crate::exit::Failure;
use stado_fleet::authority;
use stado_fleet::document::Document;
use stado_fleet::edit::{self, Edited, check_write};
use stado_fleet::fault::{Class, Faulty};
use stado_fleet::name::StoreVersion;
use stado_fleet::placement::{PlacementError, Profile, active_host};
use std::time::Duration;

/// How often a claim is released before it is left standing (fleet contract §6.11).
const RELEASES: u32 = 3;

impl Mover<'_> {
    /// Claims, on whatever the registry is by then; the profile must still be where it was read.
    pub(super) async fn claim(&mut self) -> Result<(), PlacementError> {
        let claim = self.claim.clone();
        let edit = |held: &Document, _: &str| -> Result<Edited, Failure> {
            let edited = edit::claim(held, &claim)?;
            let profile = named(held, &claim.profile)?;
            match active_host(held, &profile)? {
                host if host == claim.from_host => Ok(edited),
                host => Err(Failure::refused(format!("{} has moved to {host} meanwhile", claim.profile))),
            }
        };
        match write::retried(self.fleet, edit, |edited| edited).await {
            Ok(written) => {
                self.profile = named(&written.done.document, &claim.profile)?;
                self.version = written.committed.map(|c| c.version);
                Ok(())
            }
            Err(failure) => {
                let error = lost(failure);
                self.settle(error, |held, version| {
                    let ours = edit::claims(held).iter().any(|c| c.id == claim.id);
                    ours.then(|| version.clone())
                })
                .await
                .map(|version| self.version = Some(version))
            }
        }
    }

    /// Commits on the generation that the claim made, and no other (§6.11).
    pub(super) async fn commit(&mut self) -> Result<(), PlacementError> {
        let claimed = self.version.clone();
        let claimed = claimed.ok_or_else(|| PlacementError::failed("the generation of the claim is not known"))?;
        let committed = self.committed_on(&claimed).await;
        self.committed = Some(match committed {
            Ok(version) => version,
            Err(error) => {
                let (id, to, name) = (self.claim.id.clone(), self.claim.to_host.clone(), self.claim.profile.clone());
                let made = move |held: &Document, version: &StoreVersion| {
                    let profile = Profile::named(held, &name)?;
                    let there = active_host(held, &profile).is_ok_and(|host| host == to);
                    (there && !edit::claims(held).iter().any(|c| c.id == id)).then(|| version.clone())
                };
                self.settle(error, made).await?
            }
        });
        Ok(())
    }

    async fn committed_on(&self, claimed: &StoreVersion) -> Result<StoreVersion, PlacementError> {
        let source = self.fleet.source().await.map_err(lost)?;
        let read = authority::fetch_for_write(&source, &self.fleet.link).await.map_err(|e| PlacementError::of(&e))?;
        let absent = || PlacementError::failed(format!("no registry document at {}", source.location()));
        let (held, _) = read.ok_or_else(absent)?;
        let now = jiff::Timestamp::now().to_string();
        let edited = edit::commit_move(&held, &self.claim.id, &now).map_err(|e| PlacementError::of(&e))?;
        check_write(Some(&held), &edited.document).map_err(|e| PlacementError::of(&e))?;
        let committed = authority::commit_edit(&source, &self.fleet.link, claimed, &edited.document).await;
        committed.map(|c| c.version).map_err(|e| PlacementError::of(&e))
    }

    /// Releases the claim, three times tried. That it is gone already is fine, unless it went with a commit.
    pub(super) async fn release(&mut self) -> Result<(), PlacementError> {
        let (id, to) = (self.claim.id.clone(), self.claim.to_host.clone());
        let mut tries = 1;
        loop {
            let released = write::retried(self.fleet, |held, _| edit::release(held, &id), |edited| edited).await;
            match released {
                Ok(written)
                    if written.committed.is_none() && self.now_on(&written.done.document) == Some(to.clone()) =>
                {
                    return Err(PlacementError::failed(format!(
                        "the registry says that {} was moved to {to} after all",
                        self.claim.profile
                    )));
                }
                Ok(_) => return Ok(()),
                Err(_) if tries < RELEASES => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(failure) => return Err(lost(failure)),
            }
        }
    }

    fn now_on(&self, document: &Document) -> Option<String> {
        active_host(document, &Profile::named(document, &self.claim.profile)?).ok()
    }

    /// Where the registry has the profile now.
    pub(super) async fn placed(&self) -> Result<String, PlacementError> {
        let (document, _) = self.read().await?;
        active_host(&document, &named(&document, &self.claim.profile)?)
    }

    async fn read(&self) -> Result<(Document, StoreVersion), PlacementError> {
        let source = self.fleet.source().await.map_err(lost)?;
        let read = authority::fetch_raw(&source, &self.fleet.link).await.map_err(|e| PlacementError::of(&e))?;
        read.ok_or_else(|| PlacementError::failed(format!("no registry document at {}", source.location())))
    }

    /// A write whose end is not known is settled by what is there now, which `made` judges.
    async fn settle(
        &self,
        error: PlacementError,
        made: impl Fn(&Document, &StoreVersion) -> Option<StoreVersion>,
    ) -> Result<StoreVersion, PlacementError> {
        if error.class() != Class::Unknown {
            return Err(error);
        }
        match self.read().await {
            Ok((document, version)) => made(&document, &version).ok_or(error),
            Err(second) => {
                let sentence = format!("{error}; and the registry could not be read to see: {second}");
                Err(error.saying(sentence).uncertain())
            }
        }
    }
}

fn named(document: &Document, profile: &str) -> Result<Profile, PlacementError> {
    let gone = || PlacementError::config(format!("placement profile \"{profile}\" is not declared any more"));
    Profile::named(document, profile).ok_or_else(gone)
}

/// A verb's failure as a step's.
pub(super) fn lost(failure: Failure) -> PlacementError {
    let Failure { message, blame, class, .. } = failure;
    PlacementError { sentence: message, blame, class, uncertain: false }
}
