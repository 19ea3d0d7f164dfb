// Package weir is for writing extensions of Weir in Go, and for testing them without Weir.
//
// An extension is an ordinary program. Its main makes an [Extension], gives it handlers, and runs it:
//
//	type Name struct {
//		Name string `json:"name" doc:"Who to greet."`
//	}
//
//	type Greeting struct {
//		Text string `json:"text"`
//	}
//
//	func greet(ctx context.Context, in Name) (Greeting, error) {
//		if in.Name == "" {
//			return Greeting{}, weir.Errorf("no-name", "there is nobody to greet")
//		}
//		return Greeting{"hello " + in.Name}, nil
//	}
//
//	func main() {
//		ext := weir.New(weir.Manifest{ID: "greeter", Version: "0.1.0"})
//		weir.Handle(ext, "greeter@1", "greet", greet)
//		ext.Run()
//	}
//
// `weir build` makes the component. The package weirtest is for `go test`.
//
// Each handler runs in a goroutine of its own. While one waits for an answer, a channel or a timer, others run. There is
// one thread: a handler that computes, or that waits in [Publish] or [Put] for room, delays all others.
//
// The context of a handler has the deadline of its request, and is cancelled when that has passed. [Call], [Publish] and
// the others take their deadline and their parent from it, so pass it on.
package weir
