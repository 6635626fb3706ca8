//! Where the cluster is, and as whom it is asked: what the study says, or what `kubectl` would take.

use crate::error::PodError;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::path::PathBuf;
use tailbound_model::PodSpec;

/// Where it is from, inside a cluster.
pub(crate) const OWN_ACCOUNT: &str = "the account of this pod";

/// The configuration, and in words where it is from.
pub(crate) async fn config(spec: &PodSpec) -> Result<(Config, String), PodError> {
    let Some((kubeconfig, from)) = kubeconfig(spec)? else {
        let config = Config::incluster().map_err(|e| {
            PodError::new(
                format!("the account of this pod cannot be used to ask its cluster: {e}"),
                "let the pod have the token of a service account (automountServiceAccountToken: true)",
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

/// The file, and its name; nothing within a cluster where there is none.
fn kubeconfig(spec: &PodSpec) -> Result<Option<(Kubeconfig, String)>, PodError> {
    let unread = |e: KubeconfigError, from: &str| match e {
        KubeconfigError::ReadConfig(e, file) => PodError::new(
            format!("the kubeconfig {} cannot be read: {e}", file.display()),
            "name another `kubeconfig`, or look at KUBECONFIG",
        ),
        e => PodError::new(
            // Below it is the line of the file.
            format!("{from} is no kubeconfig: {}", e.to_string().lines().next().unwrap_or_default()),
            "`kubectl config view` shows what kubectl makes of it",
        ),
    };
    if let Some(file) = &spec.kubeconfig {
        return Kubeconfig::read_from(file).map(|read| Some((read, file.clone()))).map_err(|e| unread(e, file));
    }
    // Several files may stand in it, of which some may be missing: kube puts them together as kubectl does.
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
    Err(PodError::new(
        format!("there is no kubeconfig: KUBECONFIG is not set, there is no {}, and this is not a pod", home.display()),
        "name a `kubeconfig` in the study, or set KUBECONFIG",
    ))
}

fn unusable(error: &KubeconfigError, from: &str, contexts: &[String]) -> PodError {
    let there = if contexts.is_empty() { "it has none".to_owned() } else { format!("it has {}", contexts.join(", ")) };
    match error {
        KubeconfigError::LoadContext(name) => {
            PodError::new(format!("{from} has no context {name}"), format!("name another `context`: {there}"))
        }
        KubeconfigError::CurrentContextNotSet => {
            PodError::new(format!("{from} has no current context"), format!("name a `context`: {there}"))
        }
        KubeconfigError::LoadClusterOfContext(name) => PodError::new(
            format!("{from} does not tell where the cluster {name} of its context is"),
            format!("name another `context`: {there}"),
        ),
        other => PodError::new(
            format!("{from} cannot be used: {other}"),
            "`kubectl --kubeconfig` with the same file shows whether it can use it",
        ),
    }
}
