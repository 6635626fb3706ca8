//! Tests of the holder of agents (`tailbound agent hold`): messages to and from an agent survive the loss of the
//! connection.

use crate::support::processes::descendants;
use crate::support::{Bench, exit_and_stderr};
use std::cell::RefCell;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tailbound_model::{Answer, Ask};
use tailbound_stream::join;
use tailbound_wire::{Frame, FrameReader, Hello, Message, PROTOCOL_MAX, PROTOCOL_MIN, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const PATIENCE: Duration = Duration::from_secs(20);

fn signal(process: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// The process of `tailbound agent hold`, which is killed when this value is dropped.
struct Holder {
    process: Child,
    socket: PathBuf,
}

impl Holder {
    fn start(mut command: Command, socket: PathBuf) -> Holder {
        command.args(["agent", "hold", "--socket"]).arg(&socket).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        while UnixStream::connect(&socket).is_err() {
            assert!(process.try_wait().unwrap().is_none(), "the holder ended early");
            std::thread::sleep(Duration::from_millis(5));
        }
        Holder { process, socket }
    }

    /// Waits until the holder of agents ends. Returns its exit code and its standard error.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut printed = String::new();
        io::Read::read_to_string(self.process.stderr.as_mut().unwrap(), &mut printed).unwrap();
        (self.process.wait().unwrap().code(), printed)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The controller's side of the streams to and from an agent, as a test uses it.
struct Controller {
    input: DuplexStream,
    output: DuplexStream,
    reader: FrameReader,
}

impl Controller {
    async fn say(&mut self, message: Message) {
        self.input.write_all(&encode(&Frame::Message(Box::new(message)))).await.unwrap();
    }

    async fn hear(&mut self) -> Message {
        loop {
            match self.reader.next_frame().unwrap() {
                Some(Frame::Message(message)) => return *message,
                Some(Frame::Memory { .. }) => panic!("sample memory that nobody asked for"),
                None => {}
            }
            let mut buffer = [0; 4096];
            let n = self.output.read(&mut buffer).await.unwrap();
            assert!(n > 0, "the agent has ended");
            self.reader.push(&buffer[..n]);
        }
    }
}

/// Starts `tailbound agent relay`; its process is killed when the connection is dropped.
fn relay(bench: &Bench, holder: &Holder) -> io::Result<tokio::process::Child> {
    let mut command = bench.tailbound();
    command.args(["agent", "relay", "--socket"]).arg(&holder.socket).stdin(Stdio::piped()).stdout(Stdio::piped());
    tokio::process::Command::from(command).kill_on_drop(true).spawn()
}

/// Test: the next holder at the socket removes the log of a killed holder, as it replaces the socket.
#[test]
fn the_log_of_a_killed_holder_goes_with_its_socket() {
    let bench = Bench::new();
    let socket = bench.path("held/agent.sock");
    let start = || Holder::start(bench.tailbound(), socket.clone());
    let files = || {
        let files =
            std::fs::read_dir(bench.path("held")).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        files.collect::<std::collections::BTreeSet<_>>()
    };
    let of = |holder: &Holder| ["agent.sock".to_owned(), format!("agent.sock.{}.log", holder.process.id())].into();
    let mut killed = start();
    assert_eq!(files(), of(&killed));
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    assert_eq!(files(), of(&killed));
    let next = start();
    assert_eq!(files(), of(&next));
    signal(next.process.id(), "-TERM");
    assert_eq!(next.ended().0, Some(0));
    assert!(files().is_empty());
}

#[test]
fn an_agent_answers_though_its_relays_are_killed() {
    let bench = Bench::new();
    let holder = Holder::start(bench.tailbound(), bench.path("held/agent.sock"));
    let relays = RefCell::new(Vec::new());
    let open = async || {
        let mut relay = relay(&bench, &holder)?;
        let streams = (relay.stdout.take().unwrap(), relay.stdin.take().unwrap());
        relays.borrow_mut().push(relay);
        Ok(streams)
    };
    let cut = || relays.borrow_mut().last_mut().unwrap().start_kill().unwrap();
    let (input, theirs) = duplex(1 << 16);
    let (ours, output) = duplex(1 << 16);
    let mut controller = Controller { input, output, reader: FrameReader::default() };
    let talk = async {
        let hello = Hello {
            protocol_min: PROTOCOL_MIN,
            protocol_max: PROTOCOL_MAX,
            tailbound: env!("CARGO_PKG_VERSION").into(),
            session: "s".into(),
            capabilities: Vec::new(),
            lease_ns: 30_000_000_000,
            boot_id: String::new(),
            clock: String::new(),
            pid: 0,
        };
        controller.say(Message::Hello(hello)).await;
        let Message::Hello(agent) = controller.hear().await else { panic!("it does not begin with hello") };
        for cuts in 1..=3 {
            cut();
            controller.say(Message::Ask(Ask::Facts)).await;
            let Message::Answer(Answer::Facts(facts)) = controller.hear().await else { panic!("no facts") };
            assert_eq!(facts.boot_id, agent.boot_id);
            assert!(relays.borrow().len() > cuts, "the connection was not cut");
        }
        // At this moment the question or the answer may be in transit.
        controller.say(Message::Ask(Ask::Cpus)).await;
        cut();
        assert!(matches!(controller.hear().await, Message::Answer(Answer::Cpus(_))));
        assert_eq!(descendants(holder.process.id() as i32), [agent.pid], "it is the same agent");
        drop(controller);
    };
    let command = ["agent".to_owned(), "--run-token".into(), "held".into()];
    let joined = join("s", &command, open, theirs, ours, PATIENCE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ended, ()) = runtime.block_on(async { tokio::join!(joined, talk) });
    assert!(ended.unwrap().success());
    drop(runtime);

    signal(holder.process.id(), "-TERM");
    let socket = holder.socket.clone();
    let (code, stderr) = holder.ended();
    // The agents of the holder write the first lines of their diagnostics log to its standard error too.
    let own: Vec<&str> = stderr.lines().filter(|line| !line.contains(" INFO agent begins ")).collect();
    assert_eq!((code, own), (Some(0), vec!["tailbound agent hold: it was stopped"]));
    assert!(!socket.exists());
}

#[test]
fn a_relay_without_a_holder_names_what_is_missing() {
    let bench = Bench::new();
    let output = bench.tailbound().args(["agent", "relay", "--socket", "nowhere.sock"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

#[test]
fn a_holder_without_a_socket_names_the_reason() {
    let bench = Bench::new();
    std::fs::write(bench.path("file"), "").unwrap();
    let socket = bench.path("agent.sock");
    let holder = Holder::start(bench.tailbound(), socket.clone());
    let mut texts = String::new();
    for given in [socket.to_str().unwrap(), "file", "/proc/tailbound/agent.sock"] {
        let output = bench.tailbound().args(["agent", "hold", "--socket", given]).output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        texts += &format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH"));
    }
    let output = bench.tailbound().args(["agent", "hold", "--lease", "30"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    texts += &format!("exit {code}\n{text}");
    drop(holder);
    insta::assert_snapshot!(texts);
}

/// Test: as the first process of a container, the holder reaps processes whose parents have ended, reports how its own
/// processes ended, and ends on SIGTERM.
#[test]
#[cfg_attr(not(feature = "system-tests"), ignore = "makes a process namespace: dev/test --all")]
fn the_first_process_of_a_container_collects_orphans() {
    if !crate::support::host::is_root() {
        println!("skipped: a process namespace needs root");
        return;
    }
    let bench = Bench::new();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(bench.tailbound().get_program());
    let holder = Holder::start(command, bench.path("agent.sock"));
    let children = |pid: i32| {
        let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        list.split_whitespace().map(|child| child.parse::<i32>().unwrap()).collect::<Vec<_>>()
    };
    let first = children(holder.process.id() as i32)[0];
    let wait_for = |count: usize| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while children(first).len() != count {
            assert!(Instant::now() < deadline, "children of the first process: {:?}", children(first));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_for(1);
    let mut inside = Command::new("nsenter");
    inside.args(["--pid", "--mount", "--target", &first.to_string(), "sh", "-c", "sleep 3 & sleep 3 &"]);
    assert!(inside.status().unwrap().success());
    wait_for(3);
    wait_for(1);

    // The exit status of a held process is reported by the holder.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let command = ["--version".to_owned()];
    let mut printed = Vec::new();
    let open = async || Ok(tokio::net::UnixStream::connect(&holder.socket).await?.into_split());
    let ended = runtime.block_on(join("s", &command, open, tokio::io::empty(), &mut printed, PATIENCE)).unwrap();
    assert!(ended.success() && printed.starts_with(b"tailbound "), "{ended:?}");

    signal(first as u32, "-TERM");
    assert_eq!(holder.ended(), (Some(0), "tailbound agent hold: it was stopped\n".into()));
}
