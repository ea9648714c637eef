//! The adapter's one task: news from the engine's line, answers to inspections, ends of publications; it owns all state,
//! so nothing is locked. Inspections and publications run beside it, a bounded number at a time.
use super::book::{Book, Gone, Question};
use super::client::RealEngines;
use super::config::Config;
use super::container::Container;
use super::engine::{Connect, Engine, EngineError};
use super::line::{self, News};
use super::plan;
use super::refusal::Refusal;
use super::report::Report;
use super::shelf::Shelf;
use crate::mesh::{DockerStatus, Mesh};
use jiff::Timestamp;
use stado_fleet::link::Link;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Inspections under way at a time.
const AT_ONCE: usize = 8;
/// News that wait here; more waits with the engine.
const NEWS: usize = 64;

/// The running adapter. What it published stays in the mesh when it ends.
#[derive(Debug)]
pub struct Docker {
    stop: CancellationToken,
    task: JoinHandle<Containers>,
}

/// Watched containers: id and name.
pub type Containers = Vec<(String, String)>;

impl Docker {
    /// Starts watching. An engine that is not there is waited for.
    pub fn start(config: Config, mesh: Arc<Mesh>, link: Option<Link>) -> Self {
        Self::resume(config, mesh, link, Vec::new())
    }

    /// Goes on where an earlier watcher stopped, of this process or another: what it published for `containers` stays, and
    /// ends with those that the engine's first list does not have.
    pub fn resume(config: Config, mesh: Arc<Mesh>, link: Option<Link>, containers: Containers) -> Self {
        let connect = RealEngines { lookup: config.lookup.clone(), link, call: config.timing.call };
        Self::resume_with(Arc::new(connect), config, mesh, containers)
    }

    /// As [`Docker::start`], with another way to find engines.
    pub fn start_with(connect: Arc<dyn Connect>, config: Config, mesh: Arc<Mesh>) -> Self {
        Self::resume_with(connect, config, mesh, Vec::new())
    }

    /// As [`Docker::resume`], with another way to find engines.
    pub fn resume_with(connect: Arc<dyn Connect>, config: Config, mesh: Arc<Mesh>, containers: Containers) -> Self {
        let stop = CancellationToken::new();
        let mut watcher = Watcher::new(connect, config, mesh);
        watcher.resumed = !containers.is_empty();
        if !watcher.resumed {
            watcher.mesh.set_refused(watcher.report.list());
        }
        watcher.book.resume(containers, Instant::now());
        let task = tokio::spawn(watcher.run(stop.clone()));
        Self { stop, task }
    }

    /// Stops watching; what was watched.
    pub async fn close(self) -> Containers {
        self.stop.cancel();
        // An error would mean that the task panicked; it watches no more then as well.
        self.task.await.unwrap_or_default()
    }
}

type Inspected = (Question, Result<Option<Container>, EngineError>);

struct Watcher {
    connect: Arc<dyn Connect>,
    config: Config,
    mesh: Arc<Mesh>,
    engine: Option<Arc<dyn Engine>>,
    book: Book,
    shelf: Shelf,
    report: Report,
    inspections: JoinSet<Inspected>,
    all_inspected: Instant,
    refused: Vec<Refusal>,
    /// An earlier watcher's word stands until everything that it knew was looked at.
    resumed: bool,
}

impl Watcher {
    fn new(connect: Arc<dyn Connect>, config: Config, mesh: Arc<Mesh>) -> Self {
        let report = Report::new(connect.place(), Timestamp::now(), config.timing.repeat_log);
        let book = Book::new(config.allow_exposed);
        let shelf = Shelf::new(mesh.clone());
        mesh.set_docker_status(DockerStatus::Degraded);
        Self {
            connect,
            config,
            mesh,
            engine: None,
            book,
            shelf,
            report,
            inspections: JoinSet::new(),
            all_inspected: Instant::now(),
            refused: Vec::new(),
            resumed: false,
        }
    }

    async fn run(mut self, stop: CancellationToken) -> Containers {
        let (tell, mut news) = mpsc::channel(NEWS);
        let line = line::run(self.connect.clone(), self.config.timing, tell);
        let mut line = std::pin::pin!(line);
        loop {
            let due = self.book.next_at().filter(|_| self.may_inspect());
            tokio::select! {
                () = stop.cancelled() => return self.book.known(),
                () = &mut line => return self.book.known(),
                Some(news) = news.recv() => self.hear(news),
                Some(Ok(answer)) = self.inspections.join_next() => self.take(answer),
                done = self.shelf.done() => self.shelf.enter(done),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
            self.inspect();
            self.tell();
        }
    }

    fn hear(&mut self, news: News) {
        let now = Instant::now();
        match news {
            News::Up(engine, list) => {
                self.report.up(&engine.about(), Timestamp::now());
                self.mesh.set_docker_status(DockerStatus::Connected);
                self.book.reach = engine.reach();
                self.engine = Some(engine);
                self.book.doubt_all(now);
                self.all_inspected = now;
                self.listed(list, now);
            }
            News::Listed(list) => {
                if now.saturating_duration_since(self.all_inspected) >= self.config.timing.inspect_all_every {
                    self.all_inspected = now;
                    self.book.doubt_all(now);
                }
                self.listed(list, now);
                self.shelf.check();
            }
            News::Event(event) => {
                let gone = self.book.event(event, now);
                self.end(gone);
            }
            News::Down(error) => {
                self.engine = None;
                self.inspections = JoinSet::new();
                self.book.interrupted(now);
                self.mesh.set_docker_status(DockerStatus::Degraded);
                self.report.down(self.connect.place(), error.to_string(), Timestamp::now());
            }
        }
        self.replan();
    }

    fn listed(&mut self, list: Vec<super::engine::Listed>, now: Instant) {
        let gone = self.book.listed(list, now);
        self.end(gone);
    }

    fn take(&mut self, (question, answer): Inspected) {
        let gone = self.book.answered(&question, answer.map_err(|error| error.to_string()), Instant::now());
        self.end(gone);
        self.replan();
    }

    fn end(&mut self, gone: impl IntoIterator<Item = Gone>) {
        for Gone { id, reason, served } in gone {
            if !self.shelf.gone(&id, &reason) && served {
                tracing::info!(target: "stado::mesh", container = id, reason, "stale_docker_forget_ignored");
            }
        }
    }

    fn may_inspect(&self) -> bool {
        self.engine.is_some() && self.inspections.len() < AT_ONCE
    }

    fn inspect(&mut self) {
        let Some(engine) = self.engine.clone() else { return };
        while self.may_inspect() {
            let Some(question) = self.book.next(Instant::now()) else { return };
            let engine = engine.clone();
            self.inspections.spawn(async move {
                let answer = engine.inspect(&question.id).await;
                (question, answer)
            });
        }
    }

    fn replan(&mut self) {
        // Without an engine nothing more gets known: what is known is served.
        let awaited = if self.engine.is_some() { self.book.awaited() } else { HashSet::new() };
        let plan = plan::plan(self.book.judged(), |name| self.shelf.holder(name), &awaited);
        self.shelf.want(plan.wanted);
        self.report.unknown_labels(self.book.unknown_labels());
        self.refused = plan.refused;
    }

    fn tell(&mut self) {
        self.resumed &= self.engine.is_some() && self.book.is_unread();
        if self.resumed {
            return;
        }
        let known = self.refused.iter().filter(|refusal| !self.book.is_pending(refusal)).cloned();
        let all = known.chain(self.book.failures()).chain(self.shelf.refused());
        let all = all.chain(self.shelf.withheld()).collect::<Vec<_>>();
        self.report.refused(all, Timestamp::now(), Instant::now());
        self.report.tell_engine(Instant::now());
        self.mesh.set_refused(self.report.list());
    }
}
