package weir

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// Extension is what a program serves. Make it with New, add handlers, then Run it.
type Extension struct {
	manifest      Manifest
	contracts     []*contract
	subscriptions []subscription
	workers       []worker
	background    []hook
	onStart       hook
	onStop        hook
	faults        []error
}

type hook func(context.Context) error

// New makes an extension without handlers.
func New(manifest Manifest) *Extension {
	return &Extension{manifest: manifest}
}

// Option says more about an operation.
type Option func(*operation)

// Doc describes an operation.
func Doc(text string) Option {
	return func(o *operation) { o.doc = text }
}

// Fails describes an error code of an operation, and when it comes.
func Fails(code, when string) Option {
	return func(o *operation) { o.errors = append(o.errors, failure{code, when}) }
}

// Handle serves an operation of a contract. Arguments and answers travel as JSON; those of the type []byte as they are,
// and struct{} stands for none. Arguments that do not decode, or that lack a required field, are answered with the code
// `invalid-argument`. A field is required if it is no pointer and has no `omitempty` or `omitzero`.
//
// An *Error of the handler reaches the caller. Of any other error the caller gets the text, with the code of [Code]: so
// return no text that the caller must not see. A panic is logged with its functions, an answer that does not encode with
// its error, and the caller gets the code `unexpected` without them.
func Handle[In, Out any](
	ext *Extension, contract, name string, handler func(context.Context, In) (Out, error), options ...Option,
) {
	operation := &operation{name: name, in: typeOf[In](), out: typeOf[Out]()}
	operation.handle = func(ctx context.Context, payload []byte) ([]byte, error) {
		in, err := decode[In](payload)
		if err != nil {
			return nil, Errorf("invalid-argument", "%v", err)
		}
		out, err := handler(ctx, in)
		if err != nil {
			return nil, err
		}
		answer, err := encode(out)
		if err != nil {
			return nil, &notEncoded{err}
		}
		return answer, nil
	}
	for _, option := range options {
		option(operation)
	}
	owner := ext.contract(contract)
	for _, other := range owner.operations {
		if other.name == name {
			ext.fault("`%s` `%s` has two handlers", contract, name)
		}
	}
	owner.operations = append(owner.operations, operation)
}

// Subscribe handles the events of a pattern of topics, one after the other. An event that does not decode, and an error
// of the handler, are logged. At most 256 events wait for the handler, under each of the operator's policies: of more the
// oldest are lost, and Event.Lost counts them.
func Subscribe[T any](ext *Extension, pattern string, handler func(context.Context, Event[T]) error) {
	for _, other := range ext.subscriptions {
		if other.pattern == pattern {
			ext.fault("`%s` has two handlers", pattern)
		}
	}
	ext.subscriptions = append(ext.subscriptions, subscription{pattern, eventHandler(handler)})
}

// HandleJobs takes the jobs of a queue, at most atOnce of them at the same time. A job is done when the handler returns
// nil. Otherwise it is logged and given back, and the next reader gets it.
func HandleJobs[T any](ext *Extension, queue string, atOnce int, handler func(context.Context, *Job[T]) error) {
	for _, other := range ext.workers {
		if other.queue == queue {
			ext.fault("jobs of `%s` have two handlers", queue)
		}
	}
	if atOnce < 1 {
		ext.fault("jobs of `%s` have a handler, but it is to have %d of them at once", queue, atOnce)
	}
	ext.workers = append(ext.workers, worker{queue, atOnce, jobHandler(handler)})
}

// OnStart runs before the extension is ready. If it fails, the extension ends. Its calls wait, and nothing else runs.
func (e *Extension) OnStart(hook func(context.Context) error) { e.onStart = hook }

// OnStop runs after the last handler has ended.
func (e *Extension) OnStop(hook func(context.Context) error) { e.onStop = hook }

// Background runs beside the handlers, from when the extension is ready. Its context is cancelled at stop, which does not
// wait for it. If it fails, the extension ends.
func (e *Extension) Background(task func(context.Context) error) {
	e.background = append(e.background, task)
}

// describeInto names the directory for the manifest and the contracts. `weir build` sets it.
const describeInto = "WEIR_DESCRIBE"

// Run serves until Main stops the extension, and ends the program if it fails. It is the last call of main.
//
// Outside Weir it only describes the extension, for `weir build`.
func (e *Extension) Run() {
	var err error
	switch dir, describes := os.LookupEnv(describeInto); {
	case inWeir != nil:
		err = e.serve(inWeir())
	case describes:
		err = e.describe(dir)
	default:
		err = errors.New("an extension runs in Weir: `weir build` builds it, and `go test` tests it")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (e *Extension) fault(format string, args ...any) {
	e.faults = append(e.faults, fmt.Errorf(format, args...))
}

func (e *Extension) check() error {
	if len(e.faults) == 0 {
		return nil
	}
	return invalid("the handlers of `%s` do not fit: %v", e.manifest.ID, errors.Join(e.faults...))
}

func (e *Extension) contract(name string) *contract {
	for _, known := range e.contracts {
		if known.name == name {
			return known
		}
	}
	added := &contract{name: name}
	e.contracts = append(e.contracts, added)
	return added
}

func init() {
	host.Run = func(extension any, host host.Host) error { return extension.(*Extension).serve(host) }
	host.Describe = func(extension any) ([]byte, [][]byte, error) {
		described := extension.(*Extension)
		if err := described.check(); err != nil {
			return nil, nil, err
		}
		manifest, err := described.section()
		if err != nil {
			return nil, nil, err
		}
		contracts, err := described.documents()
		return manifest, contracts, err
	}
}
