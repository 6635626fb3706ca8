# shellcheck shell=bash
# The control plane and the network between the places.

# From the range for benchmarks (RFC 2544), which no network should route.
lan=198.18.$((77 + number))
api_address=$lan.1
services=10.96.0.0/16
first_service=10.96.0.1
pods=10.244.0.0/16
pod_range() { echo "10.244.$1.0/24"; } # number of the node
node_address() { echo "$lan.1$1"; }
# The only interface that is made on the host: through it, programs on the host reach the API server.
host_link=tailbound-k8s$number

# A bridge in the control plane's namespace; so the forwarding and the firewall of the host need no change.
make_lan() {
  local control i to_control
  control=$(first_of control)
  to_control=(nsenter --target "$control" --net)
  "${to_control[@]}" ip link add lan type bridge
  "${to_control[@]}" ip addr add "$api_address/24" dev lan
  "${to_control[@]}" ip link set lan up
  for i in 1 2; do
    "${to_control[@]}" ip link add "node$i" type veth peer name eth0 netns "$(first_of "node$i")"
    "${to_control[@]}" ip link set "node$i" master lan up
    enter "node$i" ip addr add "$(node_address "$i")/24" dev eth0
    enter "node$i" ip link set eth0 up
    enter "node$i" ip route add default via "$api_address"
    enter "node$i" sysctl -qw net.ipv4.ip_forward=1
  done
  "${to_control[@]}" ip link add host type veth peer name "$host_link" netns $$
  "${to_control[@]}" ip link set host master lan up
  ip addr add "$lan.254/24" dev "$host_link"
  ip link set "$host_link" up
}

kube() { "$bin_kubernetes/kubectl" --kubeconfig "$state/kubeconfig" --request-timeout=5s "$@"; }

start_etcd() {
  # The data are in memory and are lost with the cluster, so writes need not be durable.
  spawn control etcd etcd --name tailbound --data-dir /run/etcd --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
  local audit=()
  # The log contains who requested what, without the contents: bench/scale.py counts the requests of a run with it.
  if [ -n "${TAILBOUND_CLUSTER_AUDIT:-}" ]; then
    printf '%s\n' 'apiVersion: audit.k8s.io/v1' 'kind: Policy' 'omitStages: [RequestReceived]' 'rules: [{ level: Metadata }]' >"$state/audit.yaml"
    audit=(--audit-policy-file="$state/audit.yaml" --audit-log-path="$state/audit.log")
  fi
  spawn control apiserver "$bin_kubernetes/kube-apiserver" "${audit[@]}" --etcd-servers=http://127.0.0.1:2379 \
    --advertise-address="$api_address" --secure-port=6443 --authorization-mode=Node,RBAC --allow-privileged=true \
    --client-ca-file="$state/keys/ca.crt" \
    --tls-cert-file="$state/keys/apiserver.crt" --tls-private-key-file="$state/keys/apiserver.key" \
    --kubelet-client-certificate="$state/keys/to-kubelet.crt" --kubelet-client-key="$state/keys/to-kubelet.key" \
    --kubelet-certificate-authority="$state/keys/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range="$services" \
    --service-account-key-file="$state/keys/accounts.pub" --service-account-signing-key-file="$state/keys/accounts.key"
}
# Only once the API server is ready: before that, the roles that these two programs need are missing, and the programs end.
start_controllers() {
  spawn_as controllers kube-controller-manager \
    --use-service-account-credentials --root-ca-file="$state/keys/ca.crt" \
    --service-account-private-key-file="$state/keys/accounts.key" \
    --service-cluster-ip-range="$services" --flex-volume-plugin-dir=/run/flexvolume
  spawn_as scheduler kube-scheduler
}
spawn_as() { # certificate program flag...
  local conf=$state/keys/$1.conf name=$1 program=$2
  shift 2
  spawn control "$name" "$bin_kubernetes/$program" --leader-elect=false --bind-address=127.0.0.1 \
    --kubeconfig="$conf" --authentication-kubeconfig="$conf" --authorization-kubeconfig="$conf" "$@"
}
