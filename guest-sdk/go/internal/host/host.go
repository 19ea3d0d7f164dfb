// Package host is what Main gives an extension, in Go's types. Inside Weir it is the imports of `wit/iec.wit`; in tests
// it is a Main in memory.
package host

import (
	"math"
	"time"
)

// Host is Main, as an extension sees it. Every error is an *Error.
type Host interface {
	Serve(contract string, operations []string) (first uint32, err error)
	// Settle lets all other goroutines run until they wait. It is false if some were still ready after a while.
	Settle() (settled bool)
	// Receive waits for messages, for a timer of Go, or until the time that is given, if it is not zero. It may come
	// back without a message. Stop means that only responses follow, or that nothing follows any more.
	Receive(until time.Time) (messages []any, stop bool)
	// Wake ends a Receive that waits. Inside Weir nothing runs meanwhile.
	Wake()
	Respond(request uint64, payload []byte, failure *Error) error

	Open(contract, operation, provider string) (target uint32, err error)
	Call(target uint32, payload []byte, options Options) ([]byte, error)
	Send(target uint32, payload []byte, options Options) (request uint64, err error)
	Cancel(request uint64)

	Subscribe(pattern string) (subscription uint32, err error)
	Unsubscribe(subscription uint32) error
	Publish(topic string, payload []byte, options Options) (Receipt, error)
	PublishTo(extension, topic string, payload []byte, options Options) (Receipt, error)

	OpenQueue(name string) (queue uint32, err error)
	Put(queue uint32, payload []byte, options Options) (job uint64, err error)
	// Take says how many more jobs may come.
	Take(queue uint32, next uint32) error
	Done(job uint64) error
	GiveBack(job uint64) error

	Ready()
	Interrupted(reason string)
	Fail(reason string)

	OwnName() string
	NameOf(peer uint32) string
	Log(level Level, message string, fields []Field)
	Config(key string) (value string, found bool, err error)
}

// Options of a call, an event or a job.
type Options struct {
	// Timeout is the operator's default if it is 0.
	Timeout time.Duration
	// Parent is the request or job in hand, or 0.
	Parent uint64
}

// Request is a call of an operation.
type Request struct {
	ID        uint64
	Sender    uint32
	Operation uint32
	Remaining time.Duration
	Payload   []byte
}

// Response is the answer to a request that this extension has sent.
type Response struct {
	ID      uint64
	Payload []byte
	Err     error
}

// Event is an event under a topic of a subscription.
type Event struct {
	Sender       uint32
	Subscription uint32
	// Topic is empty where the pattern is a single topic.
	Topic    string
	Sequence uint64
	Lost     uint64
	Retained bool
	Payload  []byte
}

// Job is a job of a queue.
type Job struct {
	ID         uint64
	Queue      uint32
	Sender     uint32
	Deliveries uint32
	Payload    []byte
}

// Receipt counts the subscriptions that an event reached or missed.
type Receipt struct {
	// Delivered counts the subscriptions with the event in their inbox.
	Delivered uint32
	// Shed counts events lost because an inbox was full: this one, or older ones in its place.
	Shed uint32
	// Refused counts full subscriptions that refused it, or for which the publisher waited in vain.
	Refused uint32
}

// Level says how much a line of the log matters.
type Level uint8

// The levels, in the order of the WIT.
const (
	Trace Level = iota
	Debug
	Info
	Warn
	Failure
)

// Field is a named value of a line of the log.
type Field struct{ Name, Value string }

// Milliseconds rounds up: a timer must have fired when the time has passed.
func Milliseconds(duration time.Duration, least int64) uint32 {
	whole := int64(duration / time.Millisecond)
	if duration%time.Millisecond > 0 {
		whole++
	}
	return uint32(min(max(whole, least), math.MaxUint32))
}

// Run serves an extension from a host, for tests. The package weir sets it.
var Run func(extension any, host Host) error

// Describe gives the manifest and the described contracts of an extension, for tests. The package weir sets it.
var Describe func(extension any) (manifest []byte, contracts [][]byte, err error)
