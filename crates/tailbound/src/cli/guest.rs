//! `tailbound guest`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum GuestSub {
    /// Make what a guest boots, and say what is in it
    Build(GuestBuild),
    /// Boot a guest without a network, with a shell on this terminal; it ends with the shell
    Shell(GuestShell),
    /// Run a study within one guest, in network namespaces of its kernel, and bring the record back
    Run(GuestRun),
    /// Within a machine of your own (a domain of libvirt): hold agents, spoken with over its channels
    Serve,
    /// Carry standard input and output to Tailbound in a guest that runs
    #[command(hide = true)]
    Stream {
        /// Directory of the machine
        #[arg(long)]
        directory: PathBuf,
        /// A whole run goes on there, which may keep the guest silent for long
        #[arg(long)]
        with_a_run: bool,
        /// Arguments there
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Hold agents in a guest; started by its first process
    #[command(hide = true)]
    Init,
    /// Run a study in a guest; the order comes on standard input
    #[command(hide = true)]
    Within,
    /// Set the clock of the guest that it runs in by a known amount, for tests
    #[command(hide = true)]
    Clock {
        /// Its clocks run faster by so many millionths
        #[arg(long, allow_hyphen_values = true)]
        ppm: Option<i64>,
        /// Its wall clock is stepped forward by so many milliseconds
        #[arg(long)]
        step_ms: Option<u64>,
    },
}

/// What a guest boots.
#[derive(Debug, Args)]
pub struct GuestKernel {
    /// Its kernel: `host`, an image (vmlinuz or vmlinux), or a package file of Debian (linux-image-*.deb)
    #[arg(long, value_name = "KERNEL", default_value = "host")]
    pub kernel: String,
    /// Directory of the kernel's modules, the one with modules.dep [default: found beside the image]
    #[arg(long, value_name = "DIR")]
    pub modules: Option<String>,
    /// A module that the guest loads beside those that it needs; may be given more than once
    #[arg(long = "module", value_name = "NAME")]
    pub module: Vec<String>,
    /// A program of this host by its name, with its libraries, or a file or directory by its path, that the guest has, too;
    /// several by commas, or more than once
    #[arg(long = "with", value_name = "NAME|PATH", value_delimiter = ',')]
    pub with: Vec<String>,
}

/// What a guest is.
#[derive(Debug, Args)]
pub struct GuestMachine {
    #[command(flatten)]
    pub kernel: GuestKernel,
    /// Who runs its instructions
    #[arg(long, value_enum, default_value = "any")]
    pub accelerator: GuestAccelerator,
    /// Virtual CPUs
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub vcpus: u32,
    /// Memory, MiB
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = clap::value_parser!(u32).range(128..))]
    pub memory: u32,
    /// What is added to its kernel command line
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    pub command_line: String,
}

/// Who runs the instructions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GuestAccelerator {
    /// The processor; a host where that does not work is not fit
    Kvm,
    /// KVM where it works, else emulation
    Any,
    /// QEMU emulates them: what is measured is functional only
    Emulated,
}

#[derive(Debug, Args)]
pub struct GuestBuild {
    #[command(flatten)]
    pub kernel: GuestKernel,
    /// Directory to copy kernel and initramfs to; is made
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
    /// Directory of the record; must not exist [default: tailbound-STUDY]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Study file, or the name of a built-in study
    pub study: PathBuf,
    /// Further arguments of `tailbound run`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}
