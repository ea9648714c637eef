use super::patience;
use crate::args::HostExecArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::input;
use crate::cmd::remote::{Remote, quoted};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, clean};
use serde_json::json;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::link::{ExecLimits, ExecOutput};
use std::path::Path;

/// `host exec`: one command, its output and its exit code. What the command says is shown so that it cannot steer the
/// terminal, unless it is asked for byte for byte.
pub(crate) async fn exec(args: HostExecArgs, env: &Env) -> Verb {
    let limits = ExecLimits { stdout: args.max_output, deadline: patience(&args.timeout)? };
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let remote = Remote::of(&fleet, &answer.snapshot.valid.registry, &args.target)?;
    remote.reachable()?;
    let stdin = if args.stdin { input::read(Path::new("-"), "the command's")? } else { Vec::new() };
    let output = remote.run(&line(&args.command), &stdin, limits).await?;
    print(&args, &remote, &output)?;
    end(&args, &output)
}

/// One word is a line for the shell; several are a program and its arguments, each kept whole.
fn line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

fn print(args: &HostExecArgs, remote: &Remote<'_>, output: &ExecOutput) -> Result<(), Failure> {
    if args.json {
        return ui::json(&json!({
            "target": remote.name, "path": output.path, "ssh": remote.destination(&output.path),
            "exit_code": output.status, "cut": output.cut,
            "stdout": clean::lines(&output.stdout), "stderr": clean::lines(&output.stderr),
        }));
    }
    if args.raw {
        ui::raw(&output.stdout)?;
        ui::raw_error(&output.stderr);
        return Ok(());
    }
    ui::print(&clean::lines(&output.stdout))?;
    ui::raw_error(clean::lines(&output.stderr).as_bytes());
    Ok(())
}

/// The command's own exit code; one that left none is a failure.
fn end(args: &HostExecArgs, output: &ExecOutput) -> Verb {
    let HostExecArgs { target, max_output, .. } = args;
    match output.status.map(u8::try_from) {
        Some(Ok(code)) => Ok(Outcome::Child(code)),
        Some(Err(_)) => Ok(Outcome::No),
        None if output.cut => Err(Failure::refused(format!(
            "the command on {target} said more than {max_output} bytes and was ended there; --max-output takes more of it"
        ))),
        None => Err(Failure::new(
            Class::Unknown,
            Blame::Service,
            format!("the command on {target} ended without an exit code; what ended it is the last line of its errors"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_a_line_and_several_are_a_program() {
        let words = |words: &[&str]| line(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(words(&["ls | wc -l"]), "ls | wc -l");
        assert_eq!(words(&["printf", "%s", "it's $HOME; x"]), r"'printf' '%s' 'it'\''s $HOME; x'");
    }
}
