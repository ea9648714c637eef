//! Commands: output, input, limits, deadlines.
use super::*;
use crate::fault::Class;

#[tokio::test]
async fn a_command_answers_with_output_status_and_path() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let output = link.exec(&host(), &sshd.paths(), "cat; echo problem >&2; exit 7", b"hello", limits()).await.unwrap();
    assert_eq!(output.stdout, b"hello");
    assert_eq!(output.stderr, b"problem\n");
    assert_eq!((output.status, output.path.as_str()), (Some(7), "primary"));
}

#[tokio::test]
async fn a_large_input_comes_back_whole() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let input: Vec<u8> = (0..900_000u32).map(|n| (n % 251) as u8).collect();
    let output = sshd.link().exec(&host(), &sshd.paths(), "cat", &input, limits()).await.unwrap();
    assert_eq!(output.stdout, input);
}

#[tokio::test]
async fn input_that_nobody_reads_does_not_hold_the_answer() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let input = vec![b'x'; 8 << 20];
    let output = sshd.link().exec(&host(), &sshd.paths(), "exec <&-; echo done", &input, limits()).await.unwrap();
    assert_eq!(output.stdout, b"done\n");
}

#[tokio::test]
async fn too_much_output_is_refused_and_the_next_command_runs() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let few = ExecLimits { stdout: 1000, ..limits() };
    let error = link.exec(&host(), &sshd.paths(), "yes", b"", few).await.unwrap_err();
    assert_eq!((error.stage, error.class), (Stage::Limit, Class::Refused));
    assert!(error.to_string().ends_with("answered more than 1000 bytes"), "{error}");
    assert_eq!(link.exec(&host(), &sshd.paths(), "echo ok", b"", few).await.unwrap().stdout, b"ok\n");
}

#[tokio::test]
async fn too_much_output_can_be_cut_instead() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let few = ExecLimits { stdout: 1000, ..limits() };
    let output = link.exec_cut(&host(), &sshd.paths(), "yes", b"", few).await.unwrap();
    assert_eq!((output.stdout, output.status, output.cut), (b"y\n".repeat(500), None, true));
    let output = link.exec_cut(&host(), &sshd.paths(), "yes | head -c 1000", b"", few).await.unwrap();
    assert_eq!(
        (output.stdout.len(), output.status, output.cut),
        (1000, Some(0), false),
        "the limit itself is no excess"
    );
}

#[tokio::test]
async fn a_knock_tells_each_path_for_itself_and_leaves_no_session() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let closed = format!("{}:{}", sshd.address, sshd.port + 1);
    let dead = ConnectionPath { name: "lan".into(), destination: closed.parse().unwrap() };
    let link = sshd.link();
    let knock = link.knock(&sshd.paths()[0]).await.unwrap();
    assert!(knock.session > Duration::ZERO && knock.round_trip > Duration::ZERO, "{knock:?}");
    let error = link.knock(&dead).await.unwrap_err();
    assert_eq!(error.to_string(), format!("connect to {closed}: Connection refused (os error 111)"));
    assert!(link.pool.sessions().is_empty());
}

#[tokio::test]
async fn a_flood_on_standard_error_keeps_its_beginning() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let command = "yes | head -c 3000000 >&2; echo end";
    let output = sshd.link().exec(&host(), &sshd.paths(), command, b"", limits()).await.unwrap();
    assert_eq!((output.stderr.len(), output.stdout.as_slice()), (64 * 1024, &b"end\n"[..]));
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_given_up_in_time() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap();
    let brief = ExecLimits { deadline: Duration::from_millis(300), ..limits() };
    let began = Instant::now();
    let error = link.exec(&host(), &sshd.paths(), "echo part; sleep 60", b"", brief).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!((error.stage, error.class), (Stage::Exec, Class::Timeout));
    let wanted = format!("command on {}:{} gave no complete answer within 0.3s", sshd.address, sshd.port);
    assert_eq!(error.to_string(), wanted);
    assert_eq!(link.exec(&host(), &sshd.paths(), "echo ok", b"", limits()).await.unwrap().stdout, b"ok\n");
}

#[tokio::test]
async fn a_signal_leaves_no_status_and_is_named() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let output = sshd.link().exec(&host(), &sshd.paths(), "exec sh -c 'kill -TERM $$'", b"", limits()).await.unwrap();
    assert_eq!(output.status, None);
    assert_eq!(output.stderr, b"ended by signal TERM\n");
}

#[tokio::test]
async fn commands_share_one_session_and_a_dead_one_is_replaced() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    for _ in 0..3 {
        link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap();
    }
    assert_eq!(sshd.log().matches("Accepted publickey").count(), 1, "{}", sshd.log());
    sshd.kill_sessions();
    assert_eq!(link.exec(&host(), &sshd.paths(), "echo back", b"", limits()).await.unwrap().stdout, b"back\n");
}

#[tokio::test]
async fn paths_are_tried_in_order_and_all_failures_are_told() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let closed = format!("{}:{}", sshd.address, sshd.port + 1);
    let path = |name: &str, to: &str| ConnectionPath { name: name.into(), destination: to.parse().unwrap() };
    let good = format!("{}:{}", sshd.address, sshd.port);
    let paths = [path("primary", &closed), path("lan", &good)];
    let link = sshd.link();
    assert_eq!(link.exec(&host(), &paths, "true", b"", limits()).await.unwrap().path, "lan");
    let down = [path("primary", &closed), path("lan", &closed)];
    let error = link.exec(&host(), &down, "true", b"", limits()).await.unwrap_err();
    let cause = format!("connect to {closed}: Connection refused (os error 111)");
    let wanted = format!("no registry SSH connection path answered (primary: {cause}; lan: {cause})");
    assert_eq!((error.to_string(), error.class), (wanted, Class::InfraDown));
}
