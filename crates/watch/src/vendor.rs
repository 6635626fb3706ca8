//! Vendors of DDS, and where each takes the source timestamp of a sample.

use tailbound_rtps::VendorId;

/// What is known about a vendor.
pub struct Vendor {
    /// Name of the implementation.
    pub name: &'static str,
    /// Where its source timestamp is taken, and what passes before it unseen.
    pub begins: &'static str,
}

const UNKNOWN: &str = "it is not known where this vendor takes its source timestamp";

/// The numbers that OMG gave (https://www.dds-foundation.org/dds-rtps-vendor-and-product-ids), for implementations in use.
const VENDORS: [([u8; 2], Vendor); 9] = [
    (
        [1, 0x01],
        Vendor {
            name: "RTI Connext",
            begins: "Connext takes its source timestamp as its QoS says, by default at the begin of the write",
        },
    ),
    ([1, 0x02], Vendor { name: "OpenSplice", begins: UNKNOWN }),
    ([1, 0x03], Vendor { name: "OpenDDS", begins: UNKNOWN }),
    (
        [1, 0x0a],
        Vendor {
            name: "RTI Connext Micro",
            begins: "Connext takes its source timestamp as its QoS says, by default at the begin of the write",
        },
    ),
    (
        [1, 0x0f],
        Vendor {
            name: "Fast DDS",
            begins: "Fast DDS takes its source timestamp after it has serialised the sample, under the lock of its history: \
                     serialising, and waiting for this lock, pass before it unseen",
        },
    ),
    (
        [1, 0x10],
        Vendor {
            name: "Cyclone DDS",
            begins: "Cyclone DDS takes its source timestamp at the begin of the write: only what the program did before is unseen",
        },
    ),
    ([1, 0x11], Vendor { name: "GurumDDS", begins: UNKNOWN }),
    ([1, 0x12], Vendor { name: "RustDDS", begins: "RustDDS gives a source timestamp only if the program does" }),
    ([1, 0x14], Vendor { name: "Dust DDS", begins: UNKNOWN }),
];

/// What is known about a vendor; `None` = nothing.
pub fn vendor(id: VendorId) -> Option<&'static Vendor> {
    VENDORS.iter().find(|(number, _)| *number == id.0).map(|(_, vendor)| vendor)
}

/// Name of a vendor, or its number.
pub fn name(id: VendorId) -> String {
    vendor(id).map_or_else(|| format!("vendor {:02x}.{:02x}", id.0[0], id.0[1]), |vendor| vendor.name.to_owned())
}

/// Where the source timestamp of a vendor is taken.
pub fn begins(id: VendorId) -> &'static str {
    vendor(id).map_or(UNKNOWN, |vendor| vendor.begins)
}
