//! The book on disk: one writer at a time, whole files, a corrupt one set aside and told.
use super::Book;
use crate::authority::RegistryError;
use crate::disk::{self, Lock};
use crate::fault::Class;
use std::path::{Path, PathBuf};

const LARGEST: u64 = 8 << 20;

/// `~/.stado/gate/invitations.json`.
#[derive(Debug, Clone)]
pub struct Shelf {
    file: PathBuf,
}

impl Shelf {
    /// In `~/.stado`.
    pub fn new(stado_home: &Path) -> Self {
        Self { file: stado_home.join("gate/invitations.json") }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The book as it is; empty where there is none.
    ///
    /// # Errors
    /// A file that cannot be read, or is no book (it is left where it is).
    pub fn read(&self) -> Result<Book, RegistryError> {
        let bytes = disk::read(&self.file, LARGEST).map_err(|e| here(&e))?;
        let Some(bytes) = bytes else { return Ok(Book::default()) };
        serde_json::from_slice(&bytes).map_err(|e| {
            let sentence = format!("the invitations in {} cannot be read: {e}", self.file.display());
            RegistryError::new(Class::Config, sentence)
        })
    }

    /// Changes the book; nobody else does meanwhile. A corrupt one is set aside: its invitations let nobody in any more.
    ///
    /// # Errors
    /// As [`Shelf::read`], and a file that cannot be written.
    pub fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> Result<T, RegistryError> {
        if let Some(directory) = self.file.parent() {
            disk::private_dir(directory).map_err(|e| here(&e))?;
        }
        let _lock = Lock::exclusive(&self.file.with_extension("lock")).map_err(|e| here(&e))?;
        disk::sweep_locked(&self.file);
        let (before, corrupt) = match self.read() {
            Ok(book) => (book, false),
            Err(error) => {
                let kept = disk::set_aside(&self.file).map_err(|e| here(&e))?;
                tracing::warn!(target: "stado::fleet", "{error}; it is kept as {}, and its invitations let nobody in", kept.display());
                (Book::default(), true)
            }
        };
        let mut book = before.clone();
        let done = change(&mut book);
        if corrupt || book != before {
            // A struct of texts and times: it always serialises.
            let mut bytes = serde_json::to_vec_pretty(&book).unwrap_or_default();
            bytes.push(b'\n');
            disk::replace(&self.file, &bytes).map_err(|e| here(&e))?;
        }
        Ok(done)
    }
}

fn here(error: &disk::DiskError) -> RegistryError {
    RegistryError::new(Class::Config, error.to_string())
}
