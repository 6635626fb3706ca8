//! A name for all pods of a run: a Service without an address of its own, which DNS answers with theirs.

use crate::cluster::Cluster;
use crate::error::PodError;
use crate::object::RUN_LABEL;
use crate::service::metadata;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

/// What a run wants of a name.
#[derive(Debug, Clone)]
pub struct NameRequest {
    /// Name of the Service.
    pub name: String,
    /// Label by which it is found again.
    pub token: String,
    /// The pod with which the cluster removes it, should nobody else.
    pub owner: String,
    /// Value of [`RUN_LABEL`] of the pods.
    pub run: String,
}

fn object(request: &NameRequest, owner_uid: &str) -> Value {
    json!({
        "metadata": metadata(&request.name, &request.token, (&request.owner, owner_uid)),
        // Without ports: only the addresses matter.
        "spec": { "clusterIP": "None", "ipFamilies": ["IPv4"], "selector": { RUN_LABEL: request.run } },
    })
}

impl Cluster {
    /// Makes a headless Service of the pods of a run; the name by which each of them finds all. It takes the cluster a
    /// moment to answer to it.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn name(&self, request: &NameRequest) -> Result<String, PodError> {
        let owner = self.pod(&request.owner).await?;
        let _: Service = self.create("services", object(request, &owner.uid), &request.name).await?;
        // What follows is the cluster's own domain, which pods search.
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
