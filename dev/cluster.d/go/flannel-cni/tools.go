//go:build tools

// Package tools names what dev/cluster builds of the CNI plugins: Debian's package lacks this one.
package tools

import _ "github.com/containernetworking/plugins/plugins/meta/flannel"
