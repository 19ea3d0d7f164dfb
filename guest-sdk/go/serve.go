package weir

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// link is what an extension shares with all its handlers. One goroutine owns the inbox: it hands messages to goroutines of
// their own, and waits when they all wait.
type link struct {
	host host.Host
	// receiving says whether answers come through the inbox.
	receiving atomic.Bool

	mutex    sync.Mutex
	targets  map[target]uint32
	underWay map[uint64]*slot
	lanes    map[uint32]*lane
	queues   map[string]uint32
	wants    map[uint32]*wants
	// operations are by their number.
	operations map[uint32]served
	// inHand are the requests that are not answered, for their deadlines.
	inHand map[*requestContext]struct{}
	// handlers counts those that run, of any message.
	handlers int
	stopping bool
	failure  error
	// change has a token after anything that the loop may wait for.
	change chan struct{}
}

type served struct {
	contract string
	*operation
}

// current is the link of the log without a context.
var current atomic.Pointer[link]

func (e *Extension) serve(from host.Host) error {
	host := utf8Host{from}
	link := &link{
		host:    host,
		targets: map[target]uint32{}, underWay: map[uint64]*slot{}, lanes: map[uint32]*lane{},
		queues: map[string]uint32{}, wants: map[uint32]*wants{}, operations: map[uint32]served{},
		inHand: map[*requestContext]struct{}{}, change: make(chan struct{}, 1),
	}
	current.Store(link)
	useLog()
	err := e.run(link)
	if err != nil {
		host.Fail(err.Error())
	}
	return err
}

func (e *Extension) run(link *link) error {
	if err := e.check(); err != nil {
		return err
	}
	for _, contract := range e.contracts {
		if err := link.serve(contract); err != nil {
			return err
		}
	}
	for _, subscription := range e.subscriptions {
		if _, err := link.subscribe(subscription); err != nil {
			return err
		}
	}
	whole, stop := context.WithCancel(link.context(&origin{}))
	defer stop()
	if e.onStart != nil {
		if err := guarded(func() error { return e.onStart(whole) }); err != nil {
			return err
		}
	}
	for index := range e.workers {
		if err := link.work(&e.workers[index]); err != nil {
			return err
		}
	}
	link.receiving.Store(true)
	link.host.Ready()
	for _, task := range e.background {
		go func() {
			if err := guarded(func() error { return task(whole) }); err != nil && whole.Err() == nil {
				link.fail(err)
			}
		}()
	}
	if err := link.loop(stop); err != nil {
		return err
	}
	if e.onStop != nil {
		return guarded(func() error { return e.onStop(link.context(&origin{})) })
	}
	return nil
}

func (l *link) serve(contract *contract) error {
	var names []string
	for _, operation := range contract.operations {
		names = append(names, operation.name)
	}
	if len(names) == 0 {
		return nil
	}
	first, err := l.host.Serve(contract.name, names)
	for index, operation := range contract.operations {
		l.operations[first+uint32(index)] = served{contract.name, operation}
	}
	return err
}

func (l *link) work(worker *worker) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	number, err := l.openQueue(worker.queue)
	if err != nil {
		return err
	}
	l.wants[number].worker = worker
	return l.offer(number, worker.atOnce)
}

// loop ends when Main has asked for it and the last handler has ended. It calls stopping when Main asks.
func (l *link) loop(stopping func()) error {
	for {
		settled := l.host.Settle()
		until, listening, over, err := l.state()
		if err != nil || over {
			return err
		}
		if !listening {
			l.waitForHandlers(until)
			continue
		}
		if !settled {
			// Others are ready to run, so the inbox is only looked at.
			until = time.Now()
		}
		messages, stop := l.host.Receive(until)
		if stop && l.stop() {
			stopping()
		}
		for _, message := range messages {
			l.handle(message)
		}
	}
}

// state ends requests past their deadline, and returns the next deadline.
func (l *link) state() (until time.Time, listening, over bool, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var now time.Time
	for request := range l.inHand {
		if now.IsZero() {
			now = time.Now()
		}
		if !request.deadline.After(now) {
			delete(l.inHand, request)
			request.end(context.DeadlineExceeded)
		} else if until.IsZero() || request.deadline.Before(until) {
			until = request.deadline
		}
	}
	listening = !l.stopping || len(l.underWay) > 0
	return until, listening, l.stopping && l.handlers == 0, l.failure
}

// stop notes that Main asks to stop. It returns false if it did so before: no more messages will come.
func (l *link) stop() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.stopping {
		l.receiving.Store(false)
		for id, slot := range l.underWay {
			delete(l.underWay, id)
			slot.fill(nil, &Error{Case: CasePeerGone})
		}
		return false
	}
	l.stopping = true
	for _, wants := range l.wants {
		for _, taker := range wants.takers {
			close(taker)
		}
		wants.takers = nil
	}
	return true
}

// waitForHandlers waits as other goroutines do: Go's scheduler looks after the timers.
func (l *link) waitForHandlers(until time.Time) {
	var deadline <-chan time.Time
	if !until.IsZero() {
		deadline = time.After(time.Until(until))
	}
	select {
	case <-l.change:
	case <-deadline:
	}
}

// changed lets the loop look at its state again.
func (l *link) changed() {
	select {
	case l.change <- struct{}{}:
	default:
	}
	l.host.Wake()
}

func (l *link) fail(err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.failure == nil {
		l.failure = err
	}
	l.changed()
}

func (l *link) handle(message any) {
	switch message := message.(type) {
	case host.Request:
		l.request(message)
	case host.Response:
		l.answered(message)
	case host.Event:
		l.event(message)
	case host.Job:
		l.job(message)
	}
}

func (l *link) request(request host.Request) {
	operation, found := l.operations[request.Operation]
	if !found {
		l.respond(request.ID, nil, invalid("operation number %d was never given out", request.Operation))
		return
	}
	ctx := &requestContext{origin: &origin{
		link: l, sender: &request.Sender, deadline: time.Now().Add(request.Remaining),
	}}
	ctx.parent.Store(request.ID)
	l.mutex.Lock()
	l.handlers++
	l.inHand[ctx] = struct{}{}
	l.mutex.Unlock()
	go func() {
		var answer []byte
		err := guarded(func() (err error) {
			answer, err = operation.handle(ctx, request.Payload)
			return err
		})
		var panicked *panicked
		var notEncoded *notEncoded
		switch {
		case errors.As(err, &panicked):
			l.log(host.Failure, "a handler panicked", "contract", operation.contract, "operation", operation.name,
				"panic", panicked.text, "in", panicked.trace)
		case errors.As(err, &notEncoded):
			l.log(host.Failure, "an answer does not encode", "contract", operation.contract,
				"operation", operation.name, "error", notEncoded.Error())
		}
		ctx.parent.Store(0)
		l.respond(request.ID, answer, err)
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.inHand, ctx)
		ctx.end(context.Canceled)
		l.handlers--
		l.changed()
	}()
}

// respond answers a request. An answer that is too large is replaced by an error. Other refusals have no remedy.
func (l *link) respond(request uint64, answer []byte, err error) {
	var failure *Error
	if err != nil {
		failure = asAnswer(err)
	}
	refused := l.host.Respond(request, answer, failure)
	if refused == nil {
		return
	}
	l.log(host.Warn, "an answer was refused", "error", refused.Error())
	if errors.Is(refused, ErrTooLarge) {
		if refused := l.host.Respond(request, nil, asAnswer(refused)); refused != nil {
			l.log(host.Warn, "an answer was refused", "error", refused.Error())
		}
	}
}

// context is that of an event, a job, or the extension itself.
func (l *link) context(origin *origin) context.Context {
	origin.link = l
	return context.WithValue(context.Background(), originKey{}, origin)
}

// panicked is the error of a handler that has panicked.
type panicked struct{ text, trace string }

func (p *panicked) Error() string { return "panic: " + p.text + " in " + p.trace }

// notEncoded is the error of an answer that is no JSON.
type notEncoded struct{ error }

// guarded calls a handler, and makes an error of a panic.
func guarded(handler func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = &panicked{fmt.Sprint(reason), trace()}
		}
	}()
	return handler()
}

// frames is how many functions of a panic the log has room for.
const frames = 16

// trace names the functions from a panic up to this package, innermost first, in one line.
func trace() string {
	var lines []string
	counters := make([]uintptr, frames)
	found := runtime.CallersFrames(counters[:runtime.Callers(4, counters)])
	for {
		frame, more := found.Next()
		if strings.HasPrefix(frame.Function, "github.com/weir-rt/weir/guest-sdk/go.guarded") || frame.Function == "" {
			break
		}
		if !strings.HasPrefix(frame.Function, "runtime.") {
			lines = append(lines, fmt.Sprintf("%s (%s:%d)", frame.Function, path.Base(frame.File), frame.Line))
		}
		if !more {
			break
		}
	}
	return strings.Join(lines, " < ")
}
