//! Whatever is cut, and however often: then recovered, the services are wholly moved or wholly back, and the claim is gone.
use super::sim::{Fault, Sim};
use crate::placement::drive::{Wish, forward, recover};
use crate::placement::{Action, Ended, Entry, PlacementError, Step};
use futures_util::FutureExt;
use proptest::prelude::*;

/// As `placement recover` picks it up.
fn pick_up(sim: &mut Sim, undo: bool) -> Option<Result<Ended, PlacementError>> {
    let claimed = sim.claimed;
    let entry = match sim.journal.clone() {
        Some(entry) => entry,
        None if claimed => Entry::unrecorded(Sim::claim()),
        None => return Some(Ok(if sim.committed { Ended::Moved } else { Ended::Back })),
    };
    recover(sim, entry, claimed, Wish { undo, ..Wish::default() }).now_or_never()
}

fn settled(sim: &Sim) {
    assert!(!sim.claimed && sim.journal.is_none(), "{sim:#?}");
    assert!(sim.wholly_moved() || sim.wholly_back(), "{sim:#?}");
}

/// Recovers until it comes to an end, with nothing in the way.
fn recovered(sim: &mut Sim) -> Ended {
    sim.fuse = None;
    sim.faults.clear();
    for _ in 0..3 {
        if let Some(Ok(ended)) = pick_up(sim, false) {
            settled(sim);
            assert_eq!(ended == Ended::Moved, sim.committed, "{sim:#?}");
            return ended;
        }
    }
    panic!("never comes to an end: {sim:#?}");
}

#[test]
fn an_undisturbed_move_is_a_move_and_leaves_nothing() {
    let mut sim = Sim::new();
    assert_eq!(forward(&mut sim, Entry::new(Sim::claim())).now_or_never(), Some(Ok(())));
    settled(&sim);
    assert!(sim.wholly_moved());
}

#[test]
fn a_cut_after_any_change_is_recovered_with_power_and_without() {
    let mut ends = [0, 0];
    for power in [false, true] {
        for fuse in 0.. {
            let mut sim = Sim::new();
            sim.fuse = Some(fuse);
            if forward(&mut sim, Entry::new(Sim::claim())).now_or_never().is_some() {
                assert!(fuse > 20, "only {fuse} changes");
                break;
            }
            if power {
                sim.power_cut();
            }
            ends[usize::from(recovered(&mut sim) == Ended::Moved)] += 1;
        }
    }
    assert!(ends[0] > 10 && ends[1] > 5, "{ends:?}");
}

#[test]
fn a_step_that_fails_takes_everything_back_and_says_so() {
    for step in Step::ALL.into_iter().skip(1) {
        for fault in [Fault::Before, Fault::After] {
            let mut sim = Sim::new();
            // A commit that was done and is told as failed is an uncertain one.
            if step == Step::Commit && fault == Fault::After {
                continue;
            }
            sim.faults.insert(Action::Forward(step), fault);
            let error = forward(&mut sim, Entry::new(Sim::claim())).now_or_never().unwrap().unwrap_err();
            assert!(error.sentence.ends_with("failed; gateway is back on from and the claim is released"), "{error}");
            settled(&sim);
            assert!(sim.wholly_back());
        }
    }
}

#[test]
fn a_refused_claim_changes_nothing_and_goes_nowhere() {
    let mut sim = Sim::new();
    sim.faults.insert(Action::Forward(Step::Claim), Fault::Before);
    let error = forward(&mut sim, Entry::new(Sim::claim())).now_or_never().unwrap().unwrap_err();
    assert_eq!(error.sentence, "Forward(Claim) failed");
    settled(&sim);
}

#[test]
fn a_way_back_that_fails_leaves_the_claim_and_names_what_ends_it() {
    for (action, step) in [
        (Action::StopDestination, Step::StartDestination),
        (Action::RouteBack, Step::StartDestination),
        (Action::EnableSource, Step::CopyState),
        (Action::StartSource, Step::CopyState),
        (Action::Release, Step::CopyState),
    ] {
        let mut sim = Sim::new();
        sim.faults.insert(Action::Forward(step), Fault::After);
        sim.faults.insert(action, Fault::Before);
        let error = forward(&mut sim, Entry::new(Sim::claim())).now_or_never().unwrap().unwrap_err();
        assert!(
            error.sentence.contains("; going back failed too: ") && error.sentence.contains("placement recover"),
            "{error}"
        );
        assert!(sim.claimed && sim.journal.as_ref().is_some_and(|e| e.back && e.error.is_some()), "{sim:#?}");
        assert_eq!(recovered(&mut sim), Ended::Back);
    }
}

#[test]
fn what_is_left_on_the_destination_holds_no_way_back_up() {
    let mut sim = Sim::new();
    sim.faults.insert(Action::Forward(Step::CopyState), Fault::After);
    sim.faults.insert(Action::RestoreState, Fault::Before);
    forward(&mut sim, Entry::new(Sim::claim())).now_or_never().unwrap().unwrap_err();
    assert!(sim.from.running && !sim.claimed && sim.staged, "{sim:#?}");
    assert_eq!(sim.notes.len(), 1);
}

#[test]
fn a_commit_whose_end_is_not_known_is_left_alone_until_it_is() {
    for done in [false, true] {
        let mut sim = Sim::new();
        sim.faults.insert(Action::Forward(Step::Commit), Fault::Uncertain { done });
        let error = forward(&mut sim, Entry::new(Sim::claim())).now_or_never().unwrap().unwrap_err();
        assert!(error.sentence.contains("may still stand"), "{error}");
        assert!(sim.to.running && !sim.from.running, "nothing was chosen: {sim:#?}");
        assert_eq!(recovered(&mut sim), Ended::Moved);
    }
}

#[test]
fn undo_takes_back_what_recover_would_finish() {
    let mut sim = Sim::new();
    sim.faults.insert(Action::Forward(Step::Commit), Fault::Uncertain { done: false });
    forward(&mut sim, Entry::new(Sim::claim())).now_or_never().unwrap().unwrap_err();
    assert_eq!(pick_up(&mut sim, true), Some(Ok(Ended::Back)));
    settled(&sim);
}

#[test]
fn a_claim_without_a_record_is_undone_from_any_cut() {
    for fuse in 0.. {
        let mut sim = Sim::new();
        sim.fuse = Some(fuse);
        if forward(&mut sim, Entry::new(Sim::claim())).now_or_never().is_some() {
            break;
        }
        if sim.claimed {
            sim.journal = None;
            sim.power_cut();
            assert_eq!(recovered(&mut sim), Ended::Back);
        }
    }
}

#[test]
fn where_the_source_does_not_come_up_the_claim_is_released_for_whoever_asks_and_nothing_runs_twice() {
    for recorded in [true, false] {
        let mut sim = Sim::new();
        sim.faults.insert(Action::Forward(Step::RetireSource), Fault::Before);
        sim.faults.insert(Action::StartSource, Fault::Before);
        forward(&mut sim, Entry::new(Sim::claim())).now_or_never().unwrap().unwrap_err();
        if !recorded {
            sim.journal = None;
        }
        sim.faults.insert(Action::StartSource, Fault::Before);
        let stands = pick_up(&mut sim, false).unwrap().unwrap_err();
        assert!(sim.claimed && stands.sentence.contains("may still stand"), "{stands}");
        let entry = sim.journal.clone().unwrap();
        assert_eq!((entry.unrecorded, entry.error.as_deref()), (!recorded, Some("StartSource failed")));
        sim.faults.insert(Action::StartSource, Fault::Before);
        let wish = Wish { leave_down: true, ..Wish::default() };
        assert_eq!(recover(&mut sim, entry, true, wish).now_or_never(), Some(Ok(Ended::Back)));
        assert!(!sim.claimed && sim.journal.is_none() && !sim.to.running && !sim.to.enabled, "{sim:#?}");
        assert_eq!(sim.notes, ["the services do not come up on from: StartSource failed"]);
    }
}

fn action() -> impl Strategy<Value = Action> {
    let back = [
        Action::StopDestination,
        Action::RouteBack,
        Action::EnableSource,
        Action::StartSource,
        Action::RestoreState,
        Action::Release,
        Action::Tidy,
    ];
    prop_oneof![
        proptest::sample::select(Step::ALL.to_vec()).prop_map(Action::Forward),
        proptest::sample::select(back.to_vec()),
    ]
}

/// A cut: after how many changes, with the power too, which action fails on the way, and whether it is the end of a write.
fn cut() -> impl Strategy<Value = (u32, bool, Option<(Action, bool)>, bool)> {
    (0_u32..40, any::<bool>(), proptest::option::of((action(), any::<bool>())), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_cuts_and_failures_then_recover_are_wholly_moved_or_wholly_back(cuts in proptest::collection::vec(cut(), 1..5)) {
        let mut sim = Sim::new();
        for (n, (fuse, power, fault, undo)) in cuts.into_iter().enumerate() {
            sim.fuse = Some(fuse);
            sim.faults.clear();
            if let Some((action, done)) = fault {
                let write = matches!(action, Action::Forward(Step::Commit | Step::Claim));
                let fault = if write { Fault::Uncertain { done } } else if done { Fault::After } else { Fault::Before };
                // What is only left over is told, not repaired.
                if action != Action::RestoreState && action != Action::Tidy {
                    sim.faults.insert(action, fault);
                }
            }
            let finished = if n == 0 {
                forward(&mut sim, Entry::new(Sim::claim())).now_or_never().is_some()
            } else {
                pick_up(&mut sim, undo).is_some()
            };
            if power && !finished {
                sim.power_cut();
            }
        }
        recovered(&mut sim);
    }
}
