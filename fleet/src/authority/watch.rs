//! The held watch: an authority tells its readers of each stored version as it comes, over a channel that stays open
//! (`ssh-relay.md` §2). It is a hint to read now; what is read, and every `refresh_seconds`, is read as ever.
//!
//! ```text
//! authority:  stado-watch 2 every=10\n
//! reader:     stado-watch 2 changes\n                            unless the authority's version is 1, or its own is
//!             stado-holds {"target":"desk","generation":7,…}\n   what it holds and refuses: first, when that changes, and each minute
//! authority:  {"store_version":"945077b5e1c74a0c"}\n             now, and after each change
//!             {"store_version":…,"from":…,"digest":…,"edit":…}\n  the same with the change itself, to who asked for it
//!             {}\n                                               every 10 seconds in which nothing changed
//! ```
//! The older version of the two holds: in version 1 the reader says nothing, and an authority of version 1 hears nothing. The
//! reader ends the watch by closing it. Keys, and lines of a reader, that are not known are skipped: an authority that keeps no list
//! of who holds what hears nothing of it.
use super::bulletin::{Bulletin, News};
use super::change::Change;
use super::holding::{Heard, Holders, Holding};
use crate::disk::DiskError;
use crate::name::StoreVersion;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::time::timeout;

const WORD: &str = "stado-watch ";
/// The newest version of this exchange. Version 1 told no changes.
const VERSION: u32 = 2;
/// What a reader adds who wants changes told.
const CHANGES: &str = "changes";
/// Begins a line in which a reader says what it holds.
const HOLDS: &str = "stado-holds ";
/// Between two signs of life.
const EVERY: Duration = Duration::from_secs(10);
/// What a login script may say before.
const CHATTER: usize = 64 * 1024;
/// A version needs few bytes; a change is left out beyond [`super::bulletin::LARGEST`].
const LONGEST_LINE: u64 = 1 << 20;
/// For the first line.
const PREAMBLE: Duration = Duration::from_secs(10);
/// Signs of life that may be missing.
const MISSING: u32 = 3;

/// Tells what `bulletin` tells until the reader is gone, and keeps in `holders` what the reader says that it holds.
///
/// # Errors
/// The reader cannot be written to.
pub async fn tell<S>(bulletin: &Bulletin, holders: &Holders, io: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (input, mut output) = tokio::io::split(io);
    say(&mut output, &format!("{WORD}{VERSION} every={}\n", EVERY.as_secs())).await?;
    let wants_changes = AtomicBool::new(false);
    let mut reader = Reader { holders, last: None };
    tokio::select! {
        told = versions(bulletin, &mut output, &wants_changes) => told,
        () = heard(input, &wants_changes, &mut reader) => Ok(()),
    }
}

/// Who reads, as far as it says so. However its watch ends, also with its session, it is known to have ended.
struct Reader<'h> {
    holders: &'h Holders,
    /// What it said last.
    last: Option<Heard>,
}

impl Reader<'_> {
    /// What cannot be kept is nobody's failure: its host says it again, and can be asked.
    async fn keep(&mut self, said: &str) {
        let Ok(holding) = serde_json::from_str::<Holding>(said) else { return };
        let holders = self.holders.clone();
        let kept = tokio::task::spawn_blocking(move || holders.record(&holding, jiff::Timestamp::now())).await;
        match kept {
            Ok(Ok(Some(heard))) => self.last = Some(heard),
            Ok(Err(error)) => unkept(&error),
            Ok(Ok(None)) | Err(_) => {}
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(last) = &self.last
            && let Err(error) = self.holders.gone(last, jiff::Timestamp::now())
        {
            unkept(&error);
        }
    }
}

fn unkept(error: &DiskError) {
    tracing::debug!(target: "stado::fleet", "what a host holds was not kept: {error}");
}

/// Until the reader is gone.
async fn heard(input: impl AsyncRead + Unpin, wants_changes: &AtomicBool, reader: &mut Reader<'_>) {
    let mut lines = BufReader::with_capacity(128, input);
    while let Ok(Some(said)) = line(&mut lines).await {
        if let Some(holding) = said.strip_prefix(HOLDS) {
            reader.keep(holding).await;
            continue;
        }
        let mut words = said.strip_prefix(WORD).unwrap_or_default().split_whitespace();
        let version = words.next().and_then(|word| word.parse::<u32>().ok());
        if version.is_some_and(|version| version >= VERSION) && words.any(|word| word == CHANGES) {
            wants_changes.store(true, Ordering::Relaxed);
        }
    }
}

async fn versions(
    bulletin: &Bulletin,
    output: &mut (impl AsyncWrite + Unpin),
    wants_changes: &AtomicBool,
) -> io::Result<()> {
    let mut news = bulletin.subscribe();
    let mut told: Option<Arc<News>> = None;
    loop {
        let is_new =
            |latest: &Option<Arc<News>>| latest.as_ref().map(|n| &n.version) != told.as_ref().map(|n| &n.version);
        let latest = match timeout(EVERY, news.wait_for(is_new)).await {
            Ok(Ok(latest)) => latest.clone(),
            // The store's watcher ended, which it does not while somebody listens.
            Ok(Err(_)) => return Err(io::Error::other("the watch of the store ended")),
            Err(_) => None,
        };
        let Some(latest) = latest else {
            say(output, "{}\n").await?;
            continue;
        };
        let from = told.as_ref().and_then(|news| news.version.as_ref());
        let line = latest.line(from.filter(|_| wants_changes.load(Ordering::Relaxed)));
        told = Some(latest.clone());
        say(output, line).await?;
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

/// What an authority told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The version of its store; `None` when there is no document any more.
    pub version: Option<StoreVersion>,
    /// How it came of the one before, when the authority says that too.
    pub change: Option<Change>,
}

/// The reading side of a watch.
#[derive(Debug)]
pub struct Watch<S> {
    lines: BufReader<ReadHalf<S>>,
    output: Option<WriteHalf<S>>,
    silence: Duration,
}

/// Where a reader says what it holds.
#[derive(Debug)]
pub struct Teller<S>(WriteHalf<S>);

impl<S: AsyncWrite> Teller<S> {
    /// Says it.
    ///
    /// # Errors
    /// The watch is lost.
    pub async fn say(&mut self, holding: &Holding) -> io::Result<()> {
        let holding = serde_json::to_string(&holding.told())?;
        say(&mut self.0, &format!("{HOLDS}{holding}\n")).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Watch<S> {
    /// Waits for the authority's first line on a command that was started, and asks for changes where it tells them.
    pub async fn begin(io: S) -> Result<Self, WatchEnded> {
        let (input, mut output) = tokio::io::split(io);
        let mut lines = BufReader::new(input);
        let begun = timeout(PREAMBLE, first_line(&mut lines)).await;
        let begun = begun.unwrap_or_else(|_| Err(format!("nothing came within {}s", PREAMBLE.as_secs())));
        let (version, every) = begun.map_err(WatchEnded::Unknown)?;
        if version >= VERSION {
            let asked = say(&mut output, &format!("{WORD}{VERSION} {CHANGES}\n")).await;
            asked.map_err(|error| WatchEnded::Lost(error.to_string()))?;
        }
        // Nothing is said to an authority of version 1.
        Ok(Self { lines, output: Some(output).filter(|_| version >= VERSION), silence: every * MISSING })
    }

    /// Where this host can say what it holds; once, and only where the authority hears it.
    pub fn teller(&mut self) -> Option<Teller<S>> {
        self.output.take().map(Teller)
    }

    /// What is told next. This side's own clock judges silence.
    pub async fn next(&mut self) -> Result<Told, WatchEnded> {
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
                let version = version.as_str().and_then(|text| text.parse().ok());
                return Ok(Told { version, change: Change::read(&told) });
            }
        }
    }
}

/// Skips what a login script says; the version that is spoken, and how often a sign of life comes.
async fn first_line(lines: &mut BufReader<impl AsyncRead + Unpin>) -> Result<(u32, Duration), String> {
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
        let Some(version) = version else {
            return Err(format!("it speaks {line:?}, which this build does not know"));
        };
        let every = words.find_map(|word| word.strip_prefix("every=")?.parse::<u64>().ok());
        return Ok((version, every.map_or(EVERY, Duration::from_secs).max(Duration::from_millis(1))));
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
    use crate::store::{Expected, RegistryStore, Swap};
    use std::sync::Arc;
    use tokio::io::duplex;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn nowhere() -> Holders {
        Holders::new(std::path::Path::new("/dev/null/nowhere"))
    }

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
        let bulletin = Bulletin::new(Arc::new(store.clone()));
        let telling = tokio::spawn(async move { tell(&bulletin, &nowhere(), there).await });
        let mut watch = Watch::begin(here).await.unwrap();
        assert_eq!(watch.next().await.unwrap().version.as_ref(), Some(&one));
        let two = write(&store, Expected::Version(one), r#"{"targets":[],"n":2}"#).await;
        let next = timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
        assert_eq!(next.version, Some(two));
        drop(watch);
        timeout(PATIENCE, telling).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_burst_of_changes_is_told_in_few_lines_and_its_last_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path()).unwrap();
        let mut version = write(&store, Expected::Absent, r#"{"n":0}"#).await;
        let (here, there) = duplex(4096);
        let bulletin = Bulletin::new(Arc::new(store.clone()));
        tokio::spawn(async move { tell(&bulletin, &nowhere(), there).await });
        let mut watch = Watch::begin(here).await.unwrap();
        watch.next().await.unwrap();
        for n in 1..=40 {
            version = write(&store, Expected::Version(version), &format!(r#"{{"n":{n}}}"#)).await;
        }
        let mut told = 0;
        while timeout(PATIENCE, watch.next()).await.unwrap().unwrap().version.as_ref() != Some(&version) {
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
                // It hears what the reader says, and understands none of it.
                if said.contains("stado-watch 2") {
                    let _ = there.read(&mut [0; 64]).await;
                }
            });
            Watch::begin(here).await
        };
        for said in ["", "error: unrecognized subcommand\n", "stado-watch zero\n", "stado-watch 0\n"] {
            assert!(matches!(begin(said).await.unwrap_err(), WatchEnded::Unknown(_)), "{said:?}");
        }
        let mut watch =
            begin("motd\nstado-watch 2 every=10 new=word\n{\"more\":1}\n{\"store_version\":null}\n").await.unwrap();
        assert_eq!(watch.next().await.unwrap(), Told { version: None, change: None });
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

    /// A document of `n` services, one of which is at a port.
    fn document(port: u16) -> String {
        let service = |n: u16| {
            let port = if n == 50 { port } else { 4000 + n };
            format!(
                r#""s{n}":{{"managed_service":"s{n}","active_host":"a","endpoints":{{"a":{{"url":"tcp://127.0.0.1:{port}"}}}},"consumers":{{}}}}"#
            )
        };
        let services: Vec<String> = (0..200).map(service).collect();
        format!(
            r#"{{"schema_version":2,"targets":[{{"name":"a"}}],"service_directory":{{"generation":{port},"services":{{{}}}}}}}"#,
            services.join(",")
        )
    }

    #[tokio::test]
    async fn the_change_itself_is_told_to_who_asks_and_leads_to_the_stored_document() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path()).unwrap();
        let mut version = write(&store, Expected::Absent, &document(7000)).await;
        let bulletin = Arc::new(Bulletin::new(Arc::new(store.clone())));
        let (here, there) = duplex(1 << 20);
        let telling = bulletin.clone();
        tokio::spawn(async move { tell(&telling, &nowhere(), there).await });
        let mut watch = Watch::begin(here).await.unwrap();
        assert_eq!(watch.next().await.unwrap().change, None, "whoever comes reads first");
        let mut held = document(7000);
        for port in 7001..7004_u16 {
            version = write(&store, Expected::Version(version), &document(port)).await;
            let told = timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
            assert_eq!(told.version.as_ref(), Some(&version));
            let change = told.change.expect("the change is told");
            assert!(change.line().len() < 600, "{}", change.line());
            held = change.text(&held).unwrap();
            assert_eq!(held, document(port));
        }
    }

    #[tokio::test]
    async fn a_reader_of_version_1_gets_lines_of_version_1_as_they_were_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path()).unwrap();
        let one = write(&store, Expected::Absent, &document(7000)).await;
        let bulletin = Bulletin::new(Arc::new(store.clone()));
        let (mut here, there) = duplex(1 << 20);
        tokio::spawn(async move { tell(&bulletin, &nowhere(), there).await });
        let mut lines = BufReader::new(&mut here);
        assert_eq!(line(&mut lines).await.unwrap().unwrap(), "stado-watch 2 every=10");
        assert_eq!(line(&mut lines).await.unwrap().unwrap(), format!(r#"{{"store_version":"{one}"}}"#));
        let two = write(&store, Expected::Version(one), &document(7001)).await;
        assert_eq!(line(&mut lines).await.unwrap().unwrap(), format!(r#"{{"store_version":"{two}"}}"#));
    }

    #[tokio::test]
    async fn an_authority_of_version_1_is_understood_and_nothing_is_said_to_it() {
        let (here, mut there) = duplex(4096);
        there
            .write_all(
                b"stado-watch 1 every=10\n{\"store_version\":\"945077b5e1c74a0c\"}\n{}\n{\"store_version\":null}\n",
            )
            .await
            .unwrap();
        let mut watch = Watch::begin(here).await.unwrap();
        let version = "945077b5e1c74a0c".parse().ok();
        assert_eq!(watch.next().await.unwrap(), Told { version, change: None });
        assert_eq!(watch.next().await.unwrap(), Told { version: None, change: None });
        drop(watch);
        let mut said = Vec::new();
        there.read_to_end(&mut said).await.unwrap();
        assert!(said.is_empty());
    }

    #[tokio::test]
    async fn what_a_reader_says_that_it_holds_is_kept_until_it_says_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path().join("store")).unwrap();
        write(&store, Expected::Absent, r#"{"n":1}"#).await;
        let (bulletin, holders) = (Bulletin::new(Arc::new(store)), Holders::new(dir.path()));
        let (here, there) = duplex(4096);
        let kept = holders.clone();
        tokio::spawn(async move { tell(&bulletin, &kept, there).await });
        let mut watch = Watch::begin(here).await.unwrap();
        let mut teller = watch.teller().expect("this authority hears it");
        assert!(watch.teller().is_none());
        let desk = |generation| Holding { target: "desk".into(), generation: Some(generation), ..Holding::default() };
        for generation in [6, 7] {
            teller.say(&desk(generation)).await.unwrap();
            let said = async {
                while holders.report(jiff::Timestamp::now()).heard.first().map(|h| &h.holding)
                    != Some(&desk(generation))
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            timeout(PATIENCE, said).await.unwrap();
        }
        assert!(watch.next().await.is_ok(), "what is told goes on");
        assert_eq!(holders.report(jiff::Timestamp::now()).heard[0].gone_at, None);
        drop((watch, teller));
        let noted = async {
            while holders.report(jiff::Timestamp::now()).heard[0].gone_at.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, noted).await.expect("its end is noted");
    }

    #[tokio::test]
    async fn lines_of_a_reader_that_say_nothing_are_skipped_and_end_no_watch() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path().join("store")).unwrap();
        let one = write(&store, Expected::Absent, r#"{"n":1}"#).await;
        let (bulletin, holders) = (Bulletin::new(Arc::new(store.clone())), Holders::new(dir.path()));
        let (mut here, there) = duplex(4096);
        let kept = holders.clone();
        tokio::spawn(async move { tell(&bulletin, &kept, there).await });
        here.write_all(b"stado-holds {\nstado-holds [1]\nwhat is this\nstado-holds {\"target\":\"../x\"}\nstado-holds {\"target\":\"desk\"}\n")
            .await
            .unwrap();
        let heard = async {
            while holders.report(jiff::Timestamp::now()).heard.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, heard).await.unwrap();
        assert_eq!(holders.report(jiff::Timestamp::now()).heard.len(), 1);
        write(&store, Expected::Version(one), r#"{"n":2}"#).await;
        let mut watch = Watch::begin(here).await.unwrap();
        assert!(watch.next().await.is_ok());
    }
}
