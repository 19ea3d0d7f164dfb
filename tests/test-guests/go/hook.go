// A hook in Go. It says hello to `$NODE` and exits with a code: `20-go.wasm` with `$CODE_20`, or else with 0.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// What exit.wit has: os.Exit tells the host only whether the code was 0.
//
//go:wasmimport wasi:cli/exit@0.2.12 exit-with-code
func exitWithCode(code uint32)

func main() {
	fmt.Printf("hello %s, from Go\n", os.Getenv("NODE"))

	place, _, _ := strings.Cut(os.Args[0], "-")
	if variable, isSet := os.LookupEnv("CODE_" + place); isSet {
		code, err := strconv.ParseUint(variable, 10, 8)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		exitWithCode(uint32(code))
	}
}
