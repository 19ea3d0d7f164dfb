module conformance

go 1.26

require github.com/weir-rt/weir/guest-sdk/go v0.1.0

replace github.com/weir-rt/weir/guest-sdk/go => ../../../guest-sdk/go
