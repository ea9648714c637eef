//! Ages for people.

/// `just now`, `14m ago`, `3h ago`, `12d ago`.
pub(crate) fn ago(seconds: u64) -> String {
    if seconds < 60 { "just now".to_owned() } else { format!("{} ago", span(seconds)) }
}

/// `14m`, `3h`, `12d`.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_well() {
        assert_eq!([ago(5), ago(840), ago(7200), ago(1_036_800)], ["just now", "14m ago", "2h ago", "12d ago"]);
    }
}
