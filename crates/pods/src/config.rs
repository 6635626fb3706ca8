//! Finds the address of the cluster and the credentials: from the study, or from the same files as `kubectl`.

use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::path::PathBuf;
use tailbound_model::{PodSpec, Problem};

/// Name of the Kubernetes configuration for error messages, if Tailbound runs in a pod and uses the pod's own account.
pub(crate) const OWN_ACCOUNT: &str = "the account of this pod";

/// Finds the configuration of the connection to the cluster, and describes its source for messages.
pub(crate) async fn config(spec: &PodSpec) -> Result<(Config, String), Problem> {
    let Some((kubeconfig, from)) = kubeconfig(spec)? else {
        let config = Config::incluster().map_err(|e| {
            Problem::new(
                "kubeconfig",
                format!("the account of this pod cannot be used to ask its cluster: {e}"),
                "mount the token of a service account into the pod (automountServiceAccountToken: true)",
            )
        })?;
        return Ok((config, OWN_ACCOUNT.to_owned()));
    };
    let contexts: Vec<String> = kubeconfig.contexts.iter().map(|c| c.name.clone()).collect();
    let context = spec.context.clone().or_else(|| kubeconfig.current_context.clone());
    let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| unusable(&e, &from, &contexts))?;
    Ok((config, format!("context {} of {from}", context.unwrap_or_default())))
}

/// Reads the kubeconfig and returns it with its name for messages; `None` inside a cluster if there is no kubeconfig.
fn kubeconfig(spec: &PodSpec) -> Result<Option<(Kubeconfig, String)>, Problem> {
    let unread = |e: KubeconfigError, from: &str| match e {
        KubeconfigError::ReadConfig(e, file) => Problem::new(
            "kubeconfig",
            format!("the kubeconfig {} cannot be read: {e}", file.display()),
            "name another `kubeconfig`, or correct the variable KUBECONFIG",
        ),
        e => Problem::new(
            "kubeconfig",
            // The following lines of the error quote the file.
            format!("{from} is not a kubeconfig: {}", e.to_string().lines().next().unwrap_or_default()),
            "`kubectl config view` shows how kubectl reads this file",
        ),
    };
    if let Some(file) = &spec.kubeconfig {
        return Kubeconfig::read_from(file).map(|read| Some((read, file.clone()))).map_err(|e| unread(e, file));
    }
    // The variable may name several files, of which some may be missing: kube merges them as kubectl does.
    match Kubeconfig::from_env() {
        Ok(Some(read)) => return Ok(Some((read, "$KUBECONFIG".to_owned()))),
        Ok(None) => {}
        Err(e) => return Err(unread(e, "$KUBECONFIG")),
    }
    let home = std::env::home_dir().map(|home| home.join(".kube/config"));
    if let Some(file) = home.as_ref().filter(|file| file.exists()) {
        let name = file.display().to_string();
        return Kubeconfig::read_from(file).map(|read| Some((read, name.clone()))).map_err(|e| unread(e, &name));
    }
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return Ok(None);
    }
    let home = home.unwrap_or_else(|| PathBuf::from("~/.kube/config"));
    Err(Problem::new(
        "kubeconfig",
        format!("there is no kubeconfig: KUBECONFIG is not set, there is no {}, and this is not a pod", home.display()),
        "name a `kubeconfig` in the study, or set KUBECONFIG",
    ))
}

fn unusable(error: &KubeconfigError, from: &str, contexts: &[String]) -> Problem {
    let there = match contexts.is_empty() {
        true => "the kubeconfig has none".to_owned(),
        false => format!("the kubeconfig has {}", contexts.join(", ")),
    };
    match error {
        KubeconfigError::LoadContext(name) => Problem::new(
            "kubeconfig",
            format!("{from} has no context {name}"),
            format!("name another `context`: {there}"),
        ),
        KubeconfigError::CurrentContextNotSet => {
            Problem::new("kubeconfig", format!("{from} has no current context"), format!("name a `context`: {there}"))
        }
        KubeconfigError::LoadClusterOfContext(name) => Problem::new(
            "kubeconfig",
            format!("{from} does not contain the cluster {name} that its context names"),
            format!("name another `context`: {there}"),
        ),
        other => Problem::new(
            "kubeconfig",
            format!("{from} cannot be used: {other}"),
            "`kubectl --kubeconfig` with the same file shows whether kubectl can use the file",
        ),
    }
}
