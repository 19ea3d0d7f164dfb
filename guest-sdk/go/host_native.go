//go:build !wasip1

package weir

import "github.com/weir-rt/weir/guest-sdk/go/internal/host"

// inWeir makes the host. There is none outside Weir.
var inWeir func() host.Host
