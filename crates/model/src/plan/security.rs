//! DDS Security (OMG DDS Security 1.1): which parts of the messages of a trial are protected, and by whose certificates.

use serde::{Deserialize, Serialize};
use std::fmt;

/// DDS Security of the participants of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecuritySpec {
    /// The governance document that all participants get.
    pub governance: Governance,
    /// Absolute path of the user's directory with an identity for each end; `None` = Tailbound makes a certificate
    /// authority and the identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
}

/// A governance document, by the parts of messages that it protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Governance {
    /// The plug-ins are loaded and authenticate the participants; no message is protected.
    None,
    /// Whole RTPS messages are signed.
    Sign,
    /// Whole RTPS messages are encrypted.
    Encrypt,
    /// Only the payload of samples is encrypted.
    EncryptData,
    /// RTPS messages, submessages and payload are encrypted, each for itself.
    EncryptAll,
    /// The governance that `ros2 security` (SROS2) writes by default.
    Ros2,
}

/// Protection of one part of messages: an element `*_protection_kind` of a governance document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protection {
    /// The part is neither signed nor encrypted.
    None,
    /// A message authentication code protects the part; everybody can read it.
    Sign,
    /// The part is encrypted and authenticated.
    Encrypt,
}

/// Protection of each part of messages in a governance document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protections {
    /// Whole RTPS messages (`rtps_protection_kind`).
    pub rtps: Protection,
    /// Submessages of discovery (`discovery_protection_kind`).
    pub discovery: Protection,
    /// Submessages of the liveliness protocol (`liveliness_protection_kind`).
    pub liveliness: Protection,
    /// Submessages of topics (`metadata_protection_kind`).
    pub metadata: Protection,
    /// Payload of the samples of topics (`data_protection_kind`).
    pub data: Protection,
}

impl Governance {
    /// All governance documents that a study can name.
    pub const ALL: [Governance; 6] = [
        Governance::None,
        Governance::Sign,
        Governance::Encrypt,
        Governance::EncryptData,
        Governance::EncryptAll,
        Governance::Ros2,
    ];

    /// The word of a study for the governance document.
    pub fn word(self) -> &'static str {
        match self {
            Governance::None => "none",
            Governance::Sign => "sign",
            Governance::Encrypt => "encrypt",
            Governance::EncryptData => "encrypt-data",
            Governance::EncryptAll => "encrypt-all",
            Governance::Ros2 => "ros2",
        }
    }

    /// What the governance document protects, and how.
    pub fn protections(self) -> Protections {
        use Protection::{Encrypt, None, Sign};
        let of = |[rtps, discovery, liveliness, metadata, data]: [Protection; 5]| Protections {
            rtps,
            discovery,
            liveliness,
            metadata,
            data,
        };
        of(match self {
            Governance::None => [None; 5],
            Governance::Sign => [Sign, None, None, None, None],
            Governance::Encrypt => [Encrypt, None, None, None, None],
            Governance::EncryptData => [None, None, None, None, Encrypt],
            Governance::EncryptAll => [Encrypt; 5],
            Governance::Ros2 => [Sign, Encrypt, Encrypt, Encrypt, Encrypt],
        })
    }
}

impl Protection {
    /// The word of a governance document for the protection.
    pub fn word(self) -> &'static str {
        match self {
            Protection::None => "NONE",
            Protection::Sign => "SIGN",
            Protection::Encrypt => "ENCRYPT",
        }
    }
}

impl Protections {
    /// Each protected part by its name in a governance document, without `_protection_kind`.
    pub fn parts(&self) -> [(&'static str, Protection); 5] {
        [
            ("rtps", self.rtps),
            ("discovery", self.discovery),
            ("liveliness", self.liveliness),
            ("metadata", self.metadata),
            ("data", self.data),
        ]
    }
}

impl fmt::Display for Governance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Protections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts().iter().map(|(part, kind)| format!("{part} {}", kind.word())).collect();
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for SecuritySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.governance)?;
        self.files.iter().try_for_each(|files| write!(f, ", files {files}"))
    }
}
