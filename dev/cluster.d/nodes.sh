# shellcheck shell=bash
# Programs of a node: containerd, kubelet, kube-proxy.

cgroup_of() { echo "/$cluster_name/$1"; }

# Expands a CPU list such as "0-3,8" into numbers.
cpus_of_host() {
  local part
  for part in $(tr , ' ' </sys/devices/system/cpu/online); do seq "${part%-*}" "${part#*-}"; done
}
# The CPUs that a node does not give to its Guaranteed pods, because the other node gives them. With two CPUs, each node gives one.
reserved_cpus() { # number of the node
  local all half
  mapfile -t all < <(cpus_of_host)
  half=$((${#all[@]} / 2))
  [ "$half" -gt 0 ] || die "Guaranteed pods need two CPUs, and this machine has ${#all[@]}"
  local -a kept=("${all[@]:half}")
  [ "$1" = 1 ] || kept=("${all[@]:0:half}")
  (IFS=,; echo "${kept[*]}")
}

write_containerd_config() {
  # opt: the host's /opt would keep its empty directories.
  # restrict_oom_score_adj: without CAP_SYS_RESOURCE, as inside some virtual machines, a score cannot be lowered.
  cat >"$state/containerd.toml" <<'T'
version = 2
[plugins."io.containerd.internal.v1.opt"]
path = "/run/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "tailbound.invalid/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/run/cni/bin"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
T
}

# failSwapOn, evictionHard, imageGC: a test machine may use swap and may have a full disk, and removed images would have to be
# imported again by hand.
write_kubelet_config() { # number of the node
  cat >"$state/node$1/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: $(cgroup_of "node$1")
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $state/keys/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $state/keys/node$1.crt
tlsPrivateKeyFile: $state/keys/node$1.key
clusterDNS: ["$(dns_address)"]
clusterDomain: $dns_domain
cpuManagerPolicy: static
reservedSystemCPUs: "$(reserved_cpus "$1")"
failSwapOn: false
volumePluginDir: /var/lib/kubelet/plugins-exec
evictionHard: {memory.available: 100Mi}
evictionPressureTransitionPeriod: 1s
imageGCHighThresholdPercent: 100
Y
}
write_proxy_config() {
  # The sizes of conntrack's tables belong to the host: zero does not change them.
  cat >"$state/proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: $pods
clientConnection: {kubeconfig: $state/keys/proxy.conf}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
Y
}

furnish_place() { # place
  mkdir -p "$state/$1/run"
  enter "$1" "$cluster_dir/furnish" "$state" "$1" "$(cgroup_of "$1")"
}

start_containerd() { # place
  enter "$1" mkdir -p /run/cni
  enter "$1" cp -r /usr/lib/cni /run/cni/bin
  # Debian has no plugin for Flannel.
  enter "$1" cp "$bin_flannel_cni/flannel" /run/cni/bin/
  spawn "$1" containerd containerd --config "$state/containerd.toml"
}
containerd_answers() { enter "$1" timeout 5 ctr version; }

start_kubelet() { # number of the node
  write_kubelet_config "$1"
  spawn "node$1" kubelet "$bin_kubernetes/kubelet" --config="$state/node$1/kubelet.yaml" --kubeconfig="$state/keys/node$1.conf" \
    --node-ip="$(node_address "$1")"
}
start_proxy() { # number of the node
  spawn "node$1" proxy "$bin_kubernetes/kube-proxy" --config="$state/proxy.yaml" --hostname-override="node$1"
}

# By hand, so that node1 always has the same range; the control plane would give it to the node that registers first.
give_pod_range() { # number of the node
  kube patch node "node$1" -p "{\"spec\": {\"podCIDR\": \"$(pod_range "$1")\", \"podCIDRs\": [\"$(pod_range "$1")\"]}}" >/dev/null
}
