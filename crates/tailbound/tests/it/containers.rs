//! Tests of ends in containers next to ends on the host; each test has its own containerd.

use crate::support::containerd::Containerd;
use crate::support::host::{no_journal, signal};
use crate::support::security::{all_secured, built};
use crate::support::studies::{built_in, published};
use crate::support::{Bench, exit_and_stderr, fastdds, succeeded};
use std::fs;
use std::process::{Child, Command};
use tailbound_record::Record;

/// A containerd that has the image of this program, and studies that use the image.
struct Host {
    containerd: Containerd,
    bench: Bench,
}

impl Host {
    fn new() -> Host {
        let bench = Bench::new();
        succeeded(&bench.tailbound().args(["image", "--out", "i.tar"]).output().unwrap());
        let containerd = Containerd::start(bench.dir.path());
        succeeded(&containerd.ctr(&["images", "import", bench.path("i.tar").to_str().unwrap()]));
        Host { containerd, bench }
    }

    fn tailbound(&self) -> Command {
        let mut command = self.bench.tailbound();
        self.containerd.known_to(&mut command);
        command
    }

    fn run(&self, study: &str) -> Command {
        self.bench.to_run(self.tailbound(), "record", study)
    }

    /// Starts the run of a study, and returns when its first trial is being measured.
    fn measuring(&self, study: &str) -> Child {
        self.bench.measuring(self.run(study))
    }

    fn stderr(&self) -> String {
        self.bench.stderr()
    }

    fn containers(&self) -> Vec<String> {
        let output = self.containerd.ctr(&["containers", "list", "--quiet"]);
        succeeded(&output);
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn nothing_is_left(&self) {
        assert_eq!(self.containers(), Vec::<String>::new());
        no_journal(&self.bench);
    }
}

fn study(place: &str, duration: &str, rest: &str) -> String {
    format!(
        "study: containers\nquestion: q\nmeasure: {{ ping-pong: {{ duration: {duration} }} }}\nrate: 500 Hz\n\
         place: {{ container: {{ client: ctr{place} }} }}\n{rest}\n"
    )
}

#[test]
fn host_and_containers_are_measured_over_the_same_paths_and_nothing_is_left() {
    let host = Host::new();
    let text = "study: containers\nquestion: q\nmeasure: { ping-pong: { duration: 1 s } }\nrate: 500 Hz\n\
                driver: cyclonedds\nends: { ping: { cpus: 0 }, pong: { cpus: 0 } }\nfactors:\n  place: [process, \
                { container: { client: ctr, network: host } }, netns, { container: { client: ctr, network: none, \
                cpus: 0, memory: 512 MiB, capabilities: [IPC_LOCK] } }]\n";
    succeeded(&host.run(text).output().unwrap());
    let (report, manifest) = (host.bench.report(), host.bench.manifest());
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let record = Record::open(&host.bench.path("record")).unwrap();
    let paths = ["loopback", "loopback", "veth", "veth"];
    for (condition, path) in report["conditions"].as_array().unwrap().iter().zip(paths) {
        let id = condition["trial_ids"][0].as_u64().unwrap() as usize;
        let trial = &manifest["trials"][id];
        let (ping, pong) = (&trial["ends"]["ping"], &trial["ends"]["pong"]);
        // Both ends have one clock, so legs are exact and computed from the rows themselves.
        assert_eq!((&ping["clock"], ping["clock"].is_string()), (&pong["clock"], true));
        let mut legs = 0;
        record.slots(id, &mut |batch| legs += (0..batch.len()).filter(|i| !batch.warm_up[*i]).count()).unwrap();
        assert_eq!(legs, 500, "{condition}");
        let interface = trial["path"]["ends"][0]["interface"].as_str().unwrap();
        assert_eq!(interface == "lo", path == "loopback", "{interface}");
        assert!(trial["path"]["probe_round_trip_ns"].is_i64(), "{}", trial["path"]);
    }
    let facts = fs::read_dir(host.bench.path("record/facts")).unwrap().flatten();
    let facts: Vec<String> = facts.map(|file| fs::read_to_string(file.path()).unwrap()).collect();
    let limited = facts.iter().find(|text| text.contains("512 MiB")).expect("the memory was read back");
    for word in ["container.digest", "sha256:", "io.containerd.runc.v2", "same as the host", "ctr 1."] {
        assert!(limited.contains(word), "{word} in {limited}");
    }
    host.nothing_is_left();
}

/// Test of the built-in study, with one payload: throughput in the published form (batches of 8,192 B, at most 20 messages not
/// acknowledged) and latency, whose figures stand beside the published ones.
#[test]
fn the_study_of_containers_has_the_published_figures() {
    let host = Host::new();
    let settings = [
        "work=[latency, throughput as published]",
        "place=[process, { container: { network: host, capabilities: [IPC_LOCK] } }]",
        "driver=[{ cyclonedds: { max_message_size: 8192 } }]",
        "payload=[1 KiB]",
        "measure.duration=1s",
        "repeat=1",
    ];
    let report = built_in(&host.bench, host.tailbound(), "containers", &settings);
    assert_eq!(report["conditions"].as_array().unwrap().len(), 4);
    let cells = published(&report, "a container with the network of its host, against the bare host", "container");
    assert!(cells.len() == 2 && cells.iter().all(|cell| cell["here"].is_array()), "{cells:?}");
    host.nothing_is_left();
}

/// Test: the files of DDS Security reach ends in containers, with each vendor.
#[test]
fn ends_in_containers_have_identities() {
    built();
    let drivers = if fastdds::built().is_some() { "[cyclonedds, fastdds]" } else { "[cyclonedds]" };
    let host = Host::new();
    let rest = format!("security: {{ governance: encrypt }}\nfactors: {{ driver: {drivers} }}");
    succeeded(&host.run(&study("", "1 s", &rest)).output().unwrap());
    all_secured(&host.bench, "encrypt");
    host.nothing_is_left();
}

/// Test: `watch --container` captures in the network namespace of a running container, by its name.
#[test]
fn what_a_container_sends_is_watched() {
    let host = Host::new();
    let child = host.measuring(&study("", "6 s", "driver: cyclonedds"));
    let pong = host.containers().into_iter().find(|name| name.ends_with("-pong")).unwrap();
    let watch = ["watch", "--container", &pong, "--for", "2s", "--format", "json"];
    let output = host.tailbound().args(watch).output().unwrap();
    succeeded(&output);
    assert!(child.wait_with_output().unwrap().status.success(), "{}", host.stderr());
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["place"], format!("all interfaces of container {pong}"));
    let topics = found["topics"].as_array().unwrap().iter();
    let writers: Vec<_> = topics.flat_map(|topic| topic["writers"].as_array().unwrap()).collect();
    // 500 Hz for two seconds in each direction; only the container sends from an address of its own.
    let of = |here: bool| {
        let all = writers.iter().filter(|writer| writer["is_here"] == here);
        all.map(|writer| writer["samples"].as_u64().unwrap()).max().unwrap_or(0)
    };
    assert!((800..=1100).contains(&of(true)) && (800..=1100).contains(&of(false)), "{found:#}");
    let absent = host.tailbound().args(["watch", "--container", "absent", "--for", "1s"]).output().unwrap();
    let (code, text) = exit_and_stderr(&absent);
    assert!(code == 2 && text.contains("the container `absent` cannot be found"), "{code}: {text}");
}

#[test]
fn containers_that_end_and_controllers_that_are_killed_leave_nothing() {
    let host = Host::new();
    let child = host.measuring(&study("", "30 s", "driver: udp"));
    let pong = host.containers().into_iter().find(|name| name.ends_with("-pong")).unwrap();
    succeeded(&host.containerd.ctr(&["tasks", "kill", "--signal", "SIGKILL", &pong]));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", host.stderr());
    assert!(host.stderr().contains("agent pong was lost in mid-trial: "), "{}", host.stderr());
    assert!(host.stderr().contains("container pong: the container does not run any more"), "{}", host.stderr());
    host.nothing_is_left();
    host.bench.remove_record();

    let mut child = host.measuring(&study("", "60 s", "driver: udp"));
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let left = host.containers();
    assert_eq!(left.len(), 2, "{left:?}");
    // The journal names the containerd, so the cleanup does not need its address in the environment.
    let output = host.bench.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    assert!(output.status.success() && left.iter().all(|name| printed.contains(name)), "{printed}");
    host.nothing_is_left();
}

#[test]
fn impossible_studies_are_refused_with_a_remedy() {
    let host = Host::new();
    let other = host.bench.path("other");
    tailbound_bundle::pack(std::path::Path::new("/bin/true"), "0.9.1", &[], &other).unwrap();
    let manifest = fs::read_to_string(other.join("bundle.json")).unwrap();
    let (own, far) = if cfg!(target_arch = "aarch64") { ("aarch64", "x86_64") } else { ("x86_64", "aarch64") };
    fs::write(other.join("bundle.json"), manifest.replace(own, far)).unwrap();
    let image = ["image", "--bundle", "other", "--out", "o.tar", "--name", "localhost/other:1"];
    succeeded(&host.bench.tailbound().args(image).output().unwrap());
    succeeded(&host.containerd.ctr(&[
        "images",
        "import",
        "--all-platforms",
        host.bench.path("o.tar").to_str().unwrap(),
    ]));
    let empty = host.bench.path("empty");
    fs::create_dir(&empty).unwrap();
    let only_ctr = host.bench.path("only-ctr");
    fs::create_dir(&only_ctr).unwrap();
    std::os::unix::fs::symlink("/usr/bin/ctr", only_ctr.join("ctr")).unwrap();

    let mut all = String::new();
    let mut refused = |what: &str, place: &str, (name, value): (&str, &str)| {
        let text = study(place, "1 s", "driver: udp").replace("client: ctr, network: blue", "network: blue");
        let text = text.replace("client: ctr, client: podman", "client: podman").replace("client: ctr, any: true", "");
        let mut command = host.run(&text);
        let (code, text) = exit_and_stderr(&command.env(name, value).output().unwrap());
        assert_eq!(code, 3, "{what}: {text}");
        host.nothing_is_left();
        host.bench.remove_record();
        let text = text.replace("arm64", "OTHER").replace("amd64", "OTHER");
        all += &format!("# {what}\n{}\n", text.trim_end());
    };
    let path = std::env::var("PATH").unwrap();
    let usual = ("PATH", path.as_str());
    let nothing = ("PATH", empty.to_str().unwrap());
    refused("no client", ", any: true", nothing);
    refused("not this client", ", client: podman", nothing);
    refused("no such image", ", image: localhost/nothing:1", usual);
    refused("an image of another processor family", ", image: localhost/other:1", usual);
    refused("a network by name", ", network: blue", ("PATH", only_ctr.to_str().unwrap()));
    insta::assert_snapshot!(all);
}

#[test]
fn missing_rights_are_reported_before_anything_is_made() {
    let bench = Bench::new();
    let open = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    };
    open(bench.dir.path());
    fs::copy(env!("CARGO_BIN_EXE_tailbound"), bench.path("tailbound")).unwrap();
    bench.study(&study("", "1 s", "driver: udp"));
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(bench.path("tailbound"))
        .args(["run", "study.yaml", "--out", "record"])
        .current_dir(bench.dir.path())
        .env("TAILBOUND_STATE_DIR", bench.path("state"))
        .output()
        .expect("setpriv of util-linux");
    let expected = "error: the place container ping (network none) needs root, because Tailbound makes \
                    a container and enters its namespaces\n  help: run as root, or use `place: netns`\n";
    assert_eq!(exit_and_stderr(&output), (3, expected.to_owned()));
    assert!(!bench.path("record").exists());
}
