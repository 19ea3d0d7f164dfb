module github.com/weir-rt/weir/guest-sdk/go

go 1.26
