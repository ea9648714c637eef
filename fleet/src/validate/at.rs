//! Where a finding is: a place in the document, written out only when there is something to say about it.
use super::Finding;
use std::fmt;

/// A place: the steps from the root, innermost last.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    outer: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Name(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    /// `registry`
    pub(super) const ROOT: At<'static> = At { outer: None, step: Step::Root };

    /// `….key`
    pub(super) fn key(&'a self, key: &'a str) -> At<'a> {
        At { outer: Some(self), step: Step::Key(key) }
    }
    /// `…[name]`
    pub(super) fn name(&'a self, name: &'a str) -> At<'a> {
        At { outer: Some(self), step: Step::Name(name) }
    }
    /// `…[7]`
    pub(super) fn index(&'a self, index: usize) -> At<'a> {
        At { outer: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(outer) = self.outer {
            outer.fmt(f)?;
        }
        match self.step {
            Step::Root => f.write_str("registry"),
            Step::Key(key) => write!(f, ".{key}"),
            Step::Name(name) => write!(f, "[{name}]"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Findings of one section that are kept: nobody reads more, and an enormous document may be wrong everywhere.
const MOST: usize = 10_000;

/// The findings of one section, in the order in which they were found.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// One finding at a place.
    pub(super) fn add(&mut self, at: At<'_>, sentence: impl Into<String>) {
        if self.0.len() < MOST {
            self.add_at(at.to_string(), sentence.into());
        }
    }

    /// One finding whose sentence names its subject itself.
    pub(super) fn add_bare(&mut self, sentence: String) {
        self.add_at(String::new(), sentence);
    }

    /// One finding at a place that is written out.
    pub(super) fn add_at(&mut self, location: String, sentence: String) {
        if self.0.len() < MOST {
            self.0.push(Finding { location, sentence });
        }
    }
}
