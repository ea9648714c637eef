use super::*;
use crate::fixture::{EXAMPLES, any_document, example_path};
use proptest::prelude::*;

/// The library's own reading: the oracle.
fn library(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

const NONE: Limits = Limits { depth: usize::MAX, values: usize::MAX };

fn agree(text: &str) -> Result<(), TestCaseError> {
    let (ours, library) = (parse(text, NONE), library(text));
    match (&ours, &library) {
        (Ok(ours), Some(library)) => prop_assert!(super::super::number::same(&ours.value, library), "{}", text),
        (Err(_), None) => {}
        _ => prop_assert!(false, "{text:?}: {ours:?}, the library: {library:?}"),
    }
    Ok(())
}

#[test]
fn the_examples_are_read_as_the_library_reads_them() {
    for name in EXAMPLES {
        agree(&std::fs::read_to_string(example_path(name)).unwrap()).unwrap();
    }
}

#[test]
fn odd_forms_are_accepted_or_not_as_by_the_library() {
    let texts = [
        "1",
        "\"a\"",
        "null",
        "nul",
        "nullx",
        "true",
        "tru",
        "false ",
        "[]",
        "[ ]",
        "{ }",
        "[1,]",
        "[,1]",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\" 1}",
        "{a:1}",
        "{\"a\":}",
        "[1 2]",
        "01",
        "-",
        "-0",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "1E-7",
        "1.0e5.",
        "+1",
        "0x1",
        "1_0",
        "NaN",
        "\"\t\"",
        "\"\\u0041\\n\"",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "\"\\x\"",
        "\"\\",
        "\"",
        "\"é\\\"\"",
        "\u{feff}{}",
        "{}\u{a0}",
        " \n\r\t{} \n",
        "\u{b}{}",
        "{} {}",
        "",
        "[",
        "{\"a\":[",
        "/**/1",
        "'a'",
        "\"\\u00e\"",
        "\"\\é\"",
        "\"\u{7f}\"",
        "123456789012345678901234567890.1E+999",
    ];
    texts.iter().for_each(|text| agree(text).unwrap());
}

#[test]
fn very_many_values_are_refused() {
    let four = Limits { values: 4, ..NONE };
    assert!(parse("{\"a\":[0,1]}", four).is_ok());
    let error = parse("{\"a\":[0,1,2]}", four).unwrap_err();
    assert_eq!(error.0, "registry document holds more than 4 values; no registry needs that");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn any_text_is_accepted_or_not_as_by_the_library(text in "[\\[\\]{}:,\"\\\\ a1e0.u\\-+\n]{0,40}") {
        agree(&text)?;
    }

    #[test]
    fn any_number_is_read_as_by_the_library(text in "-?[0-9]{0,3}\\.?[0-9]{0,3}[eE]?[+-]?[0-9]{0,3}") {
        agree(&text)?;
        agree(&format!("[{text}]"))?;
    }

    #[test]
    fn any_string_is_read_as_by_the_library(text in any::<String>(), escape in "\\\\[\"/bfnrtuxd8c]{0,6}") {
        agree(&serde_json::to_string(&text).unwrap())?;
        agree(&format!("{{\"{escape}\":\"{escape}\"}}"))?;
    }

    #[test]
    fn a_damaged_document_is_accepted_or_not_as_by_the_library(
        value in any_document(), at in any::<prop::sample::Index>(), put in "[\\[\\]{}:,\"\\\\ 0a.-]", cut in any::<bool>()
    ) {
        let mut text = format!("{value:#}");
        let mut at = at.index(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        if cut {
            text.truncate(at);
        } else {
            text.insert_str(at, &put);
        }
        agree(&text)?;
    }
}
