//! Which form a client prefers (RFC 9110 §12.5.1).

/// Forms of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Form {
    Text,
    Html,
    Json,
}

/// The order that decides where the client has no preference: a terminal says nothing, a browser always names HTML.
const FORMS: [(Form, &str, &str); 3] =
    [(Form::Text, "text", "plain"), (Form::Html, "text", "html"), (Form::Json, "application", "json")];

impl Form {
    pub(in crate::http) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

/// The form with the highest weight. Of equal ones, one that is named wins over one under a wildcard, then the one that
/// stands first; a client that accepts none gets text.
pub(in crate::http) fn choose(accept: Option<&str>) -> Form {
    let Some(accept) = accept else { return Form::Text };
    let rated = FORMS.iter().filter_map(|(form, kind, subtype)| Some((*form, rate(accept, kind, subtype)?)));
    // The first of equals: `max_by` keeps the last one.
    rated.rev().max_by_key(|(_, rating)| *rating).map_or(Form::Text, |(form, _)| form)
}

/// (weight in thousandths, how exactly it is named, how early), if it is accepted at all.
fn rate(accept: &str, kind: &str, subtype: &str) -> Option<(u16, u8, std::cmp::Reverse<usize>)> {
    let mut best: Option<(u8, u16, usize)> = None;
    for (at, item) in accept.split(',').enumerate() {
        let mut parts = item.split(';').map(str::trim);
        let Some((type_, sub)) = parts.next().and_then(|range| range.split_once('/')) else { continue };
        let exactness = match () {
            () if type_.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) => 2,
            () if type_.eq_ignore_ascii_case(kind) && sub == "*" => 1,
            () if type_ == "*" && sub == "*" => 0,
            () => continue,
        };
        let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="))).map_or(1000, weight);
        // The most exact range decides, whatever its weight.
        if best.is_none_or(|(before, ..)| exactness > before) {
            best = Some((exactness, q, at));
        }
    }
    best.filter(|(_, q, _)| *q > 0).map(|(exactness, q, at)| (q, exactness, std::cmp::Reverse(at)))
}

/// `0.5` → 500; what is no weight counts as none.
fn weight(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return 0;
    }
    match whole {
        "1" => 1000,
        "0" => format!("{fraction:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminals_browsers_and_programs_get_their_own_form() {
        for (accept, wanted) in [
            (None, Form::Text),
            (Some("*/*"), Form::Text),
            (Some("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"), Form::Html),
            (Some("application/json"), Form::Json),
            (Some("application/json, text/plain, */*"), Form::Json),
            (Some("text/plain, application/json"), Form::Text),
            (Some("application/json;q=0.4, text/html;q=0.5"), Form::Html),
            (Some("text/html;q=0, */*;q=0.1"), Form::Text),
            (Some("text/*;q=0.2, application/*;q=0.3"), Form::Json),
            (Some("text/html;level=1;q=0.9, application/json;q=0.95"), Form::Json),
            (Some("TEXT/HTML"), Form::Html),
            (Some("text/html;q=banana, application/json;q=0.1"), Form::Json),
            (Some("image/png"), Form::Text),
            (Some(""), Form::Text),
            (Some(";;,/,*"), Form::Text),
        ] {
            assert_eq!(choose(accept), wanted, "{accept:?}");
        }
    }

    proptest! {
        #[test]
        fn any_accept_is_answered(accept in "\\PC{0,120}") {
            choose(Some(&accept));
        }
        #[test]
        fn the_higher_weight_wins(html in 0u16..=1000, json in 0u16..=1000) {
            prop_assume!(html != json);
            let q = |n: u16| if n == 1000 { "1".to_owned() } else { format!("0.{n:03}") };
            let chosen = choose(Some(&format!("text/html;q={}, application/json;q={}", q(html), q(json))));
            prop_assert_eq!(chosen, if html > json { Form::Html } else { Form::Json });
        }
    }
}
