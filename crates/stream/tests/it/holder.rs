//! Tests of sessions with real processes in a holder process, over connections that are cut.

use crate::support::*;
use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;
use std::time::Duration;
use tailbound_stream::{HoldError, JoinError, Over, hold, join};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, duplex, empty};

const PATIENCE: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(30);

#[test]
fn the_holder_process_of_other_tests() {
    be_the_holder();
}

/// Tests four sessions at the same time, each cut twenty times at a random byte, also within the greeting.
#[test]
fn every_byte_arrives_once_however_often_the_connection_is_cut() {
    const CUTS: u64 = 20;
    let dir = tempfile::tempdir().unwrap();
    let holder = Holder::start(dir.path(), LEASE);
    let random = RefCell::new(Random::new());
    let session = async |name: &str| {
        let data: Vec<u8> = (0..5 << 19).map(|_| random.borrow_mut().below(256) as u8).collect();
        let (opened, mut got) = (Cell::new(0), Vec::new());
        let socket = &holder.socket;
        let open = || {
            let n = opened.replace(opened.get() + 1);
            let bytes = || match n {
                CUTS.. => u64::MAX,
                n if n % 4 == 0 => 1 + random.borrow_mut().below(300),
                _ => 1 + random.borrow_mut().below(120_000),
            };
            cut_after(socket, (bytes(), bytes()))
        };
        let ended = join(name, &script("cat; exit 3"), open, &data[..], &mut got, PATIENCE).await.unwrap();
        assert_eq!((ended.status.code(), ended.success()), (Some(3), false));
        assert!(got == data, "{} octets of {} came back, or others", got.len(), data.len());
        assert_eq!(opened.get(), CUTS + 1);
    };
    block_on(async { tokio::join!(session("a"), session("b"), session("c"), session("d")) });
}

#[test]
fn output_that_nobody_reads_waits_in_the_process_and_not_in_memory() {
    const BYTES: usize = 100_000_000;
    let dir = tempfile::tempdir().unwrap();
    let holder = Holder::start(dir.path(), LEASE);
    let opened = Cell::new(0);
    block_on(async {
        let (mut theirs, ours) = duplex(1 << 16);
        let read = async {
            let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
            loop {
                let n = theirs.read(&mut buffer).await.unwrap();
                assert!((at..at + n).zip(&buffer).all(|(i, b)| b"0123456789\n"[i % 11] == *b), "near octet {at}");
                at += n;
                if n == 0 {
                    return at;
                }
            }
        };
        let open = async || {
            let n = opened.replace(opened.get() + 1);
            if n == 1 {
                // No client is connected while the process writes as much as the pipe accepts.
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            cut_after(&holder.socket, (u64::MAX, if n == 0 { 5000 } else { u64::MAX })).await
        };
        let command = script("yes 0123456789 | head -c 100000000");
        let joined = async { join("s", &command, open, empty(), ours, PATIENCE).await.unwrap() };
        let (ended, bytes) = tokio::join!(joined, read);
        assert!(ended.success());
        assert_eq!((bytes, opened.get()), (BYTES, 2));
    });
    let most = holder.memory("VmHWM");
    println!("the holder had {most} octets of memory at most");
    // Limit: bytes of memory, no time.
    assert!(most < 20_000_000, "{most} octets");
}

#[test]
fn a_killed_holder_is_noticed_and_a_new_holder_refuses_its_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Holder::start(dir.path(), LEASE);
    let socket = holder.socket.clone();
    let cat = script("cat");
    // The input of the session stays open.
    let (mut say, input) = duplex(100);
    let (output, mut hear) = duplex(100);
    let lost = block_on(async {
        let held = join("s", &cat, || open(&socket), input, output, Duration::from_secs(3));
        let kill = async {
            say.write_all(b"x").await.unwrap();
            hear.read_exact(&mut [0]).await.unwrap();
            holder.kill();
        };
        tokio::join!(held, kill).0.unwrap_err()
    });
    let text = "the connection to the process was lost, and no new one could be opened for 3 s: Connection refused (os error 111)";
    assert_eq!(lost.to_string(), text);

    let mut holder = Holder::start(dir.path(), LEASE);
    let (mut say, input) = duplex(100);
    let (output, mut hear) = duplex(100);
    let refused = block_on(async {
        let held = join("s", &cat, || open(&socket), input, output, PATIENCE);
        let replace = async {
            say.write_all(b"x").await.unwrap();
            hear.read_exact(&mut [0]).await.unwrap();
            holder.kill();
            // The new holder replaces the socket of the killed holder.
            holder = Holder::start(dir.path(), LEASE);
        };
        tokio::join!(held, replace).0
    });
    assert_eq!(refusal(refused), "this session has ended");
}

/// Sends a greeting to the holder and returns the first line of the holder's answer, with the connection.
async fn answer(socket: &Path, greeting: &str) -> (String, BufReader<Reader>, Writer) {
    let (reader, mut writer) = open(socket).await.unwrap();
    writer.write_all(format!("{greeting}\n").as_bytes()).await.unwrap();
    let (mut reader, mut line) = (BufReader::new(reader), String::new());
    reader.read_line(&mut line).await.unwrap();
    (line.trim_end().replace(env!("CARGO_PKG_VERSION"), "RELEASE"), reader, writer)
}

#[test]
fn a_session_that_has_ended_is_refused_and_a_new_connection_takes_over_one_that_lives() {
    let dir = tempfile::tempdir().unwrap();
    let holder = Holder::start(dir.path(), LEASE);
    let socket = &holder.socket;
    let greeting = |session: &str, received| {
        format!(r#"{{"session":"{session}","release":"0","command":["-c","cat"],"received":{received}}}"#)
    };
    block_on(async {
        let mut got = Vec::new();
        let ended = join("old", &script("cat"), || open(socket), &b"12345"[..], &mut got, PATIENCE).await.unwrap();
        assert!(ended.success() && got == b"12345");
        let refused = r#"{"refused":"this session has ended"}"#;
        // The holder forgets the session after the client has acknowledged the end.
        while answer(socket, &greeting("old", 5)).await.0 != refused {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(answer(socket, &greeting("never", 1)).await.0, refused);
        let told = answer(socket, "hello").await.0;
        assert!(told.starts_with(r#"{"refused":"the first line of the connection cannot be read: "#), "{told}");

        let (first, mut older, _writer) = answer(socket, &greeting("new", 0)).await;
        assert_eq!(first, r#"{"received":0,"new":true,"release":"RELEASE"}"#);
        let (second, _reader, _writer) = answer(socket, &greeting("new", 0)).await;
        assert_eq!(second, r#"{"received":0,"new":false,"release":"RELEASE"}"#);
        assert_eq!(older.read(&mut [0]).await.unwrap(), 0, "the older connection is closed");
        assert!(open(socket).await.is_ok(), "it was closed because the holder has ended");
    });
}

/// Tests that held processes end when the lease of their holder ends: the first held process ends with its standard
/// input, and the second must be killed. A process that the holder did not start continues.
#[test]
fn held_processes_end_with_the_lease() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Holder::start(dir.path(), Duration::from_secs(3));
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pids = block_on(async {
        let mut pids = Vec::new();
        for (session, text) in [("polite", "echo $$; exec cat"), ("deaf", "echo $$; exec sleep 1000")] {
            let (output, hear) = duplex(100);
            let (_say, input) = duplex(100);
            let (mut hear, mut line) = (BufReader::new(hear), String::new());
            let command = script(text);
            tokio::select! {
                joined = join(session, &command, || open(&holder.socket), input, output, PATIENCE) => panic!("{joined:?}"),
                read = hear.read_line(&mut line) => drop(read.unwrap()),
            }
            pids.push(line.trim().parse::<u32>().unwrap());
        }
        pids
    });
    assert!(pids.iter().all(|pid| Path::new(&format!("/proc/{pid}")).exists()));
    let mut said = String::new();
    io::Read::read_to_string(holder.process.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert!(holder.process.wait().unwrap().success());
    assert!(said.contains("over: no client has sent anything for 3 s"), "{said}");
    assert!(!holder.socket.exists());
    assert!(pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()), "{pids:?}");
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// Tests an input that ends long before the process, and a child of the process that keeps the output open.
#[test]
fn a_process_that_has_ended_is_reported_while_its_child_keeps_the_output_open() {
    let dir = tempfile::tempdir().unwrap();
    let holder = Holder::start(dir.path(), LEASE);
    let mut got = Vec::new();
    let command = script("sleep 1000 & echo $!; kill -9 $$");
    let ended = block_on(join("s", &command, || open(&holder.socket), &b""[..], &mut got, PATIENCE)).unwrap();
    assert_eq!(ended.status.to_string(), "signal: 9 (SIGKILL)");
    let left = String::from_utf8(got).unwrap().trim().to_owned();
    assert!(std::process::Command::new("kill").arg(left).status().unwrap().success());
}

#[test]
fn a_program_that_cannot_be_started_is_reported_to_the_client() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let nothing = || Ok(std::process::Command::new("/nowhere/tailbound"));
    let (refused, over) = block_on(async {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let held = hold(&socket, LEASE, nothing, async { drop(stopped.await) });
        let joined = async {
            let command = ["agent".to_owned()];
            let joined = join("s", &command, || open(&socket), empty(), Vec::new(), PATIENCE).await;
            stop.send(()).unwrap();
            joined
        };
        let (over, joined) = tokio::join!(held, joined);
        (joined, over.unwrap())
    });
    assert_eq!(refusal(refused), "cannot start `agent`: No such file or directory (os error 2)");
    assert_eq!((over, over.to_string().as_str()), (Over::Stopped, "it was stopped"));
}

#[test]
fn a_client_that_cannot_pass_data_on_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    let holder = Holder::start(dir.path(), LEASE);
    let (output, hear) = duplex(100);
    drop(hear);
    let command = script("echo x");
    let joined = join("s", &command, || open(&holder.socket), empty(), output, PATIENCE);
    let failed = block_on(joined).unwrap_err();
    assert!(matches!(failed, JoinError::Output(_)));
    assert_eq!(failed.to_string(), "the output of the held process cannot be written: broken pipe");
}

#[test]
fn a_socket_belongs_to_one_holder_and_only_its_user_may_connect() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let holder = Holder::start(dir.path(), LEASE);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&holder.socket), mode(holder.socket.parent().unwrap())), (0o600, 0o700));
    let refused =
        |path: &Path| -> HoldError { block_on(hold(path, LEASE, shell, std::future::pending())).unwrap_err() };
    let text = |path: &Path| refused(path).to_string().replace(dir.path().to_str().unwrap(), "DIR");
    assert_eq!(
        text(&holder.socket),
        "another holder runs at DIR/held/agent.sock: one holder is enough for a place, and a second holder needs another --socket"
    );
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    assert_eq!(text(&file), "DIR/file exists and is not a socket: name another path with --socket");
    assert_eq!(
        text(Path::new("/proc/tailbound/agent.sock")),
        "the socket /proc/tailbound/agent.sock cannot be made: No such file or directory (os error 2). \
         Name a path with --socket, in a directory that this user can write in"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}
