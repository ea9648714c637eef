//! `stado man`: the manual pages, made from the programs' own description of themselves.
use crate::args::{Devmesh, Devmeshd, ManArgs, Stado};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use clap::CommandFactory;
use clap_mangen::Man;

/// Prints one page, or writes all of them.
pub(crate) async fn man(args: ManArgs) -> Verb {
    match &args.dir {
        Some(dir) => {
            let cannot = |e: std::io::Error| Failure::here(format!("cannot write pages to {}: {e}", dir.display()));
            std::fs::create_dir_all(dir).map_err(cannot)?;
            for program in [Stado::command(), Devmesh::command(), Devmeshd::command()] {
                clap_mangen::generate_to(program, dir).map_err(cannot)?;
            }
        }
        None => ui::raw(&page(&args.command)?)?,
    }
    Ok(Outcome::Done)
}

/// The page of `stado WORDS…`.
fn page(words: &[String]) -> Result<Vec<u8>, Failure> {
    let mut command = Stado::command();
    command.build();
    let mut name = "stado".to_owned();
    for word in words {
        let verb = command.find_subcommand(word).filter(|verb| !verb.is_hide_set()).cloned();
        command = verb.ok_or_else(|| Failure::usage(format!("{name} has no command {word:?}")))?;
        name = format!("{name}-{word}");
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|e| Failure::here(format!("cannot write the page: {e}")))?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &[&str]) -> Result<String, Failure> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        page(&words).map(|page| String::from_utf8(page).unwrap())
    }

    #[test]
    fn every_command_has_a_page_that_says_what_it_does() {
        let service = text(&["service", "resolve"]).unwrap();
        assert!(service.contains(".TH stado-service-resolve 1"), "{service}");
        assert!(
            service.contains("Print the stable address of one service") && service.contains("\\-\\-raw"),
            "{service}"
        );
        assert!(text(&[]).unwrap().contains(".SH SUBCOMMANDS"));
        assert!(
            text(&["service", "nothing"]).unwrap_err().message.contains("stado-service has no command \"nothing\"")
        );
        assert!(text(&["resolver", "relay"]).is_err(), "what other hosts run is no command for people");
    }
}
