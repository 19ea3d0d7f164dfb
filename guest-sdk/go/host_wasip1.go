package weir

import (
	"math"
	"runtime"
	"runtime/metrics"
	"time"
	_ "unsafe" // for go:linkname

	store "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/wasi_config_store"
	channel "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_channel"
	events "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_events"
	lifecycle "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_lifecycle"
	log "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_log"
	peers "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_peers"
	queues "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_queues"
	requests "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_requests"
	wit "github.com/weir-rt/weir/guest-sdk/go/internal/bindings/imports/weir_iec_types"
	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
	witRuntime "github.com/weir-rt/weir/guest-sdk/go/internal/pkg/wit/runtime"
	types "github.com/weir-rt/weir/guest-sdk/go/internal/pkg/wit/types"
)

//go:linkname program main.main
func program()

// run is what Main calls. Go exits with another code by itself.
//
//go:wasmexport wasi:cli/run@0.2.12#run
func run() int32 {
	program()
	return 0
}

// batch is how many messages one crossing brings.
const batch = 32

// The next timer of Go, of any goroutine, on the clock of nanotime: no goroutine runs while this one is in an import.
//
//go:linkname timeSleepUntil runtime.timeSleepUntil
func timeSleepUntil() int64

//go:linkname nanotime runtime.nanotime
func nanotime() int64

//go:linkname netpollAnyWaiters runtime.netpollAnyWaiters
func netpollAnyWaiters() bool

// Go reads files through its poller, which runs only if no goroutine is ready. A file is readable at once. Anything else
// may never be, so it is looked at again after this time.
const (
	polls     = 3
	pollSleep = 100 * time.Microsecond
	pollAgain = 10 * time.Millisecond
)

type imports struct{ runnable []metrics.Sample }

// inWeir makes the host.
var inWeir = func() host.Host {
	return &imports{[]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}}
}

// rounds bound how long goroutines that are always ready keep this extension from its inbox. Each round runs up to 61.
const rounds = 16

func (i *imports) Settle() (settled bool) {
	polled := 0
	for range rounds {
		runtime.Gosched()
		// The scheduler takes one goroutine in 61 from the queue where this one waits, before those that are ready.
		metrics.Read(i.runnable)
		if i.runnable[0].Value.Uint64() > 0 {
			continue
		}
		if !netpollAnyWaiters() || polled == polls {
			return true
		}
		// Not so short that it is over before the poller runs.
		time.Sleep(pollSleep)
		polled++
	}
	return false
}

func (i *imports) Receive(until time.Time) (messages []any, stop bool) {
	wait := int64(math.MaxInt64)
	if timer := timeSleepUntil(); timer < math.MaxInt64 {
		wait = timer - nanotime()
	}
	if !until.IsZero() {
		wait = min(wait, int64(time.Until(until)))
	}
	if netpollAnyWaiters() {
		wait = min(wait, int64(pollAgain))
	}
	timeout := types.None[uint32]()
	if wait < math.MaxInt64 {
		timeout = types.Some(host.Milliseconds(time.Duration(max(wait, 0)), 0))
	}
	received := channel.ReceiveBatch(batch, channel.BatchOrder_AnyOrder, timeout)
	if lifting == 0 {
		// All that came in is reachable by now: the pins of the bindings have done their part.
		witRuntime.Unpin()
	}
	if received.IsErr() {
		return nil, false
	}
	for _, message := range received.Ok() {
		messages = append(messages, asMessage(message))
	}
	return messages, len(messages) == 0
}

// lifting counts imports with a result that is not reachable yet: their goroutines may have to wait for the garbage
// collector as they read it.
var lifting int

func lift() (lifted func()) {
	lifting++
	return func() { lifting-- }
}

func asMessage(message channel.Message) any {
	switch message.Tag() {
	case channel.Message_Request:
		request := message.Request()
		return host.Request{
			ID: request.Id, Sender: request.Sender, Operation: request.Operation, Payload: request.Payload,
			Remaining: time.Duration(request.RemainingMs) * time.Millisecond,
		}
	case channel.Message_Response:
		response := message.Response()
		payload, err := result(response.Outcome)
		return host.Response{ID: response.Id, Payload: payload, Err: err}
	case channel.Message_Event:
		event := message.Event()
		return host.Event{
			Sender: event.Sender, Subscription: event.Subscription, Topic: event.Topic.SomeOr(""),
			Sequence: event.Sequence, Lost: event.Lost, Retained: event.Retained, Payload: event.Payload,
		}
	default:
		job := message.Job()
		return host.Job{
			ID: job.Id, Queue: job.Queue, Sender: job.Sender, Deliveries: job.Deliveries, Payload: job.Payload,
		}
	}
}

func (*imports) Wake() {}

func (*imports) Serve(contract string, operations []string) (uint32, error) {
	defer lift()()
	return result(channel.Serve(contract, operations))
}

func (*imports) Respond(request uint64, payload []byte, failure *host.Error) error {
	defer lift()()
	answer := types.Ok[[]uint8, wit.HandlerError](payload)
	if failure != nil {
		answer = types.Err[[]uint8](wit.HandlerError{Code: failure.Code, Message: failure.Text})
	}
	return only(channel.Respond(request, answer))
}

func (*imports) Open(contract, operation, provider string) (uint32, error) {
	defer lift()()
	named := types.None[string]()
	if provider != "" {
		named = types.Some(provider)
	}
	return result(requests.Open(contract, operation, named))
}

func (*imports) Call(target uint32, payload []byte, options host.Options) ([]byte, error) {
	defer lift()()
	return result(requests.Call(target, payload, asOptions(options)))
}

func (*imports) Send(target uint32, payload []byte, options host.Options) (uint64, error) {
	defer lift()()
	return result(requests.Send(target, payload, asOptions(options)))
}

func (*imports) Cancel(request uint64) { requests.Cancel(request) }

func (*imports) Subscribe(pattern string) (uint32, error) {
	defer lift()()
	return result(events.Subscribe(pattern))
}

func (*imports) Unsubscribe(subscription uint32) error {
	defer lift()()
	return only(events.Unsubscribe(subscription))
}

func (*imports) Publish(topic string, payload []byte, options host.Options) (host.Receipt, error) {
	defer lift()()
	receipt, err := result(events.Publish(topic, payload, asOptions(options)))
	return host.Receipt(receipt), err
}

func (*imports) PublishTo(extension, topic string, payload []byte, options host.Options) (host.Receipt, error) {
	defer lift()()
	receipt, err := result(events.PublishTo(extension, topic, payload, asOptions(options)))
	return host.Receipt(receipt), err
}

func (*imports) OpenQueue(name string) (uint32, error) {
	defer lift()()
	return result(queues.Open(name))
}

func (*imports) Put(queue uint32, payload []byte, options host.Options) (uint64, error) {
	defer lift()()
	return result(queues.Put(queue, payload, asOptions(options)))
}

func (*imports) Take(queue uint32, next uint32) error {
	defer lift()()
	return only(queues.Take(queue, queues.MakeTakingNext(next)))
}

func (*imports) Done(job uint64) error {
	defer lift()()
	return only(queues.Done(job))
}

func (*imports) GiveBack(job uint64) error {
	defer lift()()
	return only(queues.GiveBack(job))
}

func (*imports) Ready() { lifecycle.Ready() }

func (*imports) Interrupted(reason string) { lifecycle.Interrupted(reason) }

func (*imports) Fail(reason string) { lifecycle.Error(reason) }

func (*imports) OwnName() string {
	defer lift()()
	return peers.OwnName()
}

func (*imports) NameOf(peer uint32) string {
	defer lift()()
	return peers.NameOf(peer).SomeOr("")
}

func (*imports) Log(level host.Level, message string, fields []host.Field) {
	named := make([]log.Field, len(fields))
	for index, field := range fields {
		named[index] = log.Field(field)
	}
	log.Write(log.Level(level), message, named)
}

func (*imports) Config(key string) (string, bool, error) {
	defer lift()()
	value := store.Get(key)
	if value.IsErr() {
		return "", false, Errorf("config", "Main cannot read `%s`", key)
	}
	return value.Ok().SomeOr(""), value.Ok().IsSome(), nil
}

func asOptions(options host.Options) wit.Options {
	as := wit.Options{TimeoutMs: types.None[uint32](), Parent: types.None[uint64]()}
	if options.Timeout > 0 {
		as.TimeoutMs = types.Some(host.Milliseconds(options.Timeout, 1))
	}
	if options.Parent != 0 {
		as.Parent = types.Some(options.Parent)
	}
	return as
}

func result[T any](result types.Result[T, wit.Error]) (value T, err error) {
	if result.IsErr() {
		return value, asError(result.Err())
	}
	return result.Ok(), nil
}

func only(outcome types.Result[types.Unit, wit.Error]) error {
	_, err := result(outcome)
	return err
}

func asError(failure wit.Error) *host.Error {
	switch failure.Tag() {
	case wit.Error_PermissionDenied:
		return &host.Error{Case: host.PermissionDenied, Text: failure.PermissionDenied()}
	case wit.Error_UnknownContract:
		return &host.Error{Case: host.UnknownContract, Text: failure.UnknownContract()}
	case wit.Error_NoProvider:
		return &host.Error{Case: host.NoProvider, Text: failure.NoProvider()}
	case wit.Error_NotReady:
		return &host.Error{Case: host.NotReady, Text: failure.NotReady()}
	case wit.Error_Timeout:
		return &host.Error{Case: host.Timeout}
	case wit.Error_Overloaded:
		return &host.Error{Case: host.Overloaded, Text: failure.Overloaded()}
	case wit.Error_PeerGone:
		return &host.Error{Case: host.PeerGone}
	case wit.Error_Trapped:
		return &host.Error{Case: host.Trapped}
	case wit.Error_LimitExceeded:
		limit := failure.LimitExceeded()
		return &host.Error{Case: host.LimitExceeded, Limit: limit.Name, Used: limit.Used, Allowed: limit.Allowed}
	case wit.Error_WouldDeadlock:
		return &host.Error{Case: host.WouldDeadlock, Cycle: failure.WouldDeadlock()}
	case wit.Error_TooLarge:
		size := failure.TooLarge()
		return &host.Error{Case: host.TooLarge, Used: size.Bytes, Allowed: size.Allowed}
	case wit.Error_Invalid:
		return &host.Error{Case: host.Invalid, Text: failure.Invalid()}
	default:
		handler := failure.Handler()
		return &host.Error{Case: host.Handler, Code: handler.Code, Text: handler.Message}
	}
}
