//! Tests of the error messages for clusters that cannot be reached. No cluster is needed.

use std::path::Path;
use tailbound_model::PodSpec;
use tailbound_pods::Cluster;

const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:1" } }, { name: gone, cluster: { server: "https://127.0.0.1:1" } }]
users: [{ name: u, user: { token: t } }]
contexts: [{ name: line, context: { cluster: c, user: u } }, { name: lost, context: { cluster: nowhere, user: u } }]
current-context: line
"#;

async fn said(file: &Path, context: Option<&str>) -> String {
    let kubeconfig = Some(file.display().to_string());
    let spec = PodSpec { kubeconfig, context: context.map(str::to_owned), ..PodSpec::default() };
    let text = Cluster::reach(&spec).await.unwrap_err().to_string();
    text.replace(&file.display().to_string(), "KUBECONFIG")
}

#[tokio::test]
async fn unreachable_clusters_are_reported_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let mut texts = vec![said(&file, None).await];
    std::fs::write(&file, "clusters: 7\n").unwrap();
    texts.push(said(&file, None).await);
    std::fs::write(&file, KUBECONFIG).unwrap();
    texts.push(said(&file, Some("lime")).await);
    texts.push(said(&file, Some("lost")).await);
    texts.push(said(&file, None).await);
    std::fs::write(&file, KUBECONFIG.replace("current-context: line", "")).unwrap();
    texts.push(said(&file, None).await);
    std::fs::write(&file, KUBECONFIG.replace("127.0.0.1:1", "cluster.invalid")).unwrap();
    let unknown = said(&file, None).await;
    assert!(unknown.contains("the name of the API server is not known"), "{unknown}");
    insta::assert_snapshot!(texts.join("\n\n"));
}
