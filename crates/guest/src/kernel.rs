//! The kernel of a guest: an image that QEMU boots, and the kernel's modules.

use crate::cache::{Cache, name_of, name_of_file};
use crate::error::{file_error, guest_error};
use crate::pvh;
use std::path::{Path, PathBuf};
use std::process::Command;
use tailbound_model::{KernelChoice, Problem};

/// Text that says what the user can do if the kernel of a guest cannot be found.
const NAME_ONE: &str = "give the path of a kernel image (vmlinuz) or of a Debian package file that contains a kernel, \
                        for example of the package on which linux-image-cloud-amd64 depends (download it with \
                        `apt-get download`)";

/// A kernel that QEMU can boot in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Release of the guest's kernel, as printed by `uname -r`.
    pub version: String,
    /// Path of the kernel image that QEMU boots.
    pub image: PathBuf,
    /// Directory of the kernel's modules, which contains `modules.dep`; `None` if there are no modules.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// Finds the chosen kernel, unpacks it if necessary, and extracts the image that QEMU boots fastest.
    ///
    /// # Errors
    /// The file of the kernel does not exist, or is not a kernel.
    pub fn find(choice: &KernelChoice, cache: &Cache) -> Result<Kernel, Problem> {
        match choice {
            KernelChoice::Host => of_host(cache),
            KernelChoice::Package(package) => of_package(Path::new(package), cache),
            KernelChoice::Image { image, modules } => {
                let image = Path::new(image);
                let content = std::fs::read(image)
                    .map_err(|e| guest_error(format!("cannot read the kernel {}: {e}", image.display()), NAME_ONE))?;
                let version = version(&content).ok_or_else(|| not_a_kernel(image))?;
                let modules = match modules {
                    Some(directory) => Some(with_modules(Path::new(directory))?),
                    None => beside(image, &version),
                };
                Ok(Kernel { version, image: bootable(image, &content, cache)?, modules })
            }
        }
    }
}

fn of_host(cache: &Cache) -> Result<Kernel, Problem> {
    let release = nix::sys::utsname::uname().map_err(|e| guest_error(format!("this host's kernel: {e}"), ""))?;
    let release = release.release().to_string_lossy().into_owned();
    let image = PathBuf::from(format!("/boot/vmlinuz-{release}"));
    let content = std::fs::read(&image).map_err(|e| {
        let remedy = match e.kind() {
            std::io::ErrorKind::PermissionDenied => "let this user read the kernel file, or run as root",
            _ => NAME_ONE,
        };
        guest_error(format!("the kernel of this host cannot be booted in a guest: {}: {e}", image.display()), remedy)
    })?;
    let modules = Some(PathBuf::from("/lib/modules").join(&release)).filter(|d| d.join("modules.dep").is_file());
    Ok(Kernel { image: bootable(&image, &content, cache)?, version: release, modules })
}

fn of_package(package: &Path, cache: &Cache) -> Result<Kernel, Problem> {
    let not = |why: &str| {
        let remedy = "give the path of a package that contains a kernel, e.g. linux-image-6.1.0-56-rt-amd64_*.deb; a \
                    package that only depends on such a package (linux-image-amd64) contains no kernel";
        guest_error(format!("{} is not a kernel package: {why}", package.display()), remedy)
    };
    if !package.is_file() {
        return Err(guest_error(format!("there is no package file {}", package.display()), NAME_ONE));
    }
    let directory = cache.keep(&format!("kernel-{}", name_of_file(package)?), |directory| {
        run("dpkg-deb", "dpkg", Command::new("dpkg-deb").arg("-x").arg(package).arg(directory))
            .map_err(|e| if e.remedy.is_empty() { not(&e.what) } else { e })?;
        let (release, _) = unpacked(directory).ok_or_else(|| not("the package has no file boot/vmlinuz-*"))?;
        // Debian makes modules.dep when the package is installed.
        match library(directory, &release) {
            Some(modules) if !modules.join("modules.dep").is_file() => {
                let base =
                    if modules.starts_with(directory.join("usr")) { directory.join("usr") } else { directory.into() };
                run("depmod", "kmod", Command::new("depmod").arg("-b").arg(base).arg(&release))
            }
            _ => Ok(()),
        }
    })?;
    let (version, image) = unpacked(&directory).ok_or_else(|| not("the package has no file boot/vmlinuz-*"))?;
    let content = std::fs::read(&image).map_err(file_error("read", &image))?;
    Ok(Kernel { image: bootable(&image, &content, cache)?, modules: library(&directory, &version), version })
}

/// Release and image of the kernel in the directory of an unpacked Debian package.
fn unpacked(directory: &Path) -> Option<(String, PathBuf)> {
    std::fs::read_dir(directory.join("boot")).ok()?.flatten().find_map(|entry| {
        let release = entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        Some((release, entry.path()))
    })
}

/// Directory with the modules of a kernel release, below a root directory.
fn library(root: &Path, release: &str) -> Option<PathBuf> {
    ["lib/modules", "usr/lib/modules"].iter().map(|at| root.join(at).join(release)).find(|d| d.is_dir())
}

/// Directory with the modules of a kernel image, if it is in a usual place next to the image.
fn beside(image: &Path, release: &str) -> Option<PathBuf> {
    let own = image.parent()?;
    let listed = |d: &PathBuf| d.join("modules.dep").is_file();
    let near = ["lib/modules", "modules", "../lib/modules", "../usr/lib/modules"];
    near.iter().map(|at| own.join(at).join(release)).find(listed)
}

fn with_modules(directory: &Path) -> Result<PathBuf, Problem> {
    if directory.join("modules.dep").is_file() {
        return Ok(directory.to_owned());
    }
    let text = format!("{} is not a directory of kernel modules: it has no modules.dep", directory.display());
    Err(guest_error(
        text,
        "give the path of the directory lib/modules/RELEASE; `depmod -b ROOT RELEASE` makes its file modules.dep",
    ))
}

/// Runs a program to its end; if the program fails, the error contains its output.
fn run(program: &str, package: &str, command: &mut Command) -> Result<(), Problem> {
    let output = command.output().map_err(|e| {
        guest_error(format!("cannot run {program}: {e}"), format!("install the package {package} (Debian's name)"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.trim();
    Err(guest_error(format!("{program}: {}", text.strip_prefix(&format!("{program}: ")).unwrap_or(text)), ""))
}

/// Path of an image that QEMU can start without the kernel's own decompressor, if the kernel contains such an image;
/// under emulation this saves a second.
fn bootable(image: &Path, content: &[u8], cache: &Cache) -> Result<PathBuf, Problem> {
    if version(content).is_none() {
        return Err(not_a_kernel(image));
    }
    if pvh::is_pvh(content) {
        return Ok(image.to_owned());
    }
    let Some(inner) = pvh::inner(content) else { return Ok(image.to_owned()) };
    cache
        .keep(&format!("vmlinux-{}", name_of(content)), |path| {
            std::fs::write(path, inner()?).map_err(file_error("write", path))
        })
        .or_else(|e| if e.what == pvh::NO_PVH_ENTRY { Ok(image.to_owned()) } else { Err(e) })
}

fn not_a_kernel(image: &Path) -> Problem {
    guest_error(format!("{} is not a Linux kernel for x86_64 (vmlinuz or vmlinux)", image.display()), NAME_ONE)
}

/// Release of a kernel, from the header of a bzImage (Documentation/arch/x86/boot.rst) or from the text in a plain
/// image.
fn version(content: &[u8]) -> Option<String> {
    let word = |at: usize| {
        let text: Vec<u8> = content.get(at..)?.iter().copied().take_while(|b| b.is_ascii_graphic()).take(128).collect();
        String::from_utf8(text).ok().filter(|t| !t.is_empty())
    };
    if content.get(0x202..0x206) == Some(b"HdrS") {
        let pointer = u16::from_le_bytes(content.get(0x20e..0x210)?.try_into().ok()?);
        return word(0x200 + usize::from(pointer));
    }
    if !content.starts_with(b"\x7fELF") {
        return None;
    }
    let name = b"Linux version ";
    content.windows(name.len()).position(|w| w == name).and_then(|at| word(at + name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(choice: KernelChoice, dir: &Path) -> String {
        let cache = Cache::at(dir.join("cache"));
        let text = Kernel::find(&choice, &cache).unwrap_err().paragraph();
        text.replace(&dir.display().to_string(), "DIR")
    }

    #[test]
    fn files_that_are_not_kernels_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        std::fs::write(file("text"), "not a kernel").unwrap();
        let image = |image: String| KernelChoice::Image { image, modules: None };
        let texts = [
            refused(image(file("gone")), dir.path()),
            refused(image(file("text")), dir.path()),
            refused(KernelChoice::Package(file("gone.deb")), dir.path()),
            refused(KernelChoice::Package(file("text")), dir.path()),
        ];
        // The message of dpkg-deb is not compared.
        let texts = texts.join("\n");
        let (begin, end) = (texts.find("dpkg-deb: ").unwrap(), texts.rfind("\n").unwrap());
        insta::assert_snapshot!(format!("{}dpkg-deb: ...{}", &texts[..begin], &texts[end..]));
    }

    #[test]
    fn the_release_is_in_the_image() {
        let mut image = vec![0; 0x500];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x200u16.to_le_bytes());
        image[0x400..0x400 + 21].copy_from_slice(b"6.1.0-56-rt-amd64 (de");
        assert_eq!(version(&image).as_deref(), Some("6.1.0-56-rt-amd64"));
        assert_eq!(version(b"\x7fELF..Linux version 6.12.1+ (x@y)").as_deref(), Some("6.12.1+"));
        assert_eq!(version(b"\x7fELF"), None);
    }
}
