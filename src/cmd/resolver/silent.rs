//! Hosts that this one, the authority, does not hear from. Pure.
use jiff::{SignedDuration, Timestamp};
use stado_fleet::authority::Heard;

/// A host says each minute what it holds.
const SILENT: SignedDuration = SignedDuration::from_secs(180);
/// Hosts that are named.
const NAMED: usize = 5;

/// Which hosts have gone silent, and since when: as seen from here it is their network, their resolver or the machine.
pub(super) fn sentence(heard: &[Heard], now: Timestamp) -> Option<String> {
    let mut silent: Vec<(Timestamp, &str)> =
        heard.iter().filter_map(|heard| Some((since(heard, now)?, heard.holding.target.as_str()))).collect();
    silent.sort();
    let (first, _) = silent.first()?;
    let first = first.strftime("%Y-%m-%dT%H:%M:%SZ");
    let why = "cut off, stopped or turned off; it goes on with what it has, and hears of changes when it is back";
    if let [(_, host)] = &silent[..] {
        return Some(format!("nothing is heard from {host} since {first}: it is {why}"));
    }
    let names: Vec<&str> = silent.iter().take(NAMED).map(|(_, host)| *host).collect();
    let more = match silent.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more (`stado registry holders`)"),
    };
    Some(format!("nothing is heard from {}{more}, of the first since {first}: each is {why}", names.join(", ")))
}

fn since(heard: &Heard, now: Timestamp) -> Option<Timestamp> {
    let at: Timestamp = heard.at.parse().ok()?;
    let gone = heard.gone_at.as_deref().and_then(|gone| gone.parse().ok());
    gone.or_else(|| (now.duration_since(at) > SILENT).then_some(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stado_fleet::authority::Holding;

    fn host(name: &str, at: &str, gone: Option<&str>) -> Heard {
        let holding = Holding { target: name.into(), ..Holding::default() };
        Heard { at: format!("2026-12-01T{at}.5Z"), gone_at: gone.map(|gone| format!("2026-12-01T{gone}.5Z")), holding }
    }

    #[test]
    fn a_host_is_missed_when_its_watch_ended_or_its_word_is_old() {
        let now = "2026-12-01T12:00:00Z".parse().unwrap();
        assert_eq!(sentence(&[host("lap", "11:58:00", None)], now), None, "a sleeping minute is no silence");
        let told = sentence(&[host("lap", "11:58:00", Some("11:59:10"))], now).unwrap();
        assert!(told.starts_with("nothing is heard from lap since 2026-12-01T11:59:10Z: it is cut off, "), "{told}");
        let old = sentence(&[host("lap", "10:00:00", None)], now).unwrap();
        assert!(old.contains("from lap since 2026-12-01T10:00:00Z"), "{old}");
        let many: Vec<Heard> = (0..7).map(|n| host(&format!("h{n}"), &format!("0{n}:00:00"), None)).collect();
        let told = sentence(&many, now).unwrap();
        let begins = "nothing is heard from h0, h1, h2, h3, h4 and 2 more (`stado registry holders`), of the first since \
                      2026-12-01T00:00:00Z: each is ";
        assert!(told.starts_with(begins), "{told}");
    }
}
