//! Any sequence of writes over a line that fails anywhere: what a writer is told is what happened.
use super::*;
use crate::fault::Class;
use crate::link::Stage;
use crate::name::StoreVersion;
use proptest::prelude::*;

/// What happens to one command, without its documents.
#[derive(Debug, Clone, Copy)]
enum Line {
    Whole,
    Down,
    CutBefore,
    CutAfter,
    OtherBefore,
    OtherThen,
    Garbage,
}

/// One write of one writer: with fresh or old knowledge, over this line (the write, the read-back, its second try).
#[derive(Debug, Clone)]
struct Write {
    reads_first: bool,
    lines: [Line; 3],
}

fn write() -> impl Strategy<Value = Write> {
    let line = prop_oneof![
        4 => Just(Line::Whole),
        1 => Just(Line::Down),
        1 => Just(Line::CutBefore),
        1 => Just(Line::CutAfter),
        1 => Just(Line::OtherBefore),
        1 => Just(Line::OtherThen),
        1 => Just(Line::Garbage),
    ];
    (any::<bool>(), [line.clone(), line.clone(), line]).prop_map(|(reads_first, lines)| Write { reads_first, lines })
}

/// Every document is another one: its generation and port are its number.
fn fault(line: Line, number: &mut u16) -> Fault {
    let mut other = || {
        *number += 1;
        document(u64::from(*number), *number)
    };
    match line {
        Line::Whole => Fault::None,
        Line::Down => {
            Fault::Link(Stage::Connect, Class::InfraDown, "no registry SSH connection path answered (primary: down)")
        }
        Line::CutBefore => Fault::CutBefore,
        Line::CutAfter => Fault::CutAfter,
        Line::OtherBefore => Fault::Before(other()),
        Line::OtherThen => Fault::Then(other()),
        Line::Garbage => Fault::Chatter("{\"torn\":"),
    }
}

async fn history(writes: Vec<Write>) -> Result<(), TestCaseError> {
    let scene = Scene::new([]).await;
    let source = scene.remote();
    let mut known: StoreVersion = scene.held().await.1;
    let mut number = 7u16;
    for write in writes {
        if write.reads_first {
            known = scene.held().await.1;
        }
        number += 1;
        let sent = document(u64::from(number), number);
        let mine = number;
        let before = scene.held().await.1;
        scene.far.expect(write.lines.map(|line| fault(line, &mut number)));
        let told = commit(&source, &scene.far, Some(&known), &sent).await;
        scene.far.expect([]);
        let written = scene.far.ever_wrote(&sent);
        match told {
            Ok(committed) => {
                prop_assert!(written, "document {} was called written and never was", mine);
                prop_assert_eq!(committed.replaced.as_ref(), Some(&known));
                known = committed.version;
            }
            Err(e) if e.class == Class::Moved => {
                prop_assert!(!written, "{}", e);
                prop_assert!(before != known || scene.held().await.1 != before, "nothing had moved: {}", e);
            }
            Err(e) if e.sentence.contains("is unconfirmed") => prop_assert_eq!(e.class, Class::Unknown),
            // Every other refusal says that nothing was written.
            Err(e) => prop_assert!(!written, "{}", e),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn what_a_writer_is_told_is_what_happened(writes in proptest::collection::vec(write(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(history(writes))?;
    }
}
