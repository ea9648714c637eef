//! What is done to a proxy, and what is counted meanwhile.
mod bulk;
mod connections;
pub mod idle;
mod resets;
mod trips;

use crate::lines::{Group, Results};
use crate::peers::Proxy;
use crate::servers::Servers;
use std::time::{Duration, Instant};

/// Runs one group of lines against one proxy.
pub fn measure(group: Group, proxy: &Proxy, servers: &Servers, window: Duration, results: &mut Results) {
    match group {
        Group::Bulk | Group::OrdinaryUser => bulk::measure(proxy, servers, window, results),
        Group::Trips => trips::measure(proxy, window, results),
        Group::Connections => connections::measure(proxy, window, results),
        Group::Resets => resets::measure(proxy, results),
        Group::Idle | Group::Listeners | Group::Start => {}
    }
}

/// What happened within a window.
struct Counted {
    count: u64,
    seconds: f64,
    /// CPU seconds of the proxy; none without one.
    cpu: Option<f64>,
}

impl Counted {
    fn per_second(&self) -> f64 {
        self.count as f64 / self.seconds
    }
    fn cpu_each(&self) -> Option<f64> {
        self.cpu.map(|cpu| cpu / self.count as f64)
    }
}

/// Lets things get going, then looks at the counter and at the proxy's CPU twice.
fn watch(proxy: &Proxy, window: Duration, mut counter: impl FnMut() -> u64) -> Counted {
    std::thread::sleep(window / 4);
    let cpu = || proxy.tree.as_ref().map(|tree| tree.cpu().as_secs_f64());
    let (start, cpu_before, before) = (Instant::now(), cpu(), counter());
    std::thread::sleep(window);
    let (count, seconds, cpu_after) = (counter() - before, start.elapsed().as_secs_f64(), cpu());
    Counted { count, seconds, cpu: cpu_after.zip(cpu_before).map(|(after, before)| after - before) }
}
