//! Facts of a host about its machine and its hypervisor.

use super::source::Collector;

pub(super) fn read(c: &mut Collector) {
    c.put_text("machine.architecture", "this program", Ok(std::env::consts::ARCH.to_owned()));
    for (key, file) in [("vendor", "sys_vendor"), ("product", "product_name"), ("bios", "bios_version")] {
        c.text(&format!("machine.{key}"), &format!("/sys/class/dmi/id/{file}"));
    }
    let (source, name) = hypervisor(c);
    // Times measured on an emulated CPU cannot be compared with real times.
    let emulated = name.as_ref().map(|n| n.contains("TCG")).map_err(Clone::clone);
    c.put_flag("machine.emulated", source, emulated);
    c.put_text("machine.hypervisor", source, name);
}

/// Source of the knowledge about the hypervisor, and name of the hypervisor; the name is `none` on a physical machine.
fn hypervisor(c: &Collector) -> (&'static str, Result<String, String>) {
    if let Ok(kind) = c.read("/sys/hypervisor/type") {
        return ("/sys/hypervisor/type", Ok(kind));
    }
    if let Ok(kind) = c.read("/proc/device-tree/hypervisor/compatible") {
        return ("/proc/device-tree/hypervisor/compatible", Ok(kind.trim_end_matches('\0').to_owned()));
    }
    let info = match c.read("/proc/cpuinfo") {
        Ok(text) => text,
        Err(why) => return ("/proc/cpuinfo", Err(why)),
    };
    let flags = info.lines().find(|l| l.starts_with("flags")).unwrap_or_default();
    if !cfg!(target_arch = "x86_64") {
        return ("/proc/device-tree", Err("this architecture has no CPU flag for a hypervisor".into()));
    }
    if !flags.split_whitespace().any(|f| f == "hypervisor") {
        return ("/proc/cpuinfo flags", Ok("none".into()));
    }
    let signature = if c.is_live() { signature() } else { None };
    ("/proc/cpuinfo flags, cpuid leaf 0x40000000", Ok(signature.unwrap_or_else(|| "present, without a name".into())))
}

/// Name of the hypervisor from the twelve characters of CPUID leaf 0x40000000: the common name if these characters are
/// known, else the characters.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|r| r.to_le_bytes()).collect();
    let text: String = bytes
        .into_iter()
        .take_while(|&b| b != 0)
        .map(char::from)
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .collect();
    let name = match text.trim() {
        "" => return None,
        "KVMKVMKVM" => "KVM",
        "TCGTCGTCGTCG" => "QEMU TCG (emulation)",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        other => other,
    };
    Some(name.to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}
