package main

import (
	"testing"

	"github.com/weir-rt/weir/guest-sdk/go/weirtest"
)

func TestGreetsByNameAndPublishesIt(t *testing.T) {
	main := weirtest.New(extension())
	main.Run(t, func(t *testing.T) {
		greeting, err := weirtest.Call[Greeting](main, contract, "greet", Name{"Ada"})
		if err != nil || greeting != (Greeting{"hello, Ada", 1}) {
			t.Fatal(greeting, err)
		}
		name, err := weirtest.Decode[string](main.Published()[0])
		if err != nil || name != "Ada" {
			t.Fatal(name, err)
		}
	})
}
