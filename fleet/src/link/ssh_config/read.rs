//! Reads the files: which lines hold for a host. The first value of a keyword wins, whichever block it is in.
use super::line;
use super::tokens::expanded;
use crate::link::known_hosts::glob;
use std::path::{Path, PathBuf};

/// Files within files.
const DEPTH: usize = 16;
/// Largest file that is read.
const LARGEST: u64 = 1 << 20;

/// For whom the files are read.
pub(super) struct Asked<'a> {
    /// The host as the registry names it.
    pub(super) original: &'a str,
    /// Login name that the registry says, else this account's.
    pub(super) user: &'a str,
    /// Whether the registry says it.
    pub(super) user_is_given: bool,
    pub(super) local_user: &'a str,
    pub(super) home: &'a Path,
}

/// A line that holds.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// `<file>:<line>`.
    pub(super) place: String,
    /// As written.
    pub(super) keyword: String,
    pub(super) words: Vec<String>,
}

impl Setting {
    /// A sentence about this line.
    pub(super) fn says(&self, why: &str) -> String {
        format!("{}: `{} {}`: {why}", self.place, self.keyword, self.words.join(" "))
    }

    /// Its only word.
    pub(super) fn word(&self) -> Result<&str, String> {
        match self.words.as_slice() {
            [word] => Ok(word),
            _ => Err(self.says("it takes one value")),
        }
    }
}

/// Every line that holds, in the order in which ssh would meet them; of keywords that are no lists only the first.
#[derive(Debug, Default)]
pub(super) struct Found(Vec<Setting>);

impl Found {
    pub(super) fn all(&self) -> &[Setting] {
        &self.0
    }

    /// The value of a keyword (in lower case).
    pub(super) fn first(&self, keyword: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.keyword.eq_ignore_ascii_case(keyword))
    }

    pub(super) fn each(&self, keyword: &str) -> impl Iterator<Item = &Setting> {
        self.0.iter().filter(move |setting| setting.keyword.eq_ignore_ascii_case(keyword))
    }

    /// Which of two keywords came first.
    pub(super) fn earlier(&self, one: &str, other: &str) -> Option<&Setting> {
        let is = |setting: &&Setting| [one, other].iter().any(|k| setting.keyword.eq_ignore_ascii_case(k));
        self.0.iter().find(is)
    }

    fn add(&mut self, setting: Setting) {
        if setting.keyword.eq_ignore_ascii_case("identityfile") || self.first(&setting.keyword).is_none() {
            self.0.push(setting);
        }
    }
}

/// Reads `file` and what it includes. A missing file says nothing.
pub(super) fn find(file: &Path, asked: &Asked<'_>) -> Result<Found, String> {
    let mut walk = Walk { asked, found: Found::default() };
    walk.file(file, 0)?;
    Ok(walk.found)
}

struct Walk<'a> {
    asked: &'a Asked<'a>,
    found: Found,
}

impl Walk<'_> {
    /// A file is only read where its lines may hold.
    fn file(&mut self, file: &Path, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err(format!("{}: files that include files, {DEPTH} deep", file.display()));
        }
        let Some(text) = text(file)? else { return Ok(()) };
        let mut holds = true;
        for (index, text) in text.lines().enumerate() {
            let Some(line) = line::split(text) else { continue };
            let place = format!("{}:{}", file.display(), index + 1);
            let words = line.words.map_err(|why| format!("{place}: `{}` {why}", line.keyword));
            match line.keyword.to_ascii_lowercase().as_str() {
                "host" => holds = names(&words?, &self.asked.original.to_ascii_lowercase()),
                "match" => holds = self.matches(&words?, &place)?,
                _ if !holds => {}
                "include" => {
                    for pattern in words? {
                        let files = included(&pattern, self.asked.home).map_err(|why| format!("{place}: {why}"))?;
                        files.iter().try_for_each(|file| self.file(file, depth + 1))?;
                    }
                }
                _ => self.found.add(Setting { place, keyword: line.keyword, words: words? }),
            }
        }
        Ok(())
    }

    /// Whether the criteria of a `Match` hold. Those that would run a program, or that this build cannot judge, are refused
    /// where the ones before them hold.
    fn matches(&self, words: &[String], place: &str) -> Result<bool, String> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (negated, name) = word.strip_prefix('!').map_or((false, word.as_str()), |name| (true, name));
            let mut listed = |value: &str| {
                let list = words.next().ok_or_else(|| format!("{place}: `Match {name}` lacks its patterns"))?;
                let patterns: Vec<String> = list.split(',').map(str::to_owned).collect();
                Ok::<bool, String>(names(&patterns, value))
            };
            let holds = match name.to_ascii_lowercase().as_str() {
                "all" => true,
                // Names are never rewritten here.
                "canonical" => false,
                "host" => listed(&self.host().to_ascii_lowercase())?,
                "originalhost" => listed(&self.asked.original.to_ascii_lowercase())?,
                "user" => listed(self.user())?,
                "localuser" => listed(self.asked.local_user)?,
                _ => return Err(format!("{place}: `Match {name}`: Stado's own SSH does not honour that")),
            };
            if holds == negated {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The host as far as it is known by now.
    fn host(&self) -> String {
        let named = self.found.first("hostname").and_then(|setting| setting.words.first());
        named.map_or_else(|| self.asked.original.to_owned(), |name| name.replace("%h", self.asked.original))
    }

    fn user(&self) -> &str {
        let configured = self.found.first("user").and_then(|setting| setting.words.first());
        configured.filter(|_| !self.asked.user_is_given).map_or(self.asked.user, String::as_str)
    }
}

/// Whether some pattern matches and no negated one does.
pub(super) fn names(patterns: &[String], name: &str) -> bool {
    let matches = |pattern: &str| glob(&pattern.to_ascii_lowercase(), &name.to_ascii_lowercase());
    let refused = |pattern: &String| pattern.strip_prefix('!').is_some_and(matches);
    patterns.iter().any(|pattern| matches(pattern)) && !patterns.iter().any(refused)
}

fn text(file: &Path) -> Result<Option<String>, String> {
    let fail = |error: std::io::Error| format!("{} cannot be read: {error}", file.display());
    let metadata = match std::fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    if !metadata.is_file() {
        return Ok(None);
    }
    if metadata.len() > LARGEST {
        return Err(format!("{} is larger than {LARGEST} bytes", file.display()));
    }
    writable_by_others(&metadata, file)?;
    let bytes = std::fs::read(file).map_err(fail)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// As ssh: who may write it could send every connection elsewhere.
#[cfg(unix)]
fn writable_by_others(metadata: &std::fs::Metadata, file: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o022 == 0 {
        return Ok(());
    }
    Err(format!("{file} can be written by others (mode {mode:04o}); `chmod go-w {file}`", file = file.display()))
}
#[cfg(not(unix))]
fn writable_by_others(_: &std::fs::Metadata, _: &Path) -> Result<(), String> {
    Ok(())
}

/// The files that `Include` names: relative ones are in `~/.ssh`; the last part may have wildcards.
fn included(pattern: &str, home: &Path) -> Result<Vec<PathBuf>, String> {
    let beside = home.join(".ssh").join(pattern);
    let path = if pattern.starts_with(['/', '~']) { expanded(pattern, home)? } else { beside };
    let wild = |text: &str| text.contains(['*', '?', '[']);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let directory = path.parent().map(Path::to_owned).unwrap_or_default();
    if wild(&directory.to_string_lossy()) || name.contains('[') {
        return Err(format!("`Include {pattern}`: only * and ? in the last part of a path are honoured"));
    }
    if !wild(&name) {
        return Ok(vec![path]);
    }
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("`Include {pattern}`: {} cannot be read: {error}", directory.display())),
    };
    let found = entries.flatten().filter(|entry| {
        let entry = entry.file_name().to_string_lossy().into_owned();
        glob(&name, &entry) && (!entry.starts_with('.') || name.starts_with('.'))
    });
    let mut files: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}
