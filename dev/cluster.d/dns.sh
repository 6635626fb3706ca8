# shellcheck shell=bash
# Names of Services in pods: CoreDNS, which runs in the control plane and not in pods, behind the usual Service.

dns_service=10.96.0.10
dns_domain=cluster.local

# Address of the DNS server for pods. On a network without Services, pods reach the server directly.
dns_address() { if [ "$(<"$state/cni")" = macvlan ]; then echo "$api_address"; else echo "$dns_service"; fi; }

start_dns() {
  # Names outside the cluster do not exist: no other server can be asked, and a resolver would repeat its requests.
  cat >"$state/Corefile" <<C
.:53 {
  bind $api_address
  errors
  kubernetes $dns_domain {
    kubeconfig $state/kubeconfig
    ttl 5
  }
  template ANY ANY . {
    rcode NXDOMAIN
  }
}
C
  spawn control coredns "$bin_kubernetes/coredns" -conf "$state/Corefile"
  # The Service has the usual address, and leads to a program that does not run in a pod.
  kube create -f - >/dev/null <<Y
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns, kubernetes.io/name: CoreDNS}}
spec:
  clusterIP: $dns_service
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-control, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
endpoints: [{addresses: ["$api_address"], conditions: {ready: true}}]
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
Y
}
