//! A holder in a process of its own, and connections to this holder that are cut.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tailbound_stream::{JoinError, hold};
use tokio::io::{AsyncReadExt, copy};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

const SOCKET: &str = "TAILBOUND_TEST_SOCKET";
const LEASE: &str = "TAILBOUND_TEST_LEASE_MS";

/// Runs the holder, if another test has started this test program as its holder process.
pub fn be_the_holder() {
    let Ok(socket) = std::env::var(SOCKET) else { return };
    let lease: u64 = std::env::var(LEASE).unwrap().parse().unwrap();
    let over = block_on(hold(socket.as_ref(), Duration::from_millis(lease), shell, std::future::pending())).unwrap();
    eprintln!("over: {over}");
}

/// Makes the program of each session: a shell with the arguments of the client.
pub fn shell() -> io::Result<Command> {
    Ok(Command::new("sh"))
}

pub fn script(text: &str) -> Vec<String> {
    vec!["-c".into(), text.into()]
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A holder process that is killed when this value is dropped.
pub struct Holder {
    pub socket: PathBuf,
    pub process: Child,
}

impl Holder {
    pub fn start(directory: &Path, lease: Duration) -> Holder {
        let socket = directory.join("held/agent.sock");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "holder::the_holder_process_of_other_tests", "--nocapture"]);
        command.env(SOCKET, &socket).env(LEASE, lease.as_millis().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(process.try_wait().unwrap().is_none(), "the holder ended early");
            std::thread::sleep(Duration::from_millis(5));
        }
        Holder { socket, process }
    }

    /// Kills the holder, and waits until its process has ended. The signal alone would let the old process accept
    /// another connection, and a new holder would find that the old holder still answers.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// The value of a line of /proc/PID/status of the holder process, in bytes.
    pub fn memory(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix(line)).unwrap();
        line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub type Reader = OwnedReadHalf;
pub type Writer = OwnedWriteHalf;
pub type Halves = (Reader, Writer);

pub async fn open(socket: &Path) -> io::Result<Halves> {
    Ok(UnixStream::connect(socket).await?.into_split())
}

/// Opens a connection that is cut after `to` bytes to the holder, or after `from` bytes from the holder.
pub async fn cut_after(socket: &Path, (to, from): (u64, u64)) -> io::Result<Halves> {
    let (near, far) = UnixStream::pair()?;
    let (holder_reads, mut holder_writes) = open(socket).await?;
    let (far_reads, mut far_writes) = far.into_split();
    let (mut far_reads, mut holder_reads) = (far_reads.take(to), holder_reads.take(from));
    tokio::spawn(async move {
        tokio::select! {
            _ = copy(&mut far_reads, &mut holder_writes) => {}
            _ = copy(&mut holder_reads, &mut far_writes) => {}
        }
    });
    Ok(near.into_split())
}

/// Returns the text with which the holder refused a session.
pub fn refusal<T>(joined: Result<T, JoinError>) -> String {
    match joined {
        Err(JoinError::Refused(sentence)) => sentence,
        Err(other) => panic!("not refused, but: {other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

/// Generates random numbers by splitmix64 (Steele, Lea & Flood, Fast Splittable Pseudorandom Number Generators, 2014).
pub struct Random(u64);

impl Random {
    /// Makes the generator of random numbers and prints its seed: the seed in TAILBOUND_TEST_SEED, or a new seed each
    /// time.
    pub fn new() -> Random {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = std::env::var("TAILBOUND_TEST_SEED").map_or_else(|_| now(), |seed| seed.parse().unwrap());
        println!("seed {seed}");
        Random(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
