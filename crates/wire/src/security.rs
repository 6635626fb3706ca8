//! Certificates and signed documents of DDS Security that the controller gives to an end.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The files of DDS Security of one end, as text: certificates and key in PEM, signed documents in S/MIME.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSecurity {
    /// Certificate of the authority that signed the certificates of all participants.
    pub identity_ca: String,
    /// Certificate of the end's participants.
    pub identity_certificate: String,
    /// Private key of the certificate of the end's participants.
    pub private_key: String,
    /// Certificate of the authority that signed the governance and permissions documents.
    pub permissions_ca: String,
    /// The signed governance document: which parts of messages are protected.
    pub governance: String,
    /// The signed permissions document: who may join which domain, and use which topics.
    pub permissions: String,
}

impl EndSecurity {
    /// Each file with the name of the driver option that takes its address.
    pub fn files(&self) -> [(&'static str, &str); 6] {
        [
            ("identity_ca", &self.identity_ca),
            ("identity_certificate", &self.identity_certificate),
            ("private_key", &self.private_key),
            ("permissions_ca", &self.permissions_ca),
            ("governance", &self.governance),
            ("permissions", &self.permissions),
        ]
    }
}

/// Shows no file, because one of them is a private key and messages may be logged.
impl fmt::Debug for EndSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndSecurity { .. }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_is_never_shown() {
        let secret = || "secret".to_owned();
        let files = EndSecurity {
            identity_ca: secret(),
            identity_certificate: secret(),
            private_key: secret(),
            permissions_ca: secret(),
            governance: secret(),
            permissions: secret(),
        };
        assert_eq!(format!("{files:?}"), "EndSecurity { .. }");
    }
}
