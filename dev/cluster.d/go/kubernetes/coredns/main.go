// Command coredns is CoreDNS with the few of its plugins that a cluster of dev/cluster wants.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// Asked in this order.
	dnsserver.Directives = []string{"bind", "errors", "kubernetes", "template"}
	coremain.Run()
}
