//! Explains why an API server refuses a request, or why a request does not reach it.

use super::told;
use crate::rights::RIGHTS;
use kube::core::Status;
use std::error::Error;
use tailbound_model::Problem;

/// The verb, resource and namespace of a request to the Kubernetes API server.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub verb: &'a str,
    pub resource: &'a str,
    pub namespace: &'a str,
}

/// Whether an error says that the object does not exist, or that another object has its name.
pub(crate) fn absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(s) if s.code == 404 || s.code == 409)
}

/// Explains why Kubernetes did not create a pod.
pub(crate) fn not_made(error: kube::Error, asked: &Asked<'_>, failed: &str) -> Problem {
    let kube::Error::Api(status) = &error else { return refused(error, asked, failed) };
    let (namespace, said) = (asked.namespace, status.message.as_str());
    let with = |remedy: String| Problem::new("cluster_refused", format!("{failed}{}", told(Some(said))), remedy);
    let has = |words: &str| said.contains(words);
    match status.code {
        403 if has("because it is being terminated") => Problem::new(
            "cluster_refused",
            format!("{failed}: the namespace {namespace} is being deleted"),
            "wait until the namespace is gone and create it again, or name another `namespace`",
        ),
        403 if has("exceeded quota") => with(format!(
            "ask for fewer `cpus` or less `memory`; `kubectl -n {namespace} get resourcequota` shows what is left"
        )),
        403 if has("violates PodSecurity") && has("hostPID=true") => with(format!(
            "`observe` needs the network and process namespaces of the node: remove `observe`, name another \
             `namespace`, or have the namespace labelled pod-security.kubernetes.io/enforce=privileged: \
             `kubectl label namespace {namespace} ...`"
        )),
        403 if has("violates PodSecurity") => with(format!(
            "leave `capabilities` and `network: host` out, or have the namespace labelled \
             pod-security.kubernetes.io/enforce=privileged: `kubectl label namespace {namespace} ...`"
        )),
        403 if has("RuntimeClass") => with("`kubectl get runtimeclasses` lists the existing classes".into()),
        403 if has("error looking up service account") => {
            with(format!("`kubectl -n {namespace} get serviceaccounts` lists the existing accounts"))
        }
        code if has("admission webhook") || code == 403 && !by_rights(status) => {
            with("the cluster's own rules do not admit such a pod: ask the administrator of the cluster".into())
        }
        404 if has("namespaces") => Problem::new(
            "cluster_refused",
            format!("{failed}: there is no namespace {namespace}"),
            format!("`kubectl create namespace {namespace}`, or name another `namespace`"),
        ),
        409 => Problem::new(
            "cluster_refused",
            format!("{failed}: an object with this name exists already in namespace {namespace}"),
            "`tailbound lab cleanup` removes objects that earlier runs have left in the namespace",
        ),
        422 => with("the cluster refuses a value of the pod: check image, labels, annotations and node".into()),
        _ => refused(error, asked, failed),
    }
}

/// Explains why a request to the Kubernetes API server failed.
pub(crate) fn refused(error: kube::Error, asked: &Asked<'_>, failed: &str) -> Problem {
    match &error {
        kube::Error::Api(status) => match status.code {
            401 => Problem::new(
                "cluster_refused",
                format!("{failed}: the API server does not know this user (401 Unauthorized)"),
                "log in again, because tokens and certificates expire, or name another `context`",
            ),
            403 => forbidden(asked, failed, &status.message),
            code => Problem::new("cluster_refused", format!("{failed}{} ({code})", told(Some(&status.message))), ""),
        },
        kube::Error::Auth(e) => Problem::new(
            "cluster_refused",
            format!("{failed}: the credentials of the kubeconfig cannot be obtained: {e}"),
            "run `kubectl version` to see what the login of the kubeconfig needs",
        ),
        _ => unreached(&error, failed),
    }
}

/// Whether a refusal comes from the server's own check of rights; messages of other refusals have a different form.
fn by_rights(status: &Status) -> bool {
    status.message.contains("cannot ") && status.message.contains(" resource ")
}

/// Returns the error message ([`Problem`]) for a request for which the user lacks a right; the remedy names the rule
/// that grants this right.
fn forbidden(asked: &Asked<'_>, failed: &str, said: &str) -> Problem {
    let Asked { verb, resource, namespace, .. } = asked;
    let right = RIGHTS.iter().find(|r| r.resource == *resource);
    let within = match right {
        Some(right) if right.cluster_wide => String::new(),
        _ => format!(" in namespace {namespace}"),
    };
    let rule = right.map_or_else(
        || "its rules".to_owned(),
        |r| format!("its rule `resources: [{}], verbs: [{}]`", r.resource, r.verbs.join(", ")),
    );
    Problem::new(
        "cluster_refused",
        format!("{failed}: this user may not {verb} {resource}{within}{}", told(Some(said))),
        format!(
            "`tailbound k8s manifest --namespace {namespace}` grants this right by {rule}: have the manifest applied, and use its account"
        ),
    )
}

/// Returns the error message ([`Problem`]) for a request that was not answered, or that a server other than the API
/// server answered.
fn unreached(error: &kube::Error, failed: &str) -> Problem {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause = cause.to_string();
    let has = |words: &[&str]| words.iter().any(|w| cause.contains(w));
    let (why, remedy) = if has(&["UnknownIssuer", "invalid peer certificate", "NotValidForName"]) {
        (
            format!("the kubeconfig does not trust the certificate of its API server ({cause})"),
            "another server answers at the address of the API server, or the certificates were renewed: fetch the \
             kubeconfig again"
                .to_owned(),
        )
    } else if has(&["refused"]) {
        (
            "no program listens at the address of the API server".to_owned(),
            "start the API server, or check the address in the kubeconfig".to_owned(),
        )
    } else if has(&["timed out", "deadline has elapsed", "No route to host", "unreachable"]) {
        (
            "the API server does not answer".to_owned(),
            "check whether the API server runs, and check routes and firewalls".to_owned(),
        )
    } else if has(&["lookup", "resolve", "dns"]) {
        (
            format!("the name of the API server is not known ({cause})"),
            "check the address in the kubeconfig, and DNS".to_owned(),
        )
    } else {
        (cause, "`kubectl version` with the same kubeconfig shows whether kubectl reaches the API server".to_owned())
    };
    Problem::new("cluster_refused", format!("{failed}: {why}"), remedy)
}
