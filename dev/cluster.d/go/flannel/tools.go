//go:build tools

// Package tools names what dev/cluster builds of Flannel, so that go.mod and go.sum cover it.
package tools

import _ "github.com/flannel-io/flannel"
