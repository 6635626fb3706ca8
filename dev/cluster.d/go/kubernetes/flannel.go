//go:build tools

// Nothing here imports Flannel, whose command is built from its own package: so go.mod and go.sum cover it.
package main

import _ "github.com/flannel-io/flannel"
