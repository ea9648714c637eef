//! What the processes with watchers tell: a line for each event, with its time.
use crate::Options;
use crate::authority::Authority;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

/// `<word> <host> <microseconds since 1970>`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A host holds a watch.
    Watching,
    /// A host holds a newer registry, which was told to it.
    Held,
    /// The same, and it had to read the whole of it.
    Read,
}

impl Event {
    pub fn word(self) -> &'static str {
        match self {
            Self::Watching => "watching",
            Self::Held => "held",
            Self::Read => "read",
        }
    }
}

pub struct Workers {
    children: Vec<Child>,
    events: Receiver<(Event, usize, SystemTime)>,
    read: usize,
}

impl Workers {
    pub fn start(options: &Options, authority: &Authority) -> Self {
        let (tell, events) = channel();
        let each = options.hosts.div_ceil(options.processes);
        let firsts = (0..options.hosts).step_by(each);
        let children = firsts.map(|first| {
            let count = each.min(options.hosts - first);
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.arg("--worker").args([first.to_string(), count.to_string()]).arg(authority.store());
            command.args(authority.keys()).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let (tell, lines) = (tell.clone(), BufReader::new(child.stdout.take().unwrap()));
            std::thread::spawn(move || {
                lines.lines().map_while(Result::ok).filter_map(|l| parse(&l)).all(|e| tell.send(e).is_ok())
            });
            child
        });
        Self { children: children.collect(), events, read: 0 }
    }

    /// What was told until now does not count.
    pub fn forget(&mut self) {
        while self.events.try_recv().is_ok() {}
        self.read = 0;
    }

    /// Waits until so many hosts have told an event; the times. A host that reads holds, too.
    pub fn wait(&mut self, event: Event, count: usize, patience: Duration) -> Vec<SystemTime> {
        let (end, mut seen) = (Instant::now() + patience, std::collections::BTreeMap::new());
        while seen.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            let Ok((what, host, at)) = self.events.recv_timeout(left) else {
                eprintln!("only {} of {count} hosts told {event:?} within {patience:?}", seen.len());
                break;
            };
            self.read += usize::from(what == Event::Read);
            if what == event || (event == Event::Held && what == Event::Read) {
                seen.entry(host).or_insert(at);
            }
        }
        seen.into_values().collect()
    }

    /// How many hosts read the whole registry in the last wait.
    pub fn read_whole(&self) -> usize {
        self.read
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn parse(line: &str) -> Option<(Event, usize, SystemTime)> {
    let mut words = line.split(' ');
    let word = words.next()?;
    let event = [Event::Watching, Event::Held, Event::Read].into_iter().find(|event| event.word() == word)?;
    let (host, micros) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((event, host, SystemTime::UNIX_EPOCH + Duration::from_micros(micros)))
}

/// The most of them within one second.
pub fn peak(times: &[SystemTime]) -> usize {
    let mut times = times.to_vec();
    times.sort();
    let within = |from: usize| {
        times[from..]
            .iter()
            .take_while(|at| at.duration_since(times[from]).unwrap_or_default() < Duration::from_secs(1))
            .count()
    };
    (0..times.len()).map(within).max().unwrap_or(0)
}
