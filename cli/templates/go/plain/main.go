//go:build wasip1

// A component that exports the interface of wit/plugin.wit. wit-bindgen writes `dist/bindings`, and looks for the functions of an
// interface in the package of its name.
package main

import _ "{{name}}/dist/bindings/wit_exports"

func main() {}
