//! Prepares the files that are needed to start a guest.

use crate::cache::Cache;
use crate::initramfs::{Initramfs, initramfs};
use crate::kernel::Kernel;
use crate::kvm_trial;
use crate::machine::SNAPSHOTS;
use crate::qemu::qemu;
use tailbound_bundle::Contents;
use tailbound_model::{Accelerator, Problem, VmSpec};

/// The prepared files of a guest, with which it can be started any number of times.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Kernel that was chosen for the guest to boot.
    pub kernel: Kernel,
    /// Initramfs that was made for the guest to boot.
    pub initramfs: Initramfs,
    /// Whether KVM runs the guest; otherwise QEMU emulates its processor.
    pub kvm: bool,
    /// Release of QEMU on this host.
    pub qemu: String,
    /// Where snapshots of emulated guests are kept; `None` = each guest boots, which is so except in tests.
    pub snapshots: Option<Cache>,
    /// Reason why KVM does not run the guest, if the study allows KVM and emulation.
    pub without_kvm: Option<String>,
}

/// Finds QEMU and the kernel of a guest, makes the initramfs of `contents`, and decides between KVM and emulation.
///
/// # Errors
/// QEMU, the kernel or a module is missing, or the study requires KVM and KVM does not work.
pub fn prepare(spec: &VmSpec, contents: &Contents, maybe: &[&str], cache: &Cache) -> Result<Prepared, Problem> {
    let guest = format!("guest {}", spec.name);
    let named = |e: Problem| e.context(&guest);
    let qemu = qemu().map_err(named)?;
    let kernel = Kernel::find(&spec.kernel, cache).map_err(named)?;
    let initramfs = initramfs(&kernel, contents, (&spec.modules, maybe), cache).map_err(named)?;
    let kvm = match spec.accelerator {
        Accelerator::Emulated => Ok(()),
        _ => kvm_trial::kvm(spec, &kernel, &initramfs, &qemu, cache)?,
    };
    let (kvm, without_kvm) = match (spec.accelerator, kvm) {
        (Accelerator::Emulated, _) => (false, None),
        (_, Ok(())) => (true, None),
        (Accelerator::Any, Err(problem)) => (false, Some(problem.what)),
        (Accelerator::Kvm, Err(problem)) => {
            let remedy = "use the accelerator `any` or `emulated` (results of an emulated guest are functional only), \
                        or use a host with KVM";
            return Err(named(problem.with_remedy(remedy)));
        }
    };
    let snapshots = std::env::var_os(SNAPSHOTS).map(|_| cache.clone());
    Ok(Prepared { kernel, initramfs, kvm, qemu, snapshots, without_kvm })
}
