//go:build tools

// Package tools names what dev/cluster builds of Calico, so that go.mod and go.sum cover it.
package tools

import (
	_ "github.com/projectcalico/calico/cni-plugin/cmd/calico"
	_ "github.com/projectcalico/calico/node/cmd/calico-node"
)
