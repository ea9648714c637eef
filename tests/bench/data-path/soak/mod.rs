//! Hours of a developer's day in minutes: registrations, backend moves, resets, half-closes, bulk and hand-overs, against one
//! address whose owner must stay as large as it was. `tests/bench/soak-churn [SECONDS]` builds and starts it.
mod churn;
mod daemons;
mod server;
mod watch;

use churn::Tally;
use daemons::Daemons;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Between two looks at the daemon.
const SAMPLE: Duration = Duration::from_secs(10);
/// Between two hand-overs.
const HAND_OVER: Duration = Duration::from_secs(15);

pub fn run(arguments: &[String]) {
    let seconds = arguments.first().map_or(300, |text| text.parse().expect("--soak SECONDS"));
    crate::process::raise_descriptor_limit();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let flat = runtime.block_on(soak(Duration::from_secs(seconds)));
    runtime.shutdown_background();
    if !flat {
        std::process::exit(1);
    }
}

async fn soak(length: Duration) -> bool {
    let mut daemons = Daemons::start().await;
    let (tally, stop) = (Arc::new(Tally::default()), CancellationToken::new());
    let churning = churn::start(&daemons.socket(), &tally, &stop).await;
    let hands_over = daemons.can_hand_over();
    if !hands_over {
        println!("this build has no --take-over: no hand-overs");
    }
    let (start, mut samples) = (Instant::now(), Vec::new());
    let (mut next_sample, mut next_hand_over) = (start + SAMPLE, start + HAND_OVER);
    while start.elapsed() < length {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = Instant::now();
        if hands_over && now >= next_hand_over {
            daemons.hand_over().await;
            tally.hand_overs.fetch_add(1, Relaxed);
            next_hand_over = now + HAND_OVER;
        }
        if now >= next_sample {
            samples.push(daemons.sample());
            let sample = samples.last().unwrap();
            eprintln!("{:>5} s: {sample}; {tally}", start.elapsed().as_secs());
            next_sample += SAMPLE;
        }
    }
    stop.cancel();
    for task in churning {
        task.await.unwrap();
    }
    // What is still on its way ends; then only what is kept for ever is left.
    daemons.settle().await;
    let last = daemons.sample();
    let verdict = watch::judge(&samples);
    let broken = tally.broken.load(Relaxed);
    println!("at rest: {last}");
    println!(
        "| {} s | {tally} | {verdict} | {} |",
        length.as_secs(),
        if broken == 0 { "none broken" } else { "BROKEN" }
    );
    println!("{}", if verdict.flat && broken == 0 { "flat" } else { "NOT flat" });
    verdict.flat && broken == 0
}
