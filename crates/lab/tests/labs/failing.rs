//! Tests of labs that fail, that a process still uses, or whose owner is killed.

use crate::support::{Skip, block_on, interfaces_of, journal, made, sleeper, this_program, veth, wait_until};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tailbound_host::{Journal, journal as journals};
use tailbound_lab::netns::{NetNs, processes_in};
use tailbound_lab::{Lab, LabError, Privilege, userns};
use tailbound_model::{PathSpec, Undo};

/// Finds the namespaces to which open descriptors of a process refer: path of the descriptor, and inode of the
/// namespace.
fn held_by(pid: u32) -> Vec<(String, u64)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let held = entries.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
        Some((entry.path().to_str()?.to_owned(), inode))
    });
    held.collect()
}

/// Tests that a failure at any step leaves nothing behind: the limit of open descriptors is varied, so that different
/// steps fail.
pub fn at_any_step() -> Result<(), Skip> {
    let journal = journal("failing");
    // The first runtime of a process opens descriptors for signals and panics if it cannot; this is not part of the
    // test.
    block_on(async {});
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let mut failures = Vec::new();
    let mut stood = false;
    for allowed in open..open + 60 {
        setrlimit(Resource::RLIMIT_NOFILE, allowed, hard).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result = runtime.map(|r| r.block_on(Lab::up(&made(PathSpec::Bridge { mtu: None }), "failing", &journal)));
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        match result {
            Err(_) => {}
            Ok(Err(error)) => {
                assert_eq!(journal.open_entries(), [], "after: {error}");
                assert_eq!(held_by(std::process::id()), [], "after: {error}");
                failures.push(error.to_string());
            }
            Ok(Ok(lab)) => {
                block_on(lab.down(&journal)).unwrap();
                stood = true;
                break;
            }
        }
    }
    assert!(stood, "with enough descriptors it stands");
    failures.dedup();
    assert!(failures.len() >= 3, "several steps failed: {failures:#?}");
    assert!(
        failures.iter().any(|f| f.starts_with("the step `ping: make an unnamed network namespace")),
        "{failures:#?}"
    );
    assert_eq!(held_by(std::process::id()), []);
    journal.finish().unwrap();
    Ok(())
}

pub fn process_left_inside() -> Result<(), Skip> {
    let journal = journal("left");
    block_on(async {
        let lab = Lab::up(&veth(None), journal.run(), &journal).await.unwrap();
        let left = sleeper(&lab, 1);
        let error = lab.down(&journal).await.unwrap_err();
        assert!(matches!(&error, LabError::StillHeld { place, .. } if place == "pong"), "{error}");
        assert!(error.to_string().contains("(sleep); end these processes, or run `tailbound lab cleanup`"), "{error}");
        let entries = journal.open_entries();
        let inode = left.netns().inode();
        assert!(
            matches!(&entries[..], [e] if matches!(e.undo, Undo::UnnamedNetns { inode: i, .. } if i == inode)),
            "{entries:?}"
        );
        drop(left);
        journal.undo_all(&mut |_| ()).unwrap();
    });
    journal.finish().unwrap();
    Ok(())
}

/// Runs as the second process of the test [`kill_9`], and keeps a lab until the process is killed.
pub fn hold_lab(run: &str) {
    let journal = Journal::create(run).unwrap();
    let lab = block_on(Lab::up(&made(PathSpec::Bridge { mtu: None }), run, &journal)).unwrap();
    println!("up");
    std::thread::sleep(std::time::Duration::from_secs(60));
    drop(lab);
}

pub fn kill_9() -> Result<(), Skip> {
    let run = format!("killed-{}", std::process::id());
    let mut holder = Command::new(this_program())
        .args(["--hold-lab", &run])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| Skip(format!("this program cannot start itself: {e}")))?;
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let held = held_by(holder.id());
    assert_eq!(held.len(), 3, "ping, pong and bridge");
    // One namespace is kept open by this test: the interfaces that it still has show whether the other namespaces are
    // gone.
    let witness = NetNs::open(&held[0].0).unwrap();
    assert!(interfaces_of(&witness).len() >= 2);
    let state = journals::list().unwrap().into_iter().find(|j| j.run == run).unwrap();
    assert!(state.owner_alive);
    let listed: Vec<u64> = state.entries.iter().filter_map(|e| inode(&e.undo)).collect();
    assert!(held.iter().all(|(_, inode)| listed.contains(inode)), "the journal names each: {listed:?}");

    holder.kill().unwrap();
    holder.wait().unwrap();
    for (_, inode) in &held {
        assert_eq!(processes_in(*inode), []);
    }
    wait_until("the other namespaces, and so all that was joined to them, are gone", || {
        interfaces_of(&witness).iter().all(|i| i.name == "lo" || i.name.ends_with("-b"))
    });
    let report = journals::cleanup(&mut |_| ()).unwrap();
    assert_eq!(report.failed, Vec::<String>::new());
    assert!(!Path::new(&state.path).exists(), "the journal is removed");
    Ok(())
}

/// Tests a kernel that forbids user namespaces. The limit belongs to the user namespace of this process: nothing of the
/// machine is changed.
pub fn forbidden() -> Result<(), Skip> {
    if userns::enter_if_needed(true).unwrap() != Privilege::UserNamespace {
        return Err(Skip(
            "run inside a user namespace only, where the limit can be set without changing the machine".into(),
        ));
    }
    let limit = "/proc/sys/user/max_user_namespaces";
    let before = fs::read_to_string(limit).unwrap();
    fs::write(limit, "0").map_err(|e| Skip(format!("{limit}: {e}")))?;
    let output = Command::new(this_program()).arg("--show-privilege").output();
    fs::write(limit, before.trim()).unwrap();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let reason = "the sysctl user.max_user_namespaces is 0 (`sysctl -w user.max_user_namespaces=1000` permits it)";
    let (privilege, lacks) = text.split_once('\n').unwrap();
    assert_eq!(privilege, format!("None {{ reason: \"{reason}\" }}"));
    let lack = format!("what: \"network namespaces cannot be made: this user is not root, and {reason}\"");
    assert!(lacks.contains(&lack), "{lacks}");
    Ok(())
}

fn inode(undo: &Undo) -> Option<u64> {
    match undo {
        Undo::UnnamedNetns { inode, .. } => Some(*inode),
        _ => None,
    }
}
