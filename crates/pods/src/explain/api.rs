//! Requests that an API server refuses, or that do not get there.

use super::told;
use crate::error::PodError;
use crate::rights::RIGHTS;
use kube::core::Status;
use std::error::Error;

/// What was asked for, of whom.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub verb: &'a str,
    pub resource: &'a str,
    pub namespace: &'a str,
}

/// There is no such object, or the one that has the name is another one.
pub(crate) fn absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(s) if s.code == 404 || s.code == 409)
}

/// Why a pod was not made.
pub(crate) fn not_made(error: kube::Error, asked: &Asked<'_>, failed: &str) -> PodError {
    let kube::Error::Api(status) = &error else { return refused(error, asked, failed) };
    let (namespace, said) = (asked.namespace, status.message.as_str());
    let with = |mend: String| PodError::new(format!("{failed}{}", told(Some(said))), mend);
    let has = |words: &str| said.contains(words);
    match status.code {
        403 if has("because it is being terminated") => PodError::new(
            format!("{failed}: the namespace {namespace} is being deleted"),
            "wait until it is gone and make it anew, or name another `namespace`",
        ),
        403 if has("exceeded quota") => with(format!(
            "ask for fewer `cpus` or less `memory`; `kubectl -n {namespace} get resourcequota` shows what is left"
        )),
        403 if has("violates PodSecurity") && has("hostPID=true") => with(format!(
            "`observe` needs the network and process namespaces of the node: leave it out, name another `namespace`, or \
             have this one labelled pod-security.kubernetes.io/enforce=privileged: `kubectl label namespace {namespace} ...`"
        )),
        403 if has("violates PodSecurity") => with(format!(
            "leave `capabilities` and `network: host` out, or have the namespace labelled \
             pod-security.kubernetes.io/enforce=privileged: `kubectl label namespace {namespace} ...`"
        )),
        403 if has("RuntimeClass") => with("`kubectl get runtimeclasses` shows those there are".into()),
        403 if has("error looking up service account") => {
            with(format!("`kubectl -n {namespace} get serviceaccounts` shows those there are"))
        }
        code if has("admission webhook") || code == 403 && !by_rights(status) => {
            with("the cluster's own rules do not admit such a pod: ask who made them".into())
        }
        404 if has("namespaces") => PodError::new(
            format!("{failed}: there is no namespace {namespace}"),
            format!("`kubectl create namespace {namespace}`, or name another `namespace`"),
        ),
        409 => PodError::new(
            format!("{failed}: there is one of that name in namespace {namespace}"),
            "`tailbound lab cleanup` removes what runs have left there",
        ),
        422 => with("the cluster does not take these words: look at image, labels, annotations, node".into()),
        _ => refused(error, asked, failed),
    }
}

/// Why a request was not answered as it should.
pub(crate) fn refused(error: kube::Error, asked: &Asked<'_>, failed: &str) -> PodError {
    match &error {
        kube::Error::Api(status) => match status.code {
            401 => PodError::new(
                format!("{failed}: its API server does not know this user (401 Unauthorized)"),
                "log in again, for tokens and certificates have an end; or name another `context`",
            ),
            403 => forbidden(asked, failed, &status.message),
            code => PodError::new(format!("{failed}{} ({code})", told(Some(&status.message))), ""),
        },
        kube::Error::Auth(e) => PodError::new(
            format!("{failed}: the credentials of the kubeconfig are not to be had: {e}"),
            "`kubectl version` by hand shows what its login wants",
        ),
        _ => unreached(&error, failed),
    }
}

/// The message of the server's own authoriser; others that forbid have words of their own.
fn by_rights(status: &Status) -> bool {
    status.message.contains("cannot ") && status.message.contains(" resource ")
}

/// The user lacks a right: which, and what grants it.
fn forbidden(asked: &Asked<'_>, failed: &str, said: &str) -> PodError {
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
    PodError::new(
        format!("{failed}: this user may not {verb} {resource}{within}{}", told(Some(said))),
        format!(
            "`tailbound k8s manifest --namespace {namespace}` grants it by {rule}: have it applied, and use its account"
        ),
    )
}

/// No answer came, or from somebody else.
fn unreached(error: &kube::Error, failed: &str) -> PodError {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause = cause.to_string();
    let has = |words: &[&str]| words.iter().any(|w| cause.contains(w));
    let (why, mend) = if has(&["UnknownIssuer", "invalid peer certificate", "NotValidForName"]) {
        (
            format!("the certificate of its API server is not one that the kubeconfig vouches for ({cause})"),
            "another server answers there, or its certificates were renewed: fetch the kubeconfig anew".to_owned(),
        )
    } else if has(&["refused"]) {
        ("nothing listens there".to_owned(), "start it, or look at the address in the kubeconfig".to_owned())
    } else if has(&["timed out", "deadline has elapsed", "No route to host", "unreachable"]) {
        ("it does not answer".to_owned(), "look whether it is up, and at routes and firewalls".to_owned())
    } else if has(&["lookup", "resolve", "dns"]) {
        (format!("its name is not known ({cause})"), "look at the address in the kubeconfig, and at DNS".to_owned())
    } else {
        (cause, "`kubectl version` with the same kubeconfig shows whether it gets there".to_owned())
    };
    PodError::new(format!("{failed}: {why}"), mend)
}
