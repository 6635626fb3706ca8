//! Tests: page faults as the kernel reports them, compared with accesses to memory whose times are known.

use crate::interrupts::{last_cpu, own_tid, watched};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use tailbound_host::switches::{SwitchWatch, Wanted};
use tailbound_host::{monotonic_ns, scheduling};
use tailbound_model::{Attribution, CpuList, RecordedBy, SwitchKind, SwitchScope, Switches};

/// Size of a page in bytes, as the tests use it: a multiple of the kernel's size of a page.
const PAGE: usize = 64 << 10;
/// Number of pages that a test touches.
const PAGES: usize = 64;

/// Memory that is mapped and not present yet; unmapped with the value.
struct Unread(*mut u8);

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for Unread {}

impl Drop for Unread {
    fn drop(&mut self) {
        // SAFETY: memory that this value mapped, with its size.
        unsafe { libc::munmap(self.0.cast(), PAGES * PAGE) };
    }
}

impl Unread {
    /// Memory without a file, or the memory of an open file of this size; no page of it is read in advance.
    fn map(file: Option<&std::fs::File>) -> Unread {
        let (flags, fd) = match file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a new mapping at an address that the kernel chooses; the advice concerns this mapping alone.
        let memory = unsafe {
            let memory =
                libc::mmap(std::ptr::null_mut(), PAGES * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, PAGES * PAGE, libc::MADV_RANDOM);
            libc::madvise(memory, PAGES * PAGE, libc::MADV_NOHUGEPAGE);
            memory
        };
        Unread(memory.cast())
    }

    /// Writes to the begin of each page. Returns the times before and after each write, ns.
    fn touch(&self) -> Vec<(i64, i64)> {
        let mut times = Vec::with_capacity(PAGES);
        for page in 0..PAGES {
            let begin = monotonic_ns();
            // SAFETY: an address inside the mapping.
            unsafe { self.0.add(page * PAGE).write_volatile(1) };
            times.push((begin, monotonic_ns()));
        }
        times
    }

    /// Number of pages whose begin is in memory.
    fn resident(&self) -> usize {
        let mut there = vec![0u8; PAGES * PAGE / 4096];
        // SAFETY: a mapping with its size, and a byte for each page of at least 4 KiB.
        assert_eq!(unsafe { libc::mincore(self.0.cast(), PAGES * PAGE, there.as_mut_ptr()) }, 0);
        there.iter().filter(|byte| **byte & 1 == 1).count()
    }
}

/// A thread that used memory: its id, the times before and after each access, ns, and what was recorded.
type Touched = (i32, Vec<(i64, i64)>, Switches);

/// Touches this memory in a thread of its own, which `open` watches; `None` if nothing may be recorded.
fn touched(memory: Unread, open: impl FnOnce(i32, &CpuList) -> Option<SwitchWatch>) -> Option<Touched> {
    observed(move || memory.touch(), open)
}

/// Calls `work` in a thread of its own, which `open` watches; `None` if nothing may be recorded.
fn observed(
    work: impl FnOnce() -> Vec<(i64, i64)> + Send + 'static,
    open: impl FnOnce(i32, &CpuList) -> Option<SwitchWatch>,
) -> Option<Touched> {
    let cpus = CpuList::one(last_cpu());
    let on = cpus.clone();
    let (send, receive) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        scheduling::set_affinity(0, &on).unwrap();
        send.send(own_tid()).unwrap();
        wait.recv().ok().map(|()| work())
    });
    let tid = receive.recv().unwrap();
    let mut watch = open(tid, &cpus)?;
    watch.begin();
    let begin = monotonic_ns();
    go.send(()).unwrap();
    while !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
        watch.read();
    }
    let times = thread.join().unwrap().unwrap();
    watch.end();
    let seen = watch.events_in(&[(begin, monotonic_ns())]);
    assert_eq!(seen.gaps, []);
    Some((tid, times, seen))
}

/// The page faults of a thread that lie within a time span: duration in ns, and whether they needed a disk.
fn faults_within(seen: &Switches, tid: i32, (begin, end): (i64, i64)) -> Vec<(u32, bool)> {
    let fault = |e: &tailbound_model::SwitchEvent| match e.what {
        SwitchKind::PageFault { thread, ns, disk } if thread == tid => {
            (begin <= e.at_ns && e.at_ns + i64::from(ns) <= end).then_some((ns, disk))
        }
        _ => None,
    };
    seen.events.iter().filter_map(fault).collect()
}

fn every_first_access_to_a_page_is_a_fault(seen: Option<Touched>) {
    let Some((tid, times, seen)) = seen else { return };
    for time in times {
        let faults = faults_within(&seen, tid, time);
        assert!(faults.len() == 1 && faults[0].0 > 0 && !faults[0].1, "{time:?}: {faults:?}");
    }
}

#[test]
fn the_first_access_to_a_page_is_a_page_fault_by_perf() {
    let open = |tid, cpus: &CpuList| watched(RecordedBy::Perf, &[tid], cpus);
    every_first_access_to_a_page_is_a_fault(touched(Unread::map(None), open));
}

#[test]
fn the_first_access_to_a_page_is_a_page_fault_by_bpf() {
    let open = |tid, cpus: &CpuList| watched(RecordedBy::Bpf, &[tid], cpus);
    every_first_access_to_a_page_is_a_fault(touched(Unread::map(None), open));
}

/// Test: a user without privileges records the page faults of the own threads.
#[test]
fn the_first_access_to_a_page_is_a_page_fault_without_privileges() {
    const NOBODY: libc::uid_t = 65_534;
    let open = |tid, cpus: &CpuList| {
        // SAFETY: this system call changes the user of the calling thread alone, which ends with this test.
        unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        let watch = SwitchWatch::open(&[tid], cpus, &Wanted { level: Attribution::Auto, tracer: None, process: None });
        let permitted = watch.recorder().is_some();
        if !permitted {
            println!("skipped: kernel.perf_event_paranoid permits no perf events");
        }
        permitted.then_some(watch)
    };
    let seen = std::thread::spawn(move || touched(Unread::map(None), open)).join().unwrap();
    assert!(
        seen.as_ref().is_none_or(|(_, _, seen)| matches!(seen.scope, SwitchScope::OwnThreads | SwitchScope::Cpus(_)))
    );
    every_first_access_to_a_page_is_a_fault(seen);
}

/// A file whose pages are not in memory; `None` if they cannot be dropped there.
fn dropped_file(dir: &Path) -> Option<std::fs::File> {
    let path = dir.join("pages");
    std::fs::write(&path, vec![7; PAGES * PAGE]).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: an open file; the kernel drops pages that are on the disk.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    let resident = Unread::map(Some(&file)).resident();
    if resident > 0 {
        println!("skipped: {resident} pages of the file stay in memory (a file system in memory?)");
    }
    (resident == 0).then_some(file)
}

fn a_page_that_comes_from_a_disk_is_marked(by: RecordedBy) {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = dropped_file(dir.path()) else { return };
    let open = |tid, cpus: &CpuList| watched(by, &[tid], cpus);
    let Some((tid, times, seen)) = touched(Unread::map(Some(&file)), open) else { return };
    let from_disk = times.iter().filter(|time| faults_within(&seen, tid, **time).iter().any(|(_, disk)| *disk)).count();
    // The kernel can read several pages at once.
    assert!(from_disk * 2 >= PAGES, "{from_disk} of {PAGES} accesses needed a disk");
}

#[test]
fn a_page_that_comes_from_a_disk_is_marked_by_perf() {
    a_page_that_comes_from_a_disk_is_marked(RecordedBy::Perf);
}

#[test]
fn a_page_that_comes_from_a_disk_is_marked_by_bpf() {
    a_page_that_comes_from_a_disk_is_marked(RecordedBy::Bpf);
}

/// A control group of memory (version 1) with this process; the process leaves it, and it is removed, with the value.
struct Group {
    own: PathBuf,
    before: PathBuf,
}

impl Group {
    /// `None` if this process may not make such a control group, or there are none of this version.
    fn enter(limit_bytes: usize) -> Option<Group> {
        let root = Path::new("/sys/fs/cgroup/memory");
        let all = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let before = all.lines().find_map(|line| line.split_once(":memory:/"))?.1;
        let own = root.join(format!("tb-full-{}", std::process::id()));
        std::fs::create_dir(&own).ok()?;
        let group = Group { own, before: root.join(before) };
        std::fs::write(group.own.join("memory.limit_in_bytes"), limit_bytes.to_string()).unwrap();
        // Memory belongs to processes: all threads go together.
        std::fs::write(group.own.join("cgroup.procs"), "0").unwrap();
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        std::fs::write(self.before.join("cgroup.procs"), "0").unwrap();
        std::fs::remove_dir(&self.own).unwrap();
    }
}

/// Test: a thread reads a file in a control group that has no room for all pages of the file.
#[test]
fn a_thread_that_needs_memory_in_a_full_control_group_frees_some_by_bpf() {
    const LIMIT_BYTES: usize = 32 << 20;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("larger-than-a-group");
    std::fs::write(&path, vec![1u8; 3 * LIMIT_BYTES]).unwrap();
    let mut file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: an open file; no page of it is mapped. The pages belong to the control group of who reads them next.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    let read = move || {
        let begin = monotonic_ns();
        let mut part = vec![0u8; PAGE];
        while std::io::Read::read(&mut file, &mut part).unwrap() > 0 {}
        vec![(begin, monotonic_ns())]
    };
    let mut group = None;
    let open = |tid: i32, cpus: &CpuList| {
        let watch = watched(RecordedBy::Bpf, &[tid], cpus);
        // The memory of the recording is not in the group.
        group = Group::enter(LIMIT_BYTES);
        if group.is_none() {
            println!("skipped: needs a control group of memory (version 1) that this process may make");
        }
        watch.filter(|_| group.is_some())
    };
    let seen = observed(read, open);
    drop(group);
    std::fs::remove_file(&path).unwrap();
    let Some((tid, times, seen)) = seen else { return };
    let [(begin, end)] = times[..] else { panic!("{times:?}") };
    let of_thread =
        seen.events.iter().filter(|e| matches!(e.what, SwitchKind::Reclaim { thread, .. } if thread == tid));
    let freed: Vec<(i64, i64)> = of_thread.map(|e| (e.at_ns, e.end_ns())).collect();
    assert!(!freed.is_empty());
    assert!(freed.iter().all(|(from, to)| begin <= *from && from < to && *to <= end), "{begin} to {end}: {freed:?}");
    assert!(freed.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{freed:?}");
}
