# shellcheck shell=bash
# Names of Services in pods: CoreDNS, which runs in the control plane and not in pods, behind the usual Service.

dns_service=10.96.0.10
dns_domain=cluster.local

# Where pods ask. On a network without Services they reach it itself.
dns_address() { if [ "$(<"$state/cni")" = macvlan ]; then echo "$api_address"; else echo "$dns_service"; fi; }

start_dns() {
  # Names of elsewhere do not exist: there is nobody to ask, and a resolver would try again and again.
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
  spawn control coredns "$bin_dns/coredns" -conf "$state/Corefile"
  # Made with the address that it has everywhere, and led to a program that is no pod.
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
