# shellcheck shell=bash
# Keys, certificates and kubeconfigs, for this cluster only: they are made and removed with the cluster.

certificate() { # name subject [other names]
  local keys=$state/keys
  printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}" >"$keys/$1.ext"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$keys/$1.key" -out "$keys/$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$keys/$1.csr" -CA "$keys/ca.crt" -CAkey "$keys/ca.key" -CAcreateserial -days 30 \
    -out "$keys/$1.crt" -extfile "$keys/$1.ext" 2>/dev/null
}
# Everything in one file, so that it can be copied.
kubeconfig() { # certificate file
  local keys=$state/keys
  cat >"$2" <<Y
apiVersion: v1
kind: Config
current-context: tailbound
contexts: [{name: tailbound, context: {cluster: tailbound, user: $1}}]
clusters: [{name: tailbound, cluster: {server: "https://$api_address:6443", certificate-authority-data: $(base64 -w0 "$keys/ca.crt")}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$keys/$1.crt"), client-key-data: $(base64 -w0 "$keys/$1.key")}}]
Y
}

make_keys() {
  local keys=$state/keys i
  mkdir "$keys"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout "$keys/ca.key" -out "$keys/ca.crt" \
    -subj /CN=tailbound-cluster 2>/dev/null
  openssl ecparam -name prime256v1 -genkey -noout -out "$keys/accounts.key" 2>/dev/null
  openssl ec -in "$keys/accounts.key" -pubout -out "$keys/accounts.pub" 2>/dev/null
  certificate apiserver /CN=kube-apiserver \
    "IP:$api_address,IP:$first_service,IP:127.0.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  certificate to-kubelet /O=system:masters/CN=apiserver-kubelet-client
  certificate admin /O=system:masters/CN=admin
  certificate controllers /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate proxy /CN=system:kube-proxy
  for i in 1 2; do
    certificate "node$i" "/O=system:nodes/CN=system:node:node$i" "IP:$(node_address "$i"),DNS:node$i"
    kubeconfig "node$i" "$keys/node$i.conf"
  done
  for i in controllers scheduler proxy; do kubeconfig "$i" "$keys/$i.conf"; done
  kubeconfig admin "$state/kubeconfig"
}
