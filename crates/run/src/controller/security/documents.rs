//! The governance and permissions documents of DDS Security, before they are signed (OMG DDS Security 1.1, section 9.4.1).

use std::fmt::Write as _;
use tailbound_model::{Governance, Protection};

/// First lines of both documents.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dds>\n";
/// All domains. The domain of the trial is chosen by its drivers. Cyclone DDS refuses documents with a higher one.
const DOMAINS: &str = "<domains><id_range><min>0</min><max>230</max></id_range></domains>";

/// Makes the governance document: the same rules for all domains and topics.
pub(super) fn governance(governance: Governance) -> String {
    let kinds = governance.protections();
    let protects = |kind: Protection| kind != Protection::None;
    format!(
        "{HEAD}  <domain_access_rules>\n    <domain_rule>\n      {DOMAINS}\n      \
         <allow_unauthenticated_participants>false</allow_unauthenticated_participants>\n      \
         <enable_join_access_control>true</enable_join_access_control>\n      \
         <discovery_protection_kind>{}</discovery_protection_kind>\n      \
         <liveliness_protection_kind>{}</liveliness_protection_kind>\n      \
         <rtps_protection_kind>{}</rtps_protection_kind>\n      \
         <topic_access_rules>\n        <topic_rule>\n          <topic_expression>*</topic_expression>\n          \
         <enable_discovery_protection>{}</enable_discovery_protection>\n          \
         <enable_liveliness_protection>{}</enable_liveliness_protection>\n          \
         <enable_read_access_control>true</enable_read_access_control>\n          \
         <enable_write_access_control>true</enable_write_access_control>\n          \
         <metadata_protection_kind>{}</metadata_protection_kind>\n          \
         <data_protection_kind>{}</data_protection_kind>\n        </topic_rule>\n      </topic_access_rules>\n    \
         </domain_rule>\n  </domain_access_rules>\n</dds>\n",
        kinds.discovery.word(),
        kinds.liveliness.word(),
        kinds.rtps.word(),
        protects(kinds.discovery),
        protects(kinds.liveliness),
        kinds.metadata.word(),
        kinds.data.word(),
    )
}

/// Makes the permissions document: each of the subjects may publish and subscribe everything.
pub(super) fn permissions(subjects: &[String]) -> String {
    let mut text = format!("{HEAD}  <permissions>\n");
    let everything = "<topics><topic>*</topic></topics><partitions><partition>*</partition></partitions>";
    for (number, subject) in subjects.iter().enumerate() {
        let _ = write!(
            text,
            "    <grant name=\"grant{number}\">\n      <subject_name>{}</subject_name>\n      \
             <validity><not_before>2020-01-01T00:00:00</not_before><not_after>2099-12-31T00:00:00</not_after></validity>\n      \
             <allow_rule>\n        {DOMAINS}\n        <publish>{everything}</publish>\n        \
             <subscribe>{everything}</subscribe>\n      </allow_rule>\n      <default>DENY</default>\n    </grant>\n",
            escaped(subject)
        );
    }
    text.push_str("  </permissions>\n</dds>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_say_what_is_protected_and_who_may_join() {
        insta::assert_snapshot!("governance_ros2", governance(Governance::Ros2));
        insta::assert_snapshot!("permissions", permissions(&["CN=ping".into(), "CN=a&b,O=c".into()]));
        for kind in Governance::ALL {
            let text = governance(kind);
            for (part, kind) in kind.protections().parts() {
                let element = format!("<{part}_protection_kind>{}</{part}_protection_kind>", kind.word());
                assert_eq!(text.matches(&element).count(), 1, "{element} in {text}");
            }
        }
    }
}
