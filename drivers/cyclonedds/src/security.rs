//! DDS Security: the files of a participant as options, and as elements of the Cyclone configuration.
//!
//! Only a Cyclone library with security plug-ins accepts these elements (feature `security`). The plain driver has none of
//! these options.

use std::fmt::Write as _;

use tailbound_abi::TB_EINVAL;
use tailbound_abi::side::{Fail, Outcome, Pair};

/// True if the linked Cyclone library has the security plug-ins.
pub const LINKED: bool = cfg!(feature = "security");

/// A plug-in: its element in the configuration, its library, and the functions that begin and end it.
struct PlugIn {
    element: &'static str,
    library: &'static str,
    functions: [&'static str; 2],
}

const PLUG_INS: [PlugIn; 3] = [
    PlugIn {
        element: "Authentication",
        library: "dds_security_auth",
        functions: ["init_authentication", "finalize_authentication"],
    },
    PlugIn {
        element: "AccessControl",
        library: "dds_security_ac",
        functions: ["init_access_control", "finalize_access_control"],
    },
    PlugIn { element: "Cryptographic", library: "dds_security_crypto", functions: ["init_crypto", "finalize_crypto"] },
];

/// An option with the address of a file: key, plug-in and element of the configuration, help.
pub struct FileOption {
    /// Key of the option of `open`.
    pub key: &'static str,
    plug_in: &'static str,
    element: &'static str,
    /// Help text of the option.
    pub help: &'static str,
}

/// The options with the addresses of the files of DDS Security.
pub const FILES: [FileOption; 6] = [
    FileOption {
        key: "identity_ca",
        plug_in: "Authentication",
        element: "IdentityCA",
        help: "Certificate of the authority that proves the identities (PEM), as file:PATH; all six files, or none.",
    },
    FileOption {
        key: "identity_certificate",
        plug_in: "Authentication",
        element: "IdentityCertificate",
        help: "Certificate of the participants (PEM), as file:PATH.",
    },
    FileOption {
        key: "private_key",
        plug_in: "Authentication",
        element: "PrivateKey",
        help: "Private key of the participants' certificate (PEM), as file:PATH.",
    },
    FileOption {
        key: "permissions_ca",
        plug_in: "AccessControl",
        element: "PermissionsCA",
        help: "Certificate of the authority that signed governance and permissions (PEM), as file:PATH.",
    },
    FileOption {
        key: "governance",
        plug_in: "AccessControl",
        element: "Governance",
        help: "Signed governance document (S/MIME), as file:PATH.",
    },
    FileOption {
        key: "permissions",
        plug_in: "AccessControl",
        element: "Permissions",
        help: "Signed permissions document (S/MIME), as file:PATH.",
    },
];

/// Addresses of the files of DDS Security that a session got.
#[derive(Debug, Default)]
pub struct Security([Option<String>; FILES.len()]);

impl Security {
    /// Stores the address of a file; returns false if the option is another one, or if the library has no security.
    pub fn set(&mut self, pair: &Pair) -> Outcome<bool> {
        let Some(index) = FILES.iter().position(|file| file.key == pair.key).filter(|_| LINKED) else {
            return Ok(false);
        };
        let address = pair.text().unwrap_or_default();
        if !address.starts_with("file:") {
            return Err(pair.bad(TB_EINVAL, "Cyclone DDS reads addresses that begin with file:"));
        }
        self.0[index] = Some(address.to_owned());
        Ok(true)
    }

    /// Checks that there are all files or none.
    pub fn check(&self) -> Outcome {
        let missing: Vec<&str> =
            FILES.iter().zip(&self.0).filter(|(_, file)| file.is_none()).map(|(file, _)| file.key).collect();
        if missing.is_empty() || missing.len() == FILES.len() {
            return Ok(());
        }
        Err(Fail::invalid(format!("DDS Security needs six files, and these are missing: {}", missing.join(", "))))
    }

    /// True if the participants of the session have DDS Security.
    pub fn is_on(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Writes the element `Security` of the configuration of a domain.
    pub fn write(&self, x: &mut String, escape: impl Fn(&str) -> String) {
        if !self.is_on() {
            return;
        }
        x.push_str("<Security>");
        for PlugIn { element, library, functions: [init, end] } in PLUG_INS {
            let _ = write!(
                x,
                "<{element}><Library path=\"{library}\" initFunction=\"{init}\" finalizeFunction=\"{end}\"/>"
            );
            for (file, address) in FILES.iter().zip(&self.0).filter(|(file, _)| file.plug_in == element) {
                let _ = write!(x, "<{0}>{1}</{0}>", file.element, escape(address.as_deref().unwrap_or_default()));
            }
            let _ = write!(x, "</{element}>");
        }
        x.push_str("</Security>");
    }
}
