//! What one direction does next. Pure: it knows numbers of bytes, not bytes, sockets or time.

/// How bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Through the buffer that the connections of a thread share: small messages.
    Small,
    /// Through a pipe of this direction, unseen: bulk.
    Bulk,
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Read from the source.
    Read(Mode),
    /// Write what is held to the destination.
    Write(Mode),
    /// Pass the end of the stream on.
    Shutdown,
    /// Nothing more will happen.
    Done,
}

/// One direction of a connection. It reads only when it holds nothing, so what it holds is bounded by one read.
#[derive(Debug)]
pub(super) struct Flow {
    /// Where the held bytes are; changes only while none are held.
    mode: Mode,
    /// How the next read is to be made.
    wanted: Mode,
    held: usize,
    source: Source,
    may_bulk: bool,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Open,
    Ended,
    PassedOn,
}

impl Flow {
    /// `held`: bytes that were taken from the source already. `may_bulk`: whether both ends can be spliced.
    pub(super) fn new(held: usize, may_bulk: bool) -> Self {
        Self { mode: Mode::Small, wanted: Mode::Small, held, source: Source::Open, may_bulk }
    }

    pub(super) fn next(&self) -> Step {
        match self.source {
            _ if self.held > 0 => Step::Write(self.mode),
            Source::Open => Step::Read(self.wanted),
            Source::Ended => Step::Shutdown,
            Source::PassedOn => Step::Done,
        }
    }

    /// `n` > 0 bytes were read; `full`: there was room for no more. Only bulk fills the shared buffer.
    pub(super) fn read(&mut self, n: usize, full: bool) {
        self.mode = self.wanted;
        self.held += n;
        if full && self.may_bulk {
            self.wanted = Mode::Bulk;
        }
    }

    /// The next read is to be small: the source rests, or its bytes are to be seen.
    pub(super) fn small(&mut self) {
        self.wanted = Mode::Small;
    }

    /// No pipe could be had: this direction stays small.
    pub(super) fn no_bulk(&mut self) {
        self.may_bulk = false;
        self.wanted = Mode::Small;
    }

    /// Bytes that were read and not written yet.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn holds(&self) -> bool {
        self.held > 0
    }

    /// `n` of the held bytes were written.
    pub(super) fn wrote(&mut self, n: usize) {
        self.held = self.held.saturating_sub(n);
    }

    /// The source ended its stream.
    pub(super) fn ended(&mut self) {
        self.source = Source::Ended;
    }

    /// The end was passed on.
    pub(super) fn passed_on(&mut self) {
        self.source = Source::PassedOn;
    }

    /// Whether the source is not being read now, so that its breaking would go unnoticed.
    pub(super) fn looks_away(&self) -> bool {
        !matches!(self.next(), Step::Read(_))
    }

    /// Whether the source has ended its stream.
    pub(super) fn source_ended(&self) -> bool {
        self.source != Source::Open
    }

    pub(super) fn is_done(&self) -> bool {
        self.next() == Step::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Event {
        Read(usize, bool),
        Small,
        Eof,
        Wrote(usize),
        NoPipe,
    }
    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            (1usize..100_000, any::<bool>()).prop_map(|(n, full)| Event::Read(n, full)),
            Just(Event::Small),
            Just(Event::Eof),
            (1usize..100_000).prop_map(Event::Wrote),
            Just(Event::NoPipe),
        ];
        proptest::collection::vec(event, 0..200)
    }

    proptest! {
        /// Every byte that was read is written once, before the end is passed on, and nothing is read while bytes are held.
        #[test]
        fn no_byte_is_lost_and_the_end_comes_last(early in 0usize..5000, may_bulk: bool, events in events()) {
            let mut flow = Flow::new(early, may_bulk);
            let (mut taken, mut given, mut held_in) = (early, 0usize, Mode::Small);
            for event in events {
                match (flow.next(), event) {
                    (Step::Read(mode), Event::Read(n, full)) => {
                        prop_assert_eq!(taken, given);
                        prop_assert!(may_bulk || mode == Mode::Small);
                        flow.read(n, full);
                        taken += n;
                        held_in = mode;
                    }
                    (Step::Read(_), Event::Small) => {
                        flow.small();
                        prop_assert_eq!(flow.next(), Step::Read(Mode::Small));
                    }
                    (Step::Write(_), Event::Small) => flow.small(),
                    (Step::Read(_), Event::NoPipe) => flow.no_bulk(),
                    (Step::Read(_), Event::Eof) => flow.ended(),
                    (Step::Write(mode), Event::Wrote(n)) => {
                        prop_assert_eq!(mode, held_in);
                        let n = n.min(taken - given);
                        flow.wrote(n);
                        given += n;
                    }
                    (Step::Shutdown, _) => {
                        prop_assert_eq!(taken, given);
                        flow.passed_on();
                        prop_assert!(flow.is_done());
                    }
                    (step, _) => prop_assert_eq!(step, flow.next()),
                }
                prop_assert_eq!(matches!(flow.next(), Step::Write(_)), taken > given);
            }
        }
    }

    #[test]
    fn a_full_read_turns_to_bulk_and_a_look_turns_back() {
        let mut flow = Flow::new(0, true);
        flow.read(10, true);
        assert_eq!(flow.next(), Step::Write(Mode::Small));
        flow.wrote(10);
        assert_eq!(flow.next(), Step::Read(Mode::Bulk));
        flow.read(10, false);
        assert_eq!(flow.next(), Step::Write(Mode::Bulk));
        flow.wrote(10);
        flow.small();
        assert_eq!(flow.next(), Step::Read(Mode::Small));
    }
}
