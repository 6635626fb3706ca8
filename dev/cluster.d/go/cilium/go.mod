module tailbound.invalid/cluster/cilium

go 1.23.0

// The newest that the module proxy has whole. Its go.mod and go.sum, which its own sum covers, say what else is built.
require github.com/cilium/cilium v1.15.19
