//! Flags of `tailbound guest`: build, start and use virtual machines of this host.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum GuestSub {
    /// Build the files that a guest boots from, and list their contents
    Build(GuestBuild),
    /// Boot a guest without a network and open a shell in it on this terminal; the guest ends with the shell
    Shell(GuestShell),
    /// Run a study in a guest, with ends in network namespaces of the guest's kernel, and copy the record to this host
    Run(GuestRun),
    /// Start agents inside a virtual machine of your own, for example a libvirt domain; `run` reaches the agents over
    /// virtio channels of the machine
    Serve,
    /// Connect standard input and output to Tailbound in a running guest
    #[command(hide = true)]
    Stream {
        /// Directory of the guest's machine, which contains its sockets
        #[arg(long)]
        directory: PathBuf,
        /// The stream carries a whole run in the guest, so the guest may be silent for a long time
        #[arg(long)]
        with_a_run: bool,
        /// Arguments of Tailbound in the guest
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Start agents in a guest when `run` requests them; the first process of the guest runs this command
    #[command(hide = true)]
    Init,
    /// Run a study in a guest; the order is read from standard input
    #[command(hide = true, name = "within")]
    RunInside,
    /// Change the clock of this guest by a known amount, for tests
    #[command(hide = true)]
    Clock {
        /// Rate change of the guest's clocks in millionths (ppm); positive values make the clocks faster
        #[arg(long, allow_hyphen_values = true)]
        ppm: Option<i64>,
        /// Milliseconds by which the wall clock of the guest is stepped forward
        #[arg(long)]
        step_ms: Option<u64>,
    },
}

/// Flags about the kernel and the files of a guest.
#[derive(Debug, Args)]
pub struct GuestKernel {
    /// Kernel of the guest: `host`, an image (vmlinuz or vmlinux), or a package file of Debian (linux-image-*.deb)
    #[arg(long, value_name = "KERNEL", default_value = "host")]
    pub kernel: String,
    /// Directory of the kernel's modules, which contains modules.dep [default: searched next to the image]
    #[arg(long, value_name = "DIR")]
    pub modules: Option<String>,
    /// Module that the guest loads in addition to the required modules: a module of its kernel (by name), or a file (by path) that
    /// was built for its kernel; may be given more than once
    #[arg(long = "module", value_name = "NAME|PATH")]
    pub module: Vec<String>,
    /// Program (by name, with its libraries), file or directory (by path) to copy from this host to the guest;
    /// separate several by commas, or give the flag more than once
    #[arg(long = "with", value_name = "NAME|PATH", value_delimiter = ',')]
    pub with: Vec<String>,
}

/// Flags about the virtual machine of a guest.
#[derive(Debug, Args)]
pub struct GuestMachine {
    #[command(flatten)]
    pub kernel: GuestKernel,
    /// How the instructions of the guest are executed
    #[arg(long, value_enum, default_value = "any")]
    pub accelerator: GuestAccelerator,
    /// Number of virtual CPUs of the guest
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub vcpus: u32,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = clap::value_parser!(u32).range(128..))]
    pub memory: u32,
    /// Words to add to the kernel command line of the guest
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    pub command_line: String,
}

/// How the instructions of a guest are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GuestAccelerator {
    /// Execute instructions on the processor (KVM); if KVM does not work on this host, the command fails
    Kvm,
    /// Use KVM if it works on this host, otherwise emulation
    Any,
    /// Emulate the processor in QEMU: latencies measured in the guest say nothing about real hardware
    Emulated,
}

#[derive(Debug, Args)]
pub struct GuestBuild {
    #[command(flatten)]
    pub kernel: GuestKernel,
    /// Directory to copy kernel and initramfs to; the directory is created
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct GuestShell {
    #[command(flatten)]
    pub machine: GuestMachine,
}

#[derive(Debug, Args)]
pub struct GuestRun {
    #[command(flatten)]
    pub machine: GuestMachine,
    /// Directory of the record on this host; must not exist [default: tailbound-STUDY-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Study file, or the name of a built-in study
    pub study: PathBuf,
    /// Further arguments of `tailbound run`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}
