# shellcheck shell=bash
# Starts the cluster in stages, and prints after each stage the time since the beginning.

require() { # program package
  command -v "$1" >/dev/null || die "$1 is not installed (Debian: $2); install all missing programs: dev/setup cluster"
}
require_programs() {
  local pair
  for pair in containerd:containerd runc:runc etcd:etcd-server iptables:iptables nft:nftables ip:iproute2 \
    nsenter:util-linux openssl:openssl python3:python3 timeout:coreutils; do
    require "${pair%:*}" "${pair#*:}"
  done
  [ -x /usr/lib/cni/host-local ] || die "the CNI plugins are not installed (Debian: containernetworking-plugins); install them: dev/setup cluster"
}

say_how_to_use() {
  echo "kubeconfig: $state/kubeconfig"
  echo "use it:     export KUBECONFIG=$state/kubeconfig; or: dev/cluster kubectl get pods -A -o wide"
}

up() { # cni
  if [ -e "$state/ready" ]; then
    local has; has=$(<"$state/cni")
    [ "$has" = "$1" ] || die "a cluster with the pod network $has is running; first: dev/cluster down"
    [ -z "$(ended)" ] || die "a cluster is running, but these programs have ended: $(ended)(logs: $state/*/log); first: dev/cluster down"
    echo "dev/cluster: the cluster is running already, with the pod network $has"
    say_how_to_use
    return
  fi
  [ ! -e "$state" ] || die "a cluster is being started, or its start was interrupted; in the second case: dev/cluster down"
  require_programs
  # Building takes longest and happens only once, so it is not part of the printed times.
  case $1 in
    calico) require ipset ipset ;;
    cilium) require "$cilium_clang" "$cilium_clang"; require bpftool bpftool; require curl curl; require patch patch ;;
  esac
  build "$1"
  local route; route=$(ip -4 route show to root "$lan.0/24"; ip -4 route show to match "$lan.0/24" | grep -v '^default' || true)
  [ -z "$route" ] || die "the host has a route to $lan.0/24, which is the network of the cluster: $route"
  mkdir "$state" || die "another dev/cluster up has started at the same time"
  # After any failure from here on, also after Ctrl-C, the reason is printed and everything is removed.
  trap 'failed' EXIT
  trap 'exit 130' INT TERM HUP
  began_us=${EPOCHREALTIME/./}
  bring_up "$1"
  trap - EXIT INT TERM HUP
  say_how_to_use
}

failed() {
  trap - EXIT INT TERM HUP
  local program logs=()
  # A program that ended by itself is probably the reason; otherwise any program may be the reason.
  for program in $(ended); do logs+=("$state/${program%%/*}/log/${program#*/}"); done
  [ ${#logs[@]} -gt 0 ] || logs=("$state"/*/log/*)
  for program in "${logs[@]}"; do
    [ -s "$program" ] || continue
    echo "--- last lines of $program"; tail -n 3 "$program" | cut -c 1-300
  done >&2
  down
  echo "dev/cluster: the cluster did not start; the reason is printed above the logs; everything that was made is removed" >&2
  exit 1
}

bring_up() { # cni
  local place i
  echo "$1" >"$state/cni"
  for place in control node1 node2; do make_place "$place"; done
  make_lan
  # sysfs is mounted after the interfaces exist, because it shows the interfaces of the namespace.
  for place in control node1 node2; do furnish_place "$place"; done
  make_keys
  stage "namespaces, network, keys"
  start_etcd
  write_containerd_config; write_proxy_config
  for i in 1 2; do start_containerd "node$i"; done
  for i in 1 2; do
    wait_for 30 "containerd of node$i ($state/node$i/log/containerd)" containerd_answers "node$i"
    load_pause "node$i"
  done
  stage "containerd"
  wait_for 90 "the API server ($state/control/log/apiserver)" kube get --raw /readyz
  start_controllers
  wait_for 30 "the namespace kube-system" kube get namespace kube-system
  start_dns
  stage "API server"
  for i in 1 2; do start_kubelet "$i"; done
  for i in 1 2; do
    wait_for 60 "registration of node$i ($state/node$i/log/kubelet)" kube get node "node$i"
    give_pod_range "$i"
    start_proxy "$i"
  done
  stage "kubelets"
  start_cni "$1"
  stage "pod network $1"
  wait_for 60 "both nodes ready (dev/cluster status)" nodes_ready
  # Without it pods are refused.
  wait_for 30 "the service account of the namespace default" kube get serviceaccount default
  [ -z "$(ended)" ] || die "these programs ended during the start: $(ended)"
  touch "$state/ready"
  stage "nodes ready"
}
nodes_ready() {
  [ "$(kube get nodes -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}')" = "True True " ]
}
