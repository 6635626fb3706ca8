# shellcheck shell=bash
# Prints the state of the cluster.

# Lists programs that `up` started and that have ended.
ended() {
  local file
  for file in "$state"/*/*.pid; do
    [ -e "$file" ] || continue
    runs "$file" || { file=${file#"$state"/}; printf '%s ' "${file%.pid}"; }
  done
}

status() {
  [ -e "$state" ] || { echo "no cluster is running; start one: dev/cluster up"; return; }
  need_up
  build_kubernetes
  echo "pod network: $(<"$state/cni")"
  echo "kubeconfig:  $state/kubeconfig"
  local stopped; stopped=$(ended)
  [ -z "$stopped" ] || echo "ended:       $stopped(logs: $state/*/log)"
  kube get nodes -o wide || die "the API server does not answer; its log: $state/control/log/apiserver"
  kube get pods -A -o wide
}
