//! A host behind a line that can fail.
use super::*;
use crate::edit::Overrides;
use crate::fault::Class;
use crate::link::{ExecLimits, ExecOutput, LinkError, Stage};
use crate::name::{ConnectionPath, TargetName};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

/// What happens to one command.
pub(super) enum Fault {
    /// It runs.
    None,
    /// The link fails before the command is sent.
    Link(Stage, Class, &'static str),
    /// The line is cut before the command ran.
    CutBefore,
    /// The command ran, its answer is lost.
    CutAfter,
    /// The command ran, and then another writer pushed this.
    Then(Document),
    /// Another writer pushes this before the command runs.
    Before(Document),
    /// No answer, ever.
    Hang,
    /// This is the answer.
    Say(Option<u32>, Vec<u8>, &'static str),
    /// The command runs; this is printed before its answer.
    Chatter(&'static str),
}

pub(super) struct Far {
    pub(super) store: LocalStore,
    faults: Mutex<VecDeque<Fault>>,
    commands: Mutex<Vec<String>>,
    /// Every document that a command of the line put into the store.
    written: Mutex<Vec<Vec<u8>>>,
}

impl Far {
    pub(super) fn new(store: LocalStore, faults: impl IntoIterator<Item = Fault>) -> Self {
        Self {
            store,
            faults: Mutex::new(faults.into_iter().collect()),
            commands: Mutex::default(),
            written: Mutex::default(),
        }
    }

    /// What happens to the next commands, instead of what was expected so far.
    pub(super) fn expect(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.faults.lock().unwrap() = faults.into_iter().collect();
    }

    /// Whether a command of the line ever stored this document.
    pub(super) fn ever_wrote(&self, document: &Document) -> bool {
        self.written.lock().unwrap().iter().any(|bytes| bytes == document.bytes())
    }

    pub(super) fn commands(&self) -> Vec<String> {
        self.commands.lock().unwrap().clone()
    }

    async fn run(&self, command: &str, stdin: &[u8]) -> ExecOutput {
        let verb = command.strip_prefix("'/opt/stado/bin/stado' ").unwrap();
        if let Some(flags) = verb.strip_prefix("resolver snapshot") {
            let newer_than = flags.strip_prefix(" --if-newer-than ").map(|version| version.parse().unwrap());
            return match snapshot_line(&self.store, newer_than.as_ref()).await {
                Ok(line) => said(0, line + "\n", ""),
                Err(e) => said(1, String::new(), &format!("Error: {e}")),
            };
        }
        let generation = verb.strip_prefix("registry push - --if-generation ").unwrap();
        let generation = generation.strip_suffix(" --force --allow-empty-fleet --json").unwrap();
        let request = PushRequest {
            bytes: stdin.into(),
            if_generation: Some(generation.parse().unwrap()),
            overrides: Overrides { force: true, allow_empty_fleet: true },
        };
        let source = Source::Store(Arc::new(self.store.clone()));
        match push(&source, self, request).await {
            Ok(receipt) => {
                self.written.lock().unwrap().push(stdin.to_vec());
                said(0, serde_json::to_string(&receipt).unwrap(), "")
            }
            Err(PushRefused { error, receipt: Some(receipt) }) => {
                said(75, serde_json::to_string(&receipt).unwrap(), &format!("Error: {error}"))
            }
            Err(PushRefused { error, receipt: None }) => said(1, String::new(), &format!("Error: {error}")),
        }
    }

    async fn write(&self, document: &Document) {
        let held = self.store.read().await.unwrap().unwrap().version;
        let swap = self.store.swap(Expected::Version(held), document.bytes().to_vec()).await.unwrap();
        assert!(matches!(swap, Swap::Applied(_)));
    }

    async fn answer(&self, command: &str, stdin: &[u8]) -> Result<ExecOutput, LinkError> {
        let lost = || LinkError::new(Stage::Exec, Class::InfraDown, "the session was lost");
        let fault = self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
        match fault {
            Fault::None => Ok(self.run(command, stdin).await),
            Fault::Link(stage, class, sentence) => Err(LinkError::new(stage, class, sentence)),
            Fault::CutBefore => Err(lost()),
            Fault::CutAfter => {
                self.run(command, stdin).await;
                Err(lost())
            }
            Fault::Then(document) => {
                let output = self.run(command, stdin).await;
                self.write(&document).await;
                Ok(output)
            }
            Fault::Before(document) => {
                self.write(&document).await;
                Ok(self.run(command, stdin).await)
            }
            Fault::Hang => std::future::pending().await,
            Fault::Say(status, stdout, stderr) => {
                Ok(ExecOutput { stdout, stderr: stderr.into(), status, path: "primary".into(), cut: false })
            }
            Fault::Chatter(text) => {
                let mut output = self.run(command, stdin).await;
                output.stdout.splice(0..0, text.bytes());
                Ok(output)
            }
        }
    }
}

fn said(status: u32, stdout: String, stderr: &str) -> ExecOutput {
    ExecOutput {
        stdout: stdout.into_bytes(),
        stderr: stderr.into(),
        status: Some(status),
        path: "primary".into(),
        cut: false,
    }
}

impl Exec for Far {
    fn exec<'a>(
        &'a self,
        host: &'a TargetName,
        paths: &'a [ConnectionPath],
        command: &'a str,
        stdin: &'a [u8],
        _limits: ExecLimits,
    ) -> Pin<Box<dyn Future<Output = Result<ExecOutput, LinkError>> + Send + 'a>> {
        assert!(matches!(host.as_str(), "control" | "first-copy"));
        assert_eq!(paths[0].destination.to_string(), "ops@127.0.0.2:22");
        self.commands.lock().unwrap().push(command.to_owned());
        Box::pin(self.answer(command, stdin))
    }
}
