#!/bin/sh
# Makes internal/bindings again, from the WIT of Weir. Takes wit-bindgen:
# cargo install wit-bindgen-cli --version 0.63.0 --no-default-features --features go --locked
set -eu
cd "$(dirname "$0")"
module=github.com/weir-rt/weir/guest-sdk/go
rm -rf internal/bindings
wit-bindgen go ../../wit --world imports --pkg-name "$module/internal/bindings" --out-dir internal/bindings
# These have the `main` of a program, and nothing that a world without exports needs.
rm -r internal/bindings/exports
# The runtime of the bindings is not on the proxy: internal/pkg has it.
find internal/bindings -name '*.go' -exec sed -i "s|go.bytecodealliance.org/pkg/|$module/internal/pkg/|" {} +
# Nothing else imports them, and elsewhere their functions without bodies would take an assembly file each.
find internal/bindings -name empty.s -delete
find internal/bindings -name '*.go' -exec sed -i '1i //go:build wasip1\n' {} +
gofmt -w internal/bindings
