// Package weirtest tests an extension without Weir: with a Main in memory, in `go test`.
//
//	func TestGreet(t *testing.T) {
//		main := weirtest.New(extension())
//		main.Run(t, func(t *testing.T) {
//			greeting, err := weirtest.Call[Greeting](main, "greeter@1", "greet", Name{"Ada"})
//			if err != nil || greeting.Text != "hello Ada" {
//				t.Fatal(greeting, err)
//			}
//		})
//	}
//
// The manifest is what the operator grants, with the limit `message-size` of the class `medium`. The clock is that of testing/synctest: it jumps where everything waits.
package weirtest

import (
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	weir "github.com/weir-rt/weir/guest-sdk/go"
	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// timeout is that of a call, where nothing else is said: Main's default.
const timeout = 5 * time.Second

// messageSize bounds a payload: Main's limit in the class `medium`, the default.
const messageSize = 1 << 20

// deliveries is how often a job is delivered before it is dead: Main's default.
const deliveries = 3

// Main plays Main for one extension. Give it what the extension needs, then Run it.
type Main struct {
	extension *weir.Extension
	manifest  manifest
	config    map[string]string
	fakes     map[operation]fake
	ready     chan struct{}
	wake      chan struct{}

	answering sync.WaitGroup

	mutex      sync.Mutex
	last       uint64
	operations []operation
	targets    []operation
	patterns   map[uint32]string
	queues     []*queue
	inbox      []any
	answers    map[uint64]chan host.Response
	underWay   map[uint64]context.CancelFunc
	inHand     map[uint64]inHand
	sequence   map[string]uint64
	published  []Message
	lines      []Line
	state      string
	stopping   bool
	told       bool
}

type operation struct{ contract, name string }

type fake func(context.Context, []byte) ([]byte, error)

// Message is an event or a job of the extension.
type Message struct {
	// Name is the topic or the queue.
	Name string
	// Payload is JSON, or the bytes of a []byte.
	Payload []byte
}

// Line is a line of the log.
type Line struct {
	Level   slog.Level
	Message string
	Fields  map[string]string
}

// New plays Main for an extension.
func New(extension *weir.Extension) *Main {
	return &Main{
		extension: extension, config: map[string]string{}, fakes: map[operation]fake{},
		patterns: map[uint32]string{},
		answers:  map[uint64]chan host.Response{}, underWay: map[uint64]context.CancelFunc{},
		inHand: map[uint64]inHand{}, sequence: map[string]uint64{},
	}
}

// Config sets a value of the extension's configuration.
func (m *Main) Config(key, value string) { m.config[key] = value }

// Fake answers the extension's calls of another contract.
func Fake[In, Out any](m *Main, contract, name string, answer func(context.Context, In) (Out, error)) {
	m.fakes[operation{contract, name}] = func(ctx context.Context, payload []byte) ([]byte, error) {
		in, err := decode[In](payload)
		if err != nil {
			return nil, weir.Errorf("invalid-argument", "%v", err)
		}
		out, err := answer(ctx, in)
		if err != nil {
			return nil, err
		}
		return encode(out), nil
	}
}

// Run starts the extension, runs the body once it is ready, and stops it. The test fails if the extension does.
func (m *Main) Run(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if err := m.Start(t, body); err != nil {
		t.Errorf("the extension failed: %v", err)
	}
}

// Start does what Run does, and returns the failure of the extension. Of one that fails at its start, the body does not
// run.
func (m *Main) Start(t *testing.T, body func(t *testing.T)) (failure error) {
	t.Helper()
	section, _, err := host.Describe(m.extension)
	if err == nil {
		err = json.Unmarshal(section, &m.manifest)
	}
	if err != nil {
		return err
	}
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	defer func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
	}()
	synctest.Test(t, func(t *testing.T) {
		// Those of another clock would not count as waiting.
		m.ready, m.wake = make(chan struct{}), make(chan struct{}, 1)
		ended := make(chan error, 1)
		go func() { ended <- host.Run(m.extension, memory{m}) }()
		select {
		case <-m.ready:
			synctest.Wait()
			body(t)
			m.stop()
			failure = <-ended
			m.answering.Wait()
		case failure = <-ended:
		}
	})
	return failure
}

// Call calls an operation of the extension, as `main`, with Main's default timeout.
func Call[Out, In any](m *Main, contract, name string, in In) (Out, error) {
	return CallWithin[Out](m, timeout, contract, name, in)
}

// CallWithin is Call with another timeout.
func CallWithin[Out, In any](m *Main, timeout time.Duration, contract, name string, in In) (out Out, err error) {
	payload, err := m.call(operation{contract, name}, encode(in), timeout)
	if err != nil {
		return out, err
	}
	return decode[Out](payload)
}

// Publish publishes an event, and waits until the extension waits. It reports whether a subscription matched.
func Publish[T any](m *Main, topic string, value T) bool {
	m.mutex.Lock()
	reached := m.deliver(topic, encode(value))
	m.mutex.Unlock()
	m.wakeUp()
	synctest.Wait()
	return reached > 0
}

// Put puts a job into a queue, and waits until the extension waits.
func Put[T any](m *Main, queue string, job T) {
	m.mutex.Lock()
	m.put(m.queue(queue), encode(job))
	m.mutex.Unlock()
	m.wakeUp()
	synctest.Wait()
}

// Published lists the events that the extension has published.
func (m *Main) Published() []Message {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]Message(nil), m.published...)
}

// Waiting lists the jobs that wait in a queue.
func (m *Main) Waiting(queue string) []Message {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var jobs []Message
	for _, job := range m.queue(queue).waiting {
		jobs = append(jobs, Message{queue, job.Payload})
	}
	return jobs
}

// Finished counts the jobs of a queue that are done, and those that were given back too often.
func (m *Main) Finished(queue string) (done, dead int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := m.queue(queue)
	return found.done, found.dead
}

// Logged lists the lines of the log.
func (m *Main) Logged() []Line {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]Line(nil), m.lines...)
}

// State is `ready`, or the reason of the extension for being interrupted or for failing.
func (m *Main) State() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.state
}

// Stop asks the extension to stop. Run does it after the body.
func (m *Main) Stop() { m.stop() }

// Decode reads the payload of a message.
func Decode[T any](message Message) (T, error) { return decode[T](message.Payload) }

func encode[T any](value T) []byte {
	if raw, ok := any(value).([]byte); ok {
		return raw
	}
	payload, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return payload
}

func decode[T any](payload []byte) (value T, err error) {
	if raw, ok := any(&value).(*[]byte); ok {
		*raw = payload
		return value, nil
	}
	return value, json.Unmarshal(payload, &value)
}
