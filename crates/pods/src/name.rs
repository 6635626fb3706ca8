//! A DNS name for all pods of a run: a Service without an address, whose DNS name resolves to the addresses of the
//! pods.

use crate::cluster::Cluster;
use crate::object::RUN_LABEL;
use crate::service::metadata;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use tailbound_model::Problem;

/// The properties of a DNS name that a run requests.
#[derive(Debug, Clone)]
pub struct NameRequest {
    /// Name of the Service that gives the pods a DNS name.
    pub name: String,
    /// Token in a label of the Service, by which the Service can be found.
    pub token: String,
    /// Name of the pod that owns the Service: if this pod is removed, the cluster removes the Service.
    pub owner: String,
    /// Value of the label [`RUN_LABEL`] of the pods that the DNS name contains.
    pub run: String,
}

fn object(request: &NameRequest, owner_uid: &str) -> Value {
    json!({
        "metadata": metadata(&request.name, &request.token, (&request.owner, owner_uid)),
        // The Service has no ports, because only the addresses of the pods matter.
        "spec": { "clusterIP": "None", "ipFamilies": ["IPv4"], "selector": { RUN_LABEL: request.run } },
    })
}

impl Cluster {
    /// Creates a headless Service for the pods of a run and returns the DNS name that resolves to the addresses of all
    /// of them. The cluster takes a moment until it resolves the name.
    ///
    /// # Errors
    /// The API server refuses the Service.
    pub async fn name(&self, request: &NameRequest) -> Result<String, Problem> {
        let owner = self.pod(&request.owner).await?;
        let _: Service = self.create("services", object(request, &owner.uid), &request.name).await?;
        // Pods have the rest of the name, the domain of the cluster, in their search list.
        Ok(format!("{}.{}.svc", request.name, self.namespace()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_as_it_is_asked_for() {
        let request = NameRequest {
            name: "tailbound-1a2b3c4d-3".into(),
            token: "1a2b3c4d-3".into(),
            owner: "tailbound-1a2b3c4d-1-ping".into(),
            run: "1a2b3c4d".into(),
        };
        let object = object(&request, "0a1b");
        assert!(serde_json::from_value::<Service>(object.clone()).is_ok());
        insta::assert_snapshot!(serde_saphyr::to_string(&object).unwrap());
    }
}
