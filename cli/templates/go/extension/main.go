// Greets each caller, and publishes the name.
package main

import (
	"context"
	"sync/atomic"

	weir "github.com/weir-rt/weir/guest-sdk/go"
)

const contract = "{{name}}@1"

// Name is a person.
type Name struct {
	Name string `json:"name" doc:"The person's name."`
}

// Greeting is a greeting.
type Greeting struct {
	Text   string `json:"text" doc:"The words of the greeting."`
	Number uint64 `json:"number" doc:"How many people were greeted so far."`
}

type greeter struct{ greeted atomic.Uint64 }

func (g *greeter) greet(ctx context.Context, in Name) (Greeting, error) {
	if in.Name == "" {
		return Greeting{}, weir.Errorf("no-name", "there is nobody to greet")
	}
	if _, err := weir.Publish(ctx, "{{name}}.greeted", in.Name); err != nil {
		return Greeting{}, err
	}
	return Greeting{"hello, " + in.Name, g.greeted.Add(1)}, nil
}

func extension() *weir.Extension {
	// The manifest: what the extension is and needs. It travels in the component; the operator decides.
	ext := weir.New(weir.Manifest{
		ID:        "{{name}}",
		Version:   "0.1.0",
		Publishes: []string{"{{name}}.greeted"},
	})
	weir.Describe(ext, contract, "Greets people.")
	weir.Handle(ext, contract, "greet", new(greeter).greet,
		weir.Doc("Greets a person by name."), weir.Fails("no-name", "There is nobody to greet."))
	weir.DescribeTopic[string](ext, contract, "{{name}}.greeted", "The name of each person that was greeted.")
	return ext
}

func main() {
	extension().Run()
}
