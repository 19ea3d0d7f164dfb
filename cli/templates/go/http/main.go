//go:build wasip1

// A component that answers requests of wasi:http. wit-bindgen writes `dist/bindings` of the WIT in `wit`, and looks for the
// function that answers in the package `export_wasi_http_incoming_handler`.
package main

import _ "{{name}}/dist/bindings/wit_exports"

func main() {}
