//! The Kubernetes cluster of two nodes that `dev/cluster` starts and to which `dev/pods-test` gives the image of
//! Tailbound.

use super::Bench;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// The Kubernetes cluster, and the directory of a test ([`Bench`]) whose Tailbound uses this cluster.
pub struct Cluster {
    pub bench: Bench,
    kubeconfig: PathBuf,
}

impl Cluster {
    /// Connects to the cluster; `None`, and a printed line, if no cluster is running.
    pub fn new() -> Option<Cluster> {
        let Some(kubeconfig) = std::env::var_os("TAILBOUND_TEST_KUBECONFIG") else {
            println!("skipped: no cluster; dev/pods-test brings one up and runs this test on it");
            return None;
        };
        Some(Cluster { bench: Bench::new(), kubeconfig: kubeconfig.into() })
    }

    pub fn tailbound(&self) -> Command {
        let mut command = self.bench.tailbound();
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    pub fn run(&self, study: &str) -> Command {
        self.bench.to_run(self.tailbound(), "record", study)
    }

    /// Starts the run of a study, and returns when its first trial is being measured.
    pub fn measuring(&self, study: &str) -> Child {
        self.bench.measuring(self.run(study))
    }

    /// Starts the run of a study, and returns when its first trial begins; the ends have then not found each other.
    pub fn in_first_trial(&self, study: &str) -> Child {
        self.bench.running(self.run(study), "trial begins")
    }

    pub fn stderr(&self) -> String {
        self.bench.stderr()
    }

    /// Runs `dev/cluster` with these arguments, which must succeed, and returns its standard output.
    pub fn command(&self, words: &[&str]) -> String {
        let output = self.dev(words);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
        printed
    }

    /// Runs `dev/cluster` with these arguments, and returns its output also if it fails.
    pub fn dev(&self, words: &[&str]) -> Output {
        let dev = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/cluster");
        Command::new(dev).args(words).output().unwrap()
    }

    /// Restarts the kubelet of a node with a new limit: the kubelet evicts pods until `wanted` of the memory is free.
    pub fn free_memory(&self, node: &str, wanted: &str) {
        let file = self.kubeconfig.with_file_name(node).join("kubelet.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        let line = text.lines().find(|l| l.starts_with("evictionHard: ")).unwrap().to_owned();
        std::fs::write(&file, text.replace(&line, &format!("evictionHard: {{memory.available: {wanted}}}"))).unwrap();
        let kubelet = format!("{node}/kubelet");
        self.command(&["stop", &kubelet]);
        self.command(&["start", &kubelet]);
    }

    /// Names of the pods that runs created and that nobody is deleting.
    pub fn pods(&self) -> Vec<String> {
        let ours = "app.kubernetes.io/managed-by=tailbound";
        let columns = "custom-columns=:metadata.name,:metadata.deletionTimestamp,:status.phase";
        let all = self.command(&["kubectl", "get", "pods", "--no-headers", "-l", ours, "-o", columns]);
        let lines = all.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
        lines.filter(|l| l.len() == 3 && l[1] == "<none>" && l[2] == "Running").map(|l| l[0].to_owned()).collect()
    }

    /// Waits until no pod of a run is left; fails after `limit`.
    pub fn empty_within(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.pods().is_empty() {
            assert!(Instant::now() < deadline, "{:?} are still there", self.pods());
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}
