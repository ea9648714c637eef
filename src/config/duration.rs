use std::time::Duration;

/// Reads a duration as the mesh's files and flags write it: `15s`, `1h0m0s`, `1.5s`, `500ms`; `0` needs no unit.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    rest = rest.strip_prefix('+').unwrap_or(rest);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        seconds += number.parse::<f64>().ok()? * seconds_of(unit)?;
        rest = tail;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

/// Writes a duration the same way: `3s`, `10m0s`, `1h0m0s`, `500ms`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let millis = duration.subsec_millis();
    if seconds == 0 && millis > 0 {
        return format!("{millis}ms");
    }
    let tail = match millis {
        0 => format!("{}s", seconds % 60),
        _ => format!("{}.{}s", seconds % 60, format!("{millis:03}").trim_end_matches('0')),
    };
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => tail,
        (0, minutes) => format!("{minutes}m{tail}"),
        (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_first_implementation_wrote() {
        let ms = |text| parse_duration(text).map(|d| d.as_millis());
        assert_eq!(ms("15s"), Some(15_000));
        assert_eq!(ms("1h0m0s"), Some(3_600_000));
        assert_eq!(ms("1.5s"), Some(1_500));
        assert_eq!(ms("500ms"), Some(500));
        assert_eq!(ms("0"), Some(0));
        for bad in ["", "bogus", "15", "5 s", "-5s", "s", "1x", "1e9999h", "..s"] {
            assert_eq!(ms(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn writes_them_back() {
        for text in ["3s", "1h0m0s", "10m0s", "1m30s", "500ms", "1.5s", "0s"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
    }
}
