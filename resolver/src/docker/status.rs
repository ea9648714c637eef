//! What `status` says of containers.
use stado_fleet::wire::{EngineReport, Refused, RefusedList};

/// Refusals that are told one by one; the rest is counted.
const TOLD: usize = 20;

/// One sentence for each thing that a person may want to know. An engine that was never there is none.
pub fn warnings(list: &RefusedList) -> Vec<String> {
    let mut all: Vec<String> = list.docker.iter().filter_map(engine).collect();
    all.extend(list.refused.iter().take(TOLD).map(refused));
    if let Some(more) = list.refused.len().checked_sub(TOLD).filter(|more| *more > 0) {
        all.push(format!("{more} more containers are not served: `stado service list --refused`"));
    }
    all
}

fn engine(engine: &EngineReport) -> Option<String> {
    let error = engine.error.as_ref().filter(|_| engine.reached && engine.status != "connected")?;
    Some(format!("containers are not watched since {}: {error}; what they published keeps being served", engine.since))
}

fn refused(row: &Refused) -> String {
    format!("container {} {}; {}", row.container, row.sentence(), row.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_an_engine_is_not_warned_about() {
        let never = EngineReport { status: "degraded".into(), error: Some("gone".into()), ..EngineReport::default() };
        let lost = EngineReport { reached: true, since: "T".into(), ..never.clone() };
        let told = |docker: &EngineReport| warnings(&RefusedList { docker: Some(docker.clone()), refused: Vec::new() });
        assert!(told(&never).is_empty());
        assert_eq!(told(&lost).len(), 1);
        assert!(told(&lost).iter().all(|line| line.contains("not watched since T: gone")));
    }

    #[test]
    fn many_refusals_are_counted() {
        let list = RefusedList { docker: None, refused: vec![Refused::default(); TOLD + 3] };
        let told = warnings(&list);
        assert_eq!(told.len(), TOLD + 1);
        assert!(told.last().is_some_and(|line| line.starts_with("3 more")));
    }
}
