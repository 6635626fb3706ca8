//! Tests of the diagnostics log in a record, with the level that `TAILBOUND_LOG` sets.

use crate::support::processes::Killed;
use crate::support::{Bench, exit_and_stderr, succeeded};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;
use tailbound_model::{Answer, Ask};
use tailbound_wire::{Frame, FrameReader, Hello, Message, PROTOCOL_MAX, PROTOCOL_MIN, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const STUDY: &str = "study: log\nquestion: q\nmeasure: { ping-pong: { slots: 50, timeout: 1 s } }\nrate: 1 kHz\n\
                     driver: udp\npath: loopback\nplace: process\npayload: 64 B\n";

fn logs(level: &str) -> [String; 3] {
    let bench = Bench::new();
    let mut command = bench.to_run(bench.tailbound(), "record", STUDY);
    let output = command.env("TAILBOUND_LOG", level).output().unwrap();
    succeeded(&output);
    let printed = [output.stdout, output.stderr].concat();
    assert!(!String::from_utf8_lossy(&printed).contains("agent begins"), "nothing goes to the terminal");
    ["controller.log", "agent-ping.log", "agent-pong.log"]
        .map(|name| std::fs::read_to_string(bench.path("record/logs").join(name)).unwrap_or_default())
}

#[test]
fn controller_and_agents_log_into_the_record() {
    let [controller, ping, pong] = logs("debug");
    for line in ["run begins", "agent started", "measuring begins", "trial has ended"] {
        assert!(controller.contains(line), "{line}: {controller}");
    }
    for agent in [ping, pong] {
        assert!(agent.contains("agent begins") && agent.contains("measuring process started"), "{agent}");
    }
}

#[test]
fn no_line_is_logged_when_the_log_is_off() {
    assert_eq!(logs("off"), [const { String::new() }; 3]);
}

fn say(message: Message) -> Vec<u8> {
    encode(&Frame::Message(Box::new(message)))
}

/// Asks an agent that a holder has started for its log, as the controller does when it leaves a host.
fn log_of_held_agent(level: &str) -> String {
    let bench = Bench::new();
    let socket = bench.path("held/socket");
    let mut command = bench.tailbound();
    command.args(["agent", "hold", "--socket"]).arg(&socket).stderr(Stdio::null());
    let mut holder = Killed(command.spawn().unwrap());
    while UnixStream::connect(&socket).is_err() {
        assert!(holder.0.try_wait().unwrap().is_none(), "the holder ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    let hello = Hello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        tailbound: env!("CARGO_PKG_VERSION").into(),
        session: "test".into(),
        capabilities: vec![format!("log:{level}")],
        lease_ns: 0,
        boot_id: String::new(),
        clock: String::new(),
        pid: 0,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ((mut ours, input), (output, mut theirs)) = (duplex(1 << 16), duplex(1 << 16));
        let open = async || Ok(tokio::net::UnixStream::connect(&socket).await?.into_split());
        let words = ["agent".to_owned()];
        let joined = tailbound_stream::join("s", &words, open, input, output, Duration::from_secs(20));
        let asked = async {
            let mut reader = FrameReader::default();
            ours.write_all(&say(Message::Hello(hello))).await.unwrap();
            ours.write_all(&say(Message::Ask(Ask::Log))).await.unwrap();
            let lines = loop {
                match reader.next_frame().unwrap() {
                    Some(Frame::Message(message)) => match *message {
                        Message::Answer(Answer::Log(lines)) => break lines,
                        Message::Hello(_) => {}
                        other => panic!("{other:?}"),
                    },
                    Some(Frame::Memory { .. }) => panic!("sample memory that nobody asked for"),
                    None => {
                        let mut buffer = [0; 4096];
                        let n = theirs.read(&mut buffer).await.unwrap();
                        assert!(n > 0, "the agent has ended");
                        reader.push(&buffer[..n]);
                    }
                }
            };
            ours.write_all(&say(Message::Bye)).await.unwrap();
            lines
        };
        let (joined, lines) = tokio::join!(joined, asked);
        assert!(joined.unwrap().success());
        lines
    })
}

#[test]
fn an_agent_answers_with_its_log_and_with_the_log_of_its_holder() {
    let lines = log_of_held_agent("info");
    for line in ["INFO holder listens", "INFO session begins", "INFO agent begins"] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    assert!(!lines.contains("DEBUG"), "{lines}");
    assert!(log_of_held_agent("debug").contains("DEBUG question of the controller"), "the level is the controller's");
    assert_eq!(log_of_held_agent("off"), "");
}

#[cfg(feature = "system-tests")]
/// Starts `tailbound pod stream`, the process that connects a control stream to a pod. There is no cluster, so the
/// process fails. Returns its standard error and its log.
fn stream_to_no_pod(level: &str) -> (String, String) {
    let bench = Bench::new();
    let mut command = bench.tailbound();
    let spec = r#"{"name":"pong","kubeconfig":"/nonexistent/config","cpus":1,"memory_mib":64}"#;
    command.args(["pod", "stream", "--spec", spec, "--namespace", "here", "--name", "p", "--", "agent"]);
    command.env("TAILBOUND_LOG", level).env("TAILBOUND_LOG_FILE", bench.path("pod.log")).env_remove("KUBECONFIG");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (code, printed) = exit_and_stderr(&output);
    assert_ne!(code, 0, "{printed}");
    (printed, std::fs::read_to_string(bench.path("pod.log")).unwrap_or_default())
}

#[cfg(feature = "system-tests")]
#[test]
fn the_process_that_carries_a_stream_to_a_pod_logs_into_the_file_of_the_controller() {
    let (printed, lines) = stream_to_no_pod("info");
    assert!(lines.contains("INFO stream begins pod=\"p\" namespace=\"here\" command=\"agent\""), "{lines}");
    assert!(lines.contains("WARN a command for the Kubernetes cluster failed"), "{lines}");
    assert!(!printed.contains("stream begins"), "standard error is for the user: {printed}");
    let (printed_without, no_lines) = stream_to_no_pod("off");
    assert_eq!((printed_without, no_lines), (printed, String::new()), "the log changes no message");
}
