//! Tests of `tailbound k8s`: it prints YAML that Kubernetes accepts, with the rights and labels that Tailbound needs.

use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::Value;
use std::collections::BTreeMap;

fn printed(bench: &Bench, args: &[&str]) -> String {
    let output = bench.tailbound().args(["k8s", "manifest"]).args(args).output().unwrap();
    succeeded(&output);
    String::from_utf8(output.stdout).unwrap()
}

/// Parses the Kubernetes objects that Tailbound printed: map from kind to object.
fn objects(text: &str) -> BTreeMap<String, Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    all.into_iter().map(|o| (o["kind"].as_str().unwrap().to_owned(), o)).collect()
}

#[test]
fn what_is_printed() {
    let text = printed(&Bench::new(), &[]);
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "RELEASE"));
}

/// Test: names that YAML would parse as a number, a truth value or null stay names in every object.
#[test]
fn every_object_has_its_names_and_labels() {
    let image = "registry.example:5000/team/tailbound@sha256:\
                 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    for (namespace, name) in [("tailbound", "tailbound"), ("123", "true"), ("null", "1e3"), ("kube-measuring", "0")] {
        let args = ["--namespace", namespace, "--name", name, "--image", image];
        let objects = objects(&printed(&Bench::new(), &args));
        let kinds = ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "Job", "Role", "RoleBinding", "ServiceAccount"];
        let own = !namespace.starts_with("kube-");
        assert_eq!(objects.len(), kinds.len() + usize::from(own));
        assert_eq!(objects.contains_key("Namespace"), own);
        for kind in kinds.into_iter().chain(own.then_some("Namespace")) {
            let meta = &objects[kind]["metadata"];
            assert_eq!(meta["labels"]["app.kubernetes.io/name"], "tailbound", "{kind}");
            assert_eq!(meta["labels"]["app.kubernetes.io/instance"], name, "{kind}");
            assert_eq!(meta["labels"]["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"), "{kind}");
            let (own_name, within) = match kind {
                "Namespace" => (namespace.to_owned(), Value::Null),
                _ if kind.starts_with("Cluster") => (format!("{namespace}-{name}"), Value::Null),
                _ => (name.to_owned(), namespace.into()),
            };
            assert_eq!((&meta["name"], &meta["namespace"]), (&own_name.into(), &within), "{kind}");
        }
        for (binding, role) in [("RoleBinding", "Role"), ("ClusterRoleBinding", "ClusterRole")] {
            assert_eq!(objects[binding]["roleRef"]["kind"], role);
            assert_eq!(objects[binding]["roleRef"]["name"], objects[role]["metadata"]["name"]);
            let subject = &objects[binding]["subjects"][0];
            assert_eq!((&subject["name"], &subject["namespace"]), (&name.into(), &namespace.into()));
        }
        let pod = &objects["Job"]["spec"]["template"];
        assert_eq!(pod["metadata"]["labels"], objects["Job"]["metadata"]["labels"]);
        assert_eq!(pod["spec"]["serviceAccountName"], name);
        assert_eq!(pod["spec"]["volumes"][0]["configMap"]["name"], name);
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["image"], image);
        // Equal requests and limits give the pod the QoS class Guaranteed.
        assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
    }
}

/// Test: no printed role grants everything, and a comment explains every rule.
#[test]
fn rights_are_named_one_by_one_and_explained() {
    let text = printed(&Bench::new(), &[]);
    let objects = objects(&text);
    let rules = |kind: &str| objects[kind]["rules"].as_array().unwrap().clone();
    let all = [rules("Role"), rules("ClusterRole")].concat();
    assert!(!serde_json::to_string(&all).unwrap().contains('*'));
    assert_eq!(rules("ClusterRole").len(), 2);
    let lines: Vec<&str> = text.lines().collect();
    let explained = lines.windows(2).filter(|w| w[1].starts_with("  - apiGroups") && w[0].starts_with("  # ")).count();
    assert_eq!(explained, all.len());
}

/// Test: the printed roles grant everything that places of type `pod` need, by the rules that their error messages
/// name.
#[cfg(feature = "pods")]
#[test]
fn what_pods_need_is_granted() {
    let objects = objects(&printed(&Bench::new(), &[]));
    for right in tailbound_pods::RIGHTS {
        let kind = if right.cluster_wide { "ClusterRole" } else { "Role" };
        let rule =
            serde_json::json!({ "apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs });
        assert!(objects[kind]["rules"].as_array().unwrap().contains(&rule), "{kind} has no {rule}");
    }
}

/// Test: this release can run the study of the example Job.
#[test]
fn the_example_study_runs() {
    let bench = Bench::new();
    let objects = objects(&printed(&bench, &[]));
    let study = objects["ConfigMap"]["data"]["study.yaml"].as_str().unwrap();
    succeeded(&bench.run(study, &["measure.slots=200", "measure.warm_up=0"]));
    assert_eq!(bench.report()["conditions"].as_array().unwrap().len(), 4);
}

#[test]
fn names_that_a_cluster_refuses_are_refused_here() {
    let bench = Bench::new();
    let long = "a".repeat(64);
    let mut text = String::new();
    for args in [
        ["--namespace", "Tailbound"],
        ["--namespace", ""],
        ["--namespace", &long],
        ["--name", "a-"],
        ["--name", "a.b"],
        ["--name", "a\n---\nkind: Secret"],
        ["--image", "two words"],
        ["--image", "a\" #"],
        ["--image", "a@sha256:12"],
        ["--image", ""],
    ] {
        let (code, printed) =
            exit_and_stderr(&bench.tailbound().args(["k8s", "manifest"]).args(args).output().unwrap());
        text += &format!("{}\nexit {code}\n{printed}\n", args.join(" "));
    }
    insta::assert_snapshot!(text);
}
