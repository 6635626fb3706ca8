//! Records the calls with which programs of ROS 2 publish and take messages, and how long rclcpp executes subscriptions: uprobes,
//! attached by the tracer to the libraries of all processes of a network namespace.
//!
//! Each recorded call costs the program some microseconds (two breakpoints).

use crate::clock::read_offset;
use crate::namespace::{namespace_of, own_namespace, process_ids};
use crate::switches::{TEXT, refused, table_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tailbound_abi::{
    TB_CALL_EXECUTE, TB_CALL_PUBLISH, TB_CALL_TAKE, TB_CALL_WAITED, TB_CALLS_OF_RCLCPP, TB_CALLS_OF_RMW, tb_call,
    tb_tracer,
};
use tailbound_model::Problem;

/// Size in bytes of the ring buffer: 13,000 records.
const RING: u32 = 4 << 20;
/// The library of rcl that passes calls to the middleware that was chosen when the program started.
const CHOOSER: &str = "librmw_implementation.so";
/// The library of rclcpp.
const RCLCPP: &str = "librclcpp.so";

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A message was published.
    Publish,
    /// A message was taken; its source timestamp, ns since 1970, if the middleware gives one.
    Take(Option<i64>),
    /// A thread of the process was ready and waited for a CPU; for how much of it [`Call::by`] had the CPU, ns, 0 = not known who had it.
    Waited(i64),
    /// rclcpp has executed a subscription, from the end of the take on. The message is the one that the thread took last.
    Execute,
}

/// A call of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// What the call did.
    pub kind: CallKind,
    /// Name and id of the process, such as `talker (1234)`.
    pub process: &'a str,
    /// Its thread.
    pub thread: i32,
    /// Name of the topic in ROS 2; empty for [`CallKind::Execute`]. [`CallKind::Waited`]: name of the thread.
    pub topic: &'a str,
    /// [`CallKind::Waited`]: name of the thread that had the CPU longest meanwhile; else empty.
    pub by: &'a str,
    /// Begin of the call, ns since 1970 (CLOCK_REALTIME).
    pub begin_ns: i64,
    /// End of the call, ns since 1970.
    pub end_ns: i64,
}

/// The programs in the kernel that record calls. They are detached when this value is dropped.
pub struct Calls {
    table: tb_tracer,
    handle: *mut c_void,
    /// The network namespace whose processes are looked at: the number of its file.
    namespace: u64,
    /// Libraries that were looked at: device and number of the file, and which functions.
    looked_at: BTreeSet<(u64, u64, u32)>,
    /// Functions that are recorded.
    functions: u32,
    /// Names of processes of the namespace; `None` = the process is in another one.
    processes: BTreeMap<i32, Option<String>>,
}

impl Calls {
    /// Loads the programs, for processes in the network namespace of this thread.
    ///
    /// # Errors
    /// The tracer cannot be loaded, or the kernel refuses its programs. The text is a sentence without a full stop.
    pub fn open(tracer: &Path) -> Result<Calls, Problem> {
        let namespace = own_namespace().unwrap_or(0);
        let table = table_of(tracer)?;
        let mut text = [0; TEXT];
        // SAFETY: room for the text.
        let handle = unsafe { (table.calls_load)(RING, text.as_mut_ptr(), TEXT) };
        if handle.is_null() {
            return Err(refused(&text));
        }
        let (looked_at, processes) = Default::default();
        Ok(Calls { table, handle, namespace, looked_at, functions: 0, processes })
    }

    /// Attaches the programs to the libraries of ROS 2 that is installed or sourced here, so that programs which start later are recorded
    /// from their first call on. Returns what was refused, in words.
    pub fn attach_installed(&mut self) -> Vec<String> {
        let sourced = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let installed = fs::read_dir("/opt/ros").into_iter().flatten().flatten().map(|entry| entry.path());
        let prefixes: Vec<PathBuf> = std::env::split_paths(&sourced).chain(installed).collect();
        let of_prefix = |prefix: &PathBuf| -> Vec<PathBuf> {
            fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let files: Vec<PathBuf> = prefixes.iter().flat_map(of_prefix).collect();
        let files: BTreeSet<&str> = files.iter().filter_map(|file| file.to_str()).collect();
        self.attach_all(libraries(&files, Path::new("/")))
    }

    /// Attaches the programs to the libraries of processes that were not looked at before. Returns what was refused, in words.
    pub fn attach_new(&mut self) -> Vec<String> {
        let mut refusals = Vec::new();
        for pid in process_ids() {
            if self.process(pid).is_some() {
                let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
                let files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
                refusals.extend(self.attach_all(libraries(&files, Path::new(&format!("/proc/{pid}/root")))));
            }
        }
        refusals
    }

    fn attach_all(&mut self, libraries: BTreeSet<(PathBuf, u32)>) -> Vec<String> {
        let mut refusals = Vec::new();
        for (path, of) in libraries {
            let Ok(file) = fs::metadata(&path) else { continue };
            if self.looked_at.insert((file.dev(), file.ino(), of))
                && let Err(problem) = self.attach(&path, of)
            {
                refusals.push(format!("{}: {}", path.display(), problem.what));
            }
        }
        refusals
    }

    fn attach(&mut self, path: &Path, of: u32) -> Result<(), Problem> {
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Problem::new("bpf_refused", "its path has a NUL byte", ""))?;
        let mut text = [0; TEXT];
        // SAFETY: a valid handle, a path with a NUL byte at its end, and room for the text.
        let found = unsafe { (self.table.calls_attach)(self.handle, path.as_ptr(), of, text.as_mut_ptr(), TEXT) };
        self.functions += u32::try_from(found).map_err(|_| refused(&text))?;
        Ok(())
    }

    /// Number of functions of libraries that are recorded.
    pub fn functions(&self) -> u32 {
        self.functions
    }

    /// Passes all calls of processes of the network namespace to `take`. Returns how many records were lost since the begin.
    pub fn read(&mut self, mut take: impl FnMut(Call<'_>)) -> u64 {
        let offset_ns = read_offset().offset_ns;
        let (table, handle) = (self.table, self.handle);
        let mut each = |record: &tb_call| {
            let Some(process) = self.process(record.process) else { return };
            let kind = match record.kind {
                TB_CALL_PUBLISH => CallKind::Publish,
                TB_CALL_TAKE => CallKind::Take(Some(record.source_ns).filter(|ns| *ns > 0)),
                TB_CALL_EXECUTE => CallKind::Execute,
                TB_CALL_WAITED => CallKind::Waited(record.source_ns),
                _ => return,
            };
            let text =
                |at: usize| CStr::from_bytes_until_nul(&record.topic[at..]).unwrap_or_default().to_string_lossy();
            let topic = text(0);
            let by = if matches!(kind, CallKind::Waited(_)) { text(16) } else { Default::default() };
            take(Call {
                kind,
                process,
                thread: record.thread,
                topic: &topic,
                by: &by,
                begin_ns: record.begin_ns as i64 + offset_ns,
                end_ns: record.end_ns as i64 + offset_ns,
            });
        };
        let mut sink: Sink = &mut each;
        // SAFETY: a valid handle, and the function `sink_of` with the argument that it expects.
        unsafe { (table.calls_read)(handle, sink_of, (&raw mut sink).cast()) }
    }

    /// Name and id of a process of the network namespace.
    fn process(&mut self, pid: i32) -> Option<&str> {
        let namespace = self.namespace;
        let name = || {
            let process = PathBuf::from(format!("/proc/{pid}"));
            if namespace_of(&process)? != namespace {
                return None;
            }
            Some(format!("{} ({pid})", fs::read_to_string(process.join("comm")).ok()?.trim_end()))
        };
        self.processes.entry(pid).or_insert_with(name).as_deref()
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // SAFETY: a valid handle, which is not used any more.
        unsafe { (self.table.calls_unload)(self.handle) };
    }
}

type Sink<'a> = &'a mut dyn FnMut(&tb_call);

unsafe extern "C" fn sink_of(ctx: *mut c_void, record: *const tb_call) {
    // SAFETY: `Calls::read` passes a `Sink`, and the tracer passes a record.
    let (sink, record) = unsafe { (&mut *ctx.cast::<Sink>(), &*record) };
    sink(record);
}

/// Of these files below the directory `root`, the libraries with calls of ROS 2, and which of their functions.
fn libraries(files: &BTreeSet<&str>, root: &Path) -> BTreeSet<(PathBuf, u32)> {
    let name = |file: &str| file.rsplit_once('/').map_or("", |(_, name)| name).to_owned();
    let has_chooser = files.iter().any(|file| name(file) == CHOOSER);
    let functions = |file: &str| match name(file) {
        name if name == RCLCPP => Some(TB_CALLS_OF_RCLCPP),
        name if name == CHOOSER => Some(TB_CALLS_OF_RMW),
        name if !has_chooser && name.starts_with("librmw_") && name.ends_with(".so") => Some(TB_CALLS_OF_RMW),
        _ => None,
    };
    files.iter().filter_map(|file| Some((root.join(file.trim_start_matches('/')), functions(file)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[&str]) -> Vec<(String, u32)> {
        let all = libraries(&files.iter().copied().collect(), Path::new("/proc/7/root"));
        all.into_iter().map(|(path, of)| (path.display().to_string(), of)).collect()
    }

    #[test]
    fn libraries_are_those_through_which_calls_pass() {
        let (rcl, cyclone) = ("/opt/ros/jazzy/lib/librcl.so", "/opt/ros/jazzy/lib/librmw_cyclonedds_cpp.so");
        let (chooser, rclcpp) = ("/opt/ros/jazzy/lib/librmw_implementation.so", "/opt/ros/jazzy/lib/librclcpp.so");
        let in_root = |file: &str| format!("/proc/7/root{file}");
        assert_eq!(found(&[rcl, cyclone]), [(in_root(cyclone), TB_CALLS_OF_RMW)]);
        assert_eq!(
            found(&[rcl, cyclone, chooser, rclcpp]),
            [(in_root(rclcpp), TB_CALLS_OF_RCLCPP), (in_root(chooser), TB_CALLS_OF_RMW)]
        );
        assert_eq!(found(&["/usr/lib/libc.so.6"]), []);
    }
}
