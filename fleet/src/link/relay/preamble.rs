//! What is said before the first frame. The far side names the newest version that it speaks, the near side answers with
//! the one to speak: the older of the two.
//!
//! ```text
//! far:   stado-relay 1 <words that later versions may add>\n
//! near:  stado-relay 1\n
//! ```
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const WORD: &[u8] = b"stado-relay ";
/// The newest version that this build speaks, and the oldest.
const NEWEST: u32 = 1;
const OLDEST: u32 = 1;
/// What a login script may say before.
const CHATTER: usize = 64 * 1024;
/// Bytes of it that are quoted.
const QUOTED: usize = 80;
const LONGEST_LINE: usize = 512;

/// Why there is no multiplex with a host, in words a person can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::link) struct NoMultiplex(pub(in crate::link) String);

/// The near side of the preamble. Gives the version, and what a login script said before, quoted.
pub(super) async fn near<S: AsyncRead + AsyncWrite + Unpin>(io: &mut S) -> Result<(u32, Option<String>), NoMultiplex> {
    let (line, chatter) = hello(io).await?;
    let newest = line.split(|b| *b == b' ').next().and_then(|word| std::str::from_utf8(word).ok()?.parse::<u32>().ok());
    let version = newest.map(|theirs| theirs.min(NEWEST)).filter(|version| *version >= OLDEST);
    let Some(version) = version else {
        let said = String::from_utf8_lossy(&line).into_owned();
        return Err(NoMultiplex(format!(
            "the stado there speaks relay version {said:?}, which this one does not know"
        )));
    };
    let answer = format!("stado-relay {version}\n");
    let answered = async {
        io.write_all(answer.as_bytes()).await?;
        io.flush().await
    };
    answered.await.map_err(|e| NoMultiplex(format!("the relay there ended: {e}")))?;
    Ok((version, chatter))
}

/// Reads up to the line that begins with our word; what follows the word, and what stood before the line.
async fn hello<S: AsyncRead + Unpin>(io: &mut S) -> Result<(Vec<u8>, Option<String>), NoMultiplex> {
    let mut heard = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let n = match io.read(&mut piece).await {
            Ok(0) => return Err(NoMultiplex(format!("the command ended{}", quoted(&heard)))),
            Ok(n) => n,
            Err(error) => return Err(NoMultiplex(format!("the command was lost: {error}"))),
        };
        heard.extend_from_slice(piece.get(..n).unwrap_or_default());
        if let Some((before, line, after)) = find(&heard) {
            if !after.is_empty() {
                return Err(NoMultiplex(format!("the login there goes on talking{}", quoted(after))));
            }
            let chatter = (!before.is_empty()).then(|| quoted(before));
            return Ok((line.to_vec(), chatter));
        }
        if heard.len() > CHATTER {
            return Err(NoMultiplex(format!("the login there says too much{}", quoted(&heard))));
        }
    }
}

/// What stands before our line, the words of our line, and what stands behind it; once the line is whole.
fn find(heard: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let begins = |at: usize| at == 0 || heard.get(at - 1).is_some_and(|before| matches!(before, b'\n' | b'\r'));
    let mut starts = heard.windows(WORD.len()).enumerate().filter(|(at, window)| *window == WORD && begins(*at));
    let (at, _) = starts.next()?;
    let rest = heard.get(at + WORD.len()..)?;
    let end = rest.iter().position(|b| *b == b'\n')?;
    Some((heard.get(..at)?, rest.get(..end)?.trim_ascii(), rest.get(end + 1..)?))
}

fn quoted(said: &[u8]) -> String {
    let said = said.trim_ascii();
    if said.is_empty() {
        return String::new();
    }
    format!(": it said {:?}", String::from_utf8_lossy(said.get(..QUOTED).unwrap_or(said)))
}

/// The far side of the preamble; the version to speak.
pub(super) async fn far<S: AsyncRead + AsyncWrite + Unpin>(io: &mut S) -> io::Result<u32> {
    io.write_all(format!("stado-relay {NEWEST}\n").as_bytes()).await?;
    io.flush().await?;
    let mut line = Vec::new();
    loop {
        // Byte by byte: what follows the line belongs to the frames.
        let byte = io.read_u8().await?;
        if byte == b'\n' {
            break;
        }
        line.push(byte);
        if line.len() > LONGEST_LINE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer to the preamble is no line"));
        }
    }
    let version = line.strip_prefix(WORD).and_then(|rest| {
        let word = rest.split(|b| *b == b' ').next()?;
        std::str::from_utf8(word).ok()?.trim().parse::<u32>().ok()
    });
    version.filter(|version| (OLDEST..=NEWEST).contains(version)).ok_or_else(|| {
        let said = String::from_utf8_lossy(&line).into_owned();
        io::Error::new(io::ErrorKind::InvalidData, format!("the other end answered the preamble with {said:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    async fn met(said: &str) -> (Result<(u32, Option<String>), NoMultiplex>, String) {
        let (mut here, mut there) = duplex(256 * 1024);
        there.write_all(said.as_bytes()).await.unwrap();
        there.shutdown().await.unwrap();
        let met = near(&mut here).await;
        drop(here);
        let mut answer = String::new();
        there.read_to_string(&mut answer).await.unwrap();
        (met, answer)
    }

    #[tokio::test]
    async fn the_older_of_two_versions_is_spoken_and_later_words_are_skipped() {
        for said in ["stado-relay 1\n", "stado-relay 1 pid=7 colour=blue\r\n", "stado-relay 9 new\n"] {
            let (met, answer) = met(said).await;
            assert_eq!((met.unwrap(), answer.as_str()), ((1, None), "stado-relay 1\n"), "{said:?}");
        }
    }

    #[tokio::test]
    async fn an_unknown_version_is_no_multiplex_and_says_so() {
        for said in ["stado-relay 0\n", "stado-relay x\n", "stado-relay \n"] {
            let (met, answer) = met(said).await;
            assert!(met.unwrap_err().0.contains("which this one does not know"), "{said:?}");
            assert_eq!(answer, "");
        }
    }

    #[tokio::test]
    async fn chatter_of_a_login_is_skipped_and_quoted() {
        let (met, _) = met("Last login: today\nsay stado-relay 3\nstado-relay 1\n").await;
        let chatter = met.unwrap().1.unwrap();
        assert!(chatter.contains("Last login: today"), "{chatter}");
    }

    #[tokio::test]
    async fn a_command_that_is_something_else_is_quoted() {
        let (ended, _) = met("Usage: stado [COMMAND]\n").await;
        assert_eq!(ended.unwrap_err().0, "the command ended: it said \"Usage: stado [COMMAND]\"");
        let (endless, _) = met(&"y\n".repeat(40_000)).await;
        assert!(endless.unwrap_err().0.contains("says too much"));
        let (late, _) = met("stado-relay 1\nmail waits\n").await;
        assert!(late.unwrap_err().0.contains("goes on talking: it said \"mail waits\""));
    }

    #[tokio::test]
    async fn both_ends_of_today_agree() {
        let (mut here, mut there) = duplex(1024);
        let (near, far) = tokio::join!(near(&mut here), far(&mut there));
        assert_eq!((near.unwrap().0, far.unwrap()), (1, 1));
    }

    #[tokio::test]
    async fn an_answer_that_is_none_ends_the_far_side() {
        for answer in ["stado-relay 7\n", "hello\n", &"x".repeat(4000)] {
            let (mut here, mut there) = duplex(8192);
            here.write_all(answer.as_bytes()).await.unwrap();
            assert_eq!(far(&mut there).await.unwrap_err().kind(), io::ErrorKind::InvalidData, "{answer:?}");
        }
    }
}
