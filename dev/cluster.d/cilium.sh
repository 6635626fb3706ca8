# shellcheck shell=bash
# Cilium with VXLAN beside kube-proxy, which enforces network policies. Its agent runs beside the kubelet and not in a
# pod; without its operator: this script creates the resource kinds of Cilium, and old identities are never removed.

# Cilium compiles its eBPF programs on the node. Later compilers print warnings about this release, which Cilium treats as errors.
cilium_clang=clang-14

build_cilium() {
  local out from; out=$(built_dir cilium)
  build_module cilium 0 "-X github.com/cilium/cilium/pkg/version.ciliumVersion=1.15.19" ./daemon ./plugins/cilium-cni
  [ -e "$out/bpf" ] || {
    find_go
    from=$(module_dir cilium github.com/cilium/cilium)
    cat "$from"/pkg/k8s/apis/cilium.io/client/crds/*/*.yaml >"$out/crds.yaml"
    cp -r "$from/bpf" "$out/bpf.new"; chmod -R u+w "$out/bpf.new"; mv "$out/bpf.new" "$out/bpf"
  }
  bin_cilium=$out
}

cni_cilium() {
  local i
  kube create -f "$bin_cilium/crds.yaml" >/dev/null
  kube wait --for=condition=Established crd --all --timeout=30s --request-timeout=35s >/dev/null
  mkdir "$state/clang"
  ln -s "$(command -v "$cilium_clang")" "$state/clang/clang"
  for i in 1 2; do
    enter "node$i" cp "$bin_cilium/cilium-cni" /run/cni/bin/
    enter "node$i" mkdir -p /run/cilium /var/lib/cilium
    enter "node$i" cp -r "$bin_cilium/bpf" /var/lib/cilium/
    # This file system belongs to the mount namespace of the node, so that pinned objects are removed with the namespace.
    enter "node$i" mount -t bpf bpf /sys/fs/bpf
    # The nodes are annotated, because there is no DaemonSet that shows that Cilium runs.
    spawn "node$i" cilium env PATH="$state/clang:$PATH" K8S_NODE_NAME="node$i" "$bin_cilium/daemon" \
      --k8s-kubeconfig-path="$state/kubeconfig" --annotate-k8s-node=true --identity-allocation-mode=crd \
      --ipam=kubernetes --cni-exclusive=false --devices=eth0 \
      --routing-mode=tunnel --tunnel-protocol=vxlan --enable-ipv4=true --enable-ipv6=false \
      --enable-ipv4-masquerade=true --enable-bpf-masquerade=false --kube-proxy-replacement=false \
      --enable-l7-proxy=false --enable-hubble=false --enable-health-checking=false --enable-endpoint-health-checking=false \
      --state-dir=/run/cilium --lib-dir=/var/lib/cilium --bpf-root=/sys/fs/bpf
    cni_config "node$i" 10-cilium.conflist <<'J'
{"cniVersion": "0.3.1", "name": "cilium", "plugins": [
  {"type": "cilium-cni", "log-file": "/run/cilium/cni.log"},
  {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}]}
J
  done
  for i in 1 2; do
    wait_for 90 "Cilium on node$i ($state/node$i/log/cilium)" cilium_answers "node$i" || return
  done
}
# The same request as in the probe of Cilium itself.
cilium_answers() { enter "$1" curl -fsS --max-time 5 -H "brief: true" http://127.0.0.1:9879/healthz; }
