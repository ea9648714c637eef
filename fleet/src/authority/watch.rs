//! The held watch: an authority tells its readers of each stored version as it comes, over a channel that stays open
//! (`ssh-relay.md` §2). It is a hint to read now; what is read, and every `refresh_seconds`, is read as ever.
//!
//! ```text
//! authority:  stado-watch 1 every=10\n
//!             {"store_version":"945077b5e1c74a0c"}\n     now, and after each change
//!             {}\n                                       every 10 seconds in which nothing changed
//! ```
//! The reader says nothing; it ends the watch by closing it. Keys that a reader does not know are skipped.
use crate::name::StoreVersion;
use crate::store::RegistryStore;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

const WORD: &str = "stado-watch ";
/// The newest version of this exchange, and the only one yet.
const VERSION: u32 = 1;
/// Between two signs of life.
const EVERY: Duration = Duration::from_secs(10);
/// A burst of changes is told once.
const COALESCE: Duration = Duration::from_millis(30);
/// After a store that did not answer.
const PAUSE: Duration = Duration::from_secs(5);
/// What a login script may say before.
const CHATTER: usize = 64 * 1024;
const LONGEST_LINE: u64 = 4096;
/// For the first line.
const PREAMBLE: Duration = Duration::from_secs(10);
/// Signs of life that may be missing.
const MISSING: u32 = 3;

/// Tells the versions of `store` until the reader is gone.
///
/// # Errors
/// The reader cannot be written to.
pub async fn tell<S>(store: &dyn RegistryStore, io: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (mut input, mut output) = tokio::io::split(io);
    say(&mut output, &format!("{WORD}{VERSION} every={}\n", EVERY.as_secs())).await?;
    let gone = async { while !matches!(input.read(&mut [0; 256]).await, Ok(0) | Err(_)) {} };
    tokio::select! {
        told = versions(store, &mut output) => told,
        () = gone => Ok(()),
    }
}

async fn versions(store: &dyn RegistryStore, output: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut held: Option<StoreVersion> = None;
    loop {
        let change = async {
            match store.watch(held.as_ref()).await {
                Ok(version) => version,
                // An outage of the store is for those who read it to report.
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    held.clone()
                }
            }
        };
        let line = match timeout(EVERY, change).await {
            Ok(version) if version == held => continue,
            Ok(version) => {
                held = version;
                let version = held.as_ref().map(ToString::to_string);
                serde_json::json!({ "store_version": version }).to_string() + "\n"
            }
            Err(_) => "{}\n".to_owned(),
        };
        say(output, &line).await?;
        tokio::time::sleep(COALESCE).await;
    }
}

async fn say(output: &mut (impl AsyncWrite + Unpin), line: &str) -> io::Result<()> {
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

/// Why a watch is not held (any more).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnded {
    /// The authority does not know the verb, or another version of it: reading every `refresh_seconds` is all there is.
    #[error("the authority tells of no changes: {0}")]
    Unknown(String),
    /// It was held, and is to be held again.
    #[error("{0}")]
    Lost(String),
}

/// The reading side of a watch.
#[derive(Debug)]
pub struct Watch<S> {
    lines: BufReader<S>,
    silence: Duration,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Watch<S> {
    /// Waits for the authority's first line on a command that was started.
    pub async fn begin(io: S) -> Result<Self, WatchEnded> {
        let mut lines = BufReader::new(io);
        let begun = timeout(PREAMBLE, first_line(&mut lines)).await;
        let every = begun.unwrap_or_else(|_| Err(format!("nothing came within {}s", PREAMBLE.as_secs())));
        let every = every.map_err(WatchEnded::Unknown)?;
        Ok(Self { lines, silence: every * MISSING })
    }

    /// The next version that is told; `None` when there is no document any more. This side's own clock judges silence.
    pub async fn next(&mut self) -> Result<Option<StoreVersion>, WatchEnded> {
        loop {
            let line = match timeout(self.silence, line(&mut self.lines)).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None)) => return Err(WatchEnded::Lost("the authority ended the watch".into())),
                Ok(Err(error)) => return Err(WatchEnded::Lost(error.to_string())),
                Err(_) => {
                    let why = format!("the authority said nothing for {}s", self.silence.as_secs());
                    return Err(WatchEnded::Lost(why));
                }
            };
            let Ok(told) = serde_json::from_str::<serde_json::Value>(&line) else {
                return Err(WatchEnded::Lost("what came is no line of a watch".into()));
            };
            if let Some(version) = told.get("store_version") {
                return Ok(version.as_str().and_then(|text| text.parse().ok()));
            }
        }
    }
}

/// Skips what a login script says; how often a sign of life comes.
async fn first_line(lines: &mut BufReader<impl AsyncRead + Unpin>) -> Result<Duration, String> {
    let mut chatter = String::new();
    while chatter.len() < CHATTER {
        let Some(line) = line(lines).await.map_err(|error| error.to_string())? else {
            return Err(format!("the command ended{}", quoted(&chatter)));
        };
        let Some(words) = line.strip_prefix(WORD) else {
            chatter.push_str(&line);
            chatter.push('\n');
            continue;
        };
        let mut words = words.split_whitespace();
        let version = words.next().and_then(|word| word.parse::<u32>().ok()).filter(|version| *version >= 1);
        if version.is_none() {
            return Err(format!("it speaks {line:?}, which this build does not know"));
        }
        let every = words.find_map(|word| word.strip_prefix("every=")?.parse::<u64>().ok());
        return Ok(every.map_or(EVERY, Duration::from_secs).max(Duration::from_millis(1)));
    }
    Err(format!("the login there says too much{}", quoted(&chatter)))
}

fn quoted(said: &str) -> String {
    let said: String = said.trim().chars().take(80).collect();
    if said.is_empty() { String::new() } else { format!(": it said {said:?}") }
}

async fn line(lines: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let n = (&mut *lines).take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
    Ok((n > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::local::LocalStore;
    use crate::store::{Expected, Swap};
    use std::sync::Arc;
    use tokio::io::duplex;

    const PATIENCE: Duration = Duration::from_secs(20);

    async fn write(store: &LocalStore, expected: Expected, text: &str) -> StoreVersion {
        match store.swap(expected, text.into()).await.unwrap() {
            Swap::Applied(version) => version,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn each_stored_version_is_told_at_once_and_a_reader_that_leaves_ends_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path()).unwrap();
        let one = write(&store, Expected::Absent, r#"{"targets":[]}"#).await;
        let (here, there) = duplex(4096);
        let authority = store.clone();
        let telling = tokio::spawn(async move { tell(&authority, there).await });
        let mut watch = Watch::begin(here).await.unwrap();
        assert_eq!(watch.next().await.unwrap().as_ref(), Some(&one));
        let two = write(&store, Expected::Version(one), r#"{"targets":[],"n":2}"#).await;
        let next = timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
        assert_eq!(next, Some(two));
        drop(watch);
        timeout(PATIENCE, telling).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_burst_of_changes_is_told_in_few_lines_and_its_last_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path()).unwrap();
        let mut version = write(&store, Expected::Absent, r#"{"n":0}"#).await;
        let (here, there) = duplex(4096);
        let authority: Arc<LocalStore> = Arc::new(store.clone());
        tokio::spawn(async move { tell(authority.as_ref(), there).await });
        let mut watch = Watch::begin(here).await.unwrap();
        watch.next().await.unwrap();
        for n in 1..=40 {
            version = write(&store, Expected::Version(version), &format!(r#"{{"n":{n}}}"#)).await;
        }
        let mut told = 0;
        while timeout(PATIENCE, watch.next()).await.unwrap().unwrap().as_ref() != Some(&version) {
            told += 1;
        }
        assert!(told <= 40, "{told}");
    }

    #[tokio::test]
    async fn an_authority_without_the_verb_is_told_from_one_that_was_lost() {
        let begin = async |said: &'static str| {
            let (here, mut there) = duplex(200_000);
            tokio::spawn(async move {
                there.write_all(said.as_bytes()).await.unwrap();
            });
            Watch::begin(here).await
        };
        for said in ["", "error: unrecognized subcommand\n", "stado-watch zero\n", "stado-watch 0\n"] {
            assert!(matches!(begin(said).await.unwrap_err(), WatchEnded::Unknown(_)), "{said:?}");
        }
        let mut watch =
            begin("motd\nstado-watch 2 every=10 new=word\n{\"more\":1}\n{\"store_version\":null}\n").await.unwrap();
        assert_eq!(watch.next().await.unwrap(), None);
        assert!(matches!(watch.next().await.unwrap_err(), WatchEnded::Lost(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_judged_by_the_readers_own_clock() {
        let (here, mut there) = duplex(4096);
        there.write_all(b"stado-watch 1 every=10\n{}\n").await.unwrap();
        let mut watch = Watch::begin(here).await.unwrap();
        let began = tokio::time::Instant::now();
        let ended = watch.next().await.unwrap_err();
        assert_eq!(ended, WatchEnded::Lost("the authority said nothing for 30s".into()));
        assert!(began.elapsed() >= Duration::from_secs(30));
    }
}
