package weirtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	weir "github.com/weir-rt/weir/guest-sdk/go"
	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// memory is Main as the extension sees it.
type memory struct{ *Main }

var _ host.Host = memory{}

type manifest struct {
	ID         string
	Fulfills   []string
	Requires   []string
	Wants      []string
	Publishes  []string
	Subscribes []string
	Puts       []string
	Takes      []string
}

// queue is a shared queue with one reader.
type queue struct {
	name       string
	number     uint32
	waiting    []host.Job
	next       uint32
	done, dead int
}

type inHand struct {
	queue *queue
	job   host.Job
}

func (m *Main) call(called operation, payload []byte, timeout time.Duration) ([]byte, error) {
	if err := fits(payload); err != nil {
		return nil, err
	}
	m.mutex.Lock()
	number := slices.Index(m.operations, called)
	if number < 0 || m.stopping {
		m.mutex.Unlock()
		return nil, invalid("`%s` has no `%s`", called.contract, called.name)
	}
	answer := make(chan host.Response, 1)
	id := m.id()
	m.answers[id] = answer
	m.inbox = append(m.inbox, host.Request{ID: id, Operation: uint32(number), Remaining: timeout, Payload: payload})
	m.mutex.Unlock()
	m.wakeUp()
	select {
	case response := <-answer:
		return response.Payload, response.Err
	case <-time.After(timeout):
	}
	m.mutex.Lock()
	delete(m.answers, id)
	m.mutex.Unlock()
	return nil, &host.Error{Case: host.Timeout}
}

func (m *Main) stop() {
	m.mutex.Lock()
	m.stopping = true
	m.mutex.Unlock()
	m.wakeUp()
}

// deliver puts an event into the inbox, once for each subscription that matches.
func (m *Main) deliver(topic string, payload []byte) (reached uint32) {
	m.sequence[topic]++
	for subscription, pattern := range m.patterns {
		if !covers(pattern, topic) {
			continue
		}
		event := host.Event{Subscription: subscription, Sequence: m.sequence[topic], Payload: payload}
		if pattern != topic {
			event.Topic = topic
		}
		m.inbox = append(m.inbox, event)
		reached++
	}
	return reached
}

func (m *Main) put(queue *queue, payload []byte) uint64 {
	id := m.id()
	queue.waiting = append(queue.waiting, host.Job{ID: id, Queue: queue.number, Deliveries: 1, Payload: payload})
	m.hand(queue)
	return id
}

// hand puts as many jobs into the inbox as the extension takes.
func (m *Main) hand(queue *queue) {
	for queue.next > 0 && len(queue.waiting) > 0 && !m.stopping {
		job := queue.waiting[0]
		queue.waiting = queue.waiting[1:]
		queue.next--
		m.inHand[job.ID] = inHand{queue, job}
		m.inbox = append(m.inbox, job)
	}
}

func (m *Main) queue(name string) *queue {
	for _, known := range m.queues {
		if known.name == name {
			return known
		}
	}
	added := &queue{name: name, number: uint32(len(m.queues))}
	m.queues = append(m.queues, added)
	return added
}

func (m *Main) id() uint64 {
	m.last++
	return m.last
}

func (m memory) Serve(contract string, operations []string) (uint32, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	first := uint32(len(m.operations))
	for _, name := range operations {
		m.operations = append(m.operations, operation{contract, name})
	}
	return first, nil
}

func (m memory) Settle() bool { return true }

func (m memory) Wake() { m.wakeUp() }

func (m memory) Receive(until time.Time) (messages []any, stop bool) {
	m.mutex.Lock()
	messages, m.inbox = m.inbox, nil
	stop = m.stopping && (!m.told || len(messages) == 0 && len(m.underWay) == 0)
	m.told = m.told || stop
	m.mutex.Unlock()
	if len(messages) > 0 || stop {
		return messages, stop
	}
	var deadline <-chan time.Time
	if !until.IsZero() {
		deadline = time.After(time.Until(until))
	}
	select {
	case <-m.wake:
	case <-deadline:
	}
	return nil, false
}

func (m *Main) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m memory) Respond(request uint64, payload []byte, failure *host.Error) error {
	if err := fits(payload); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	answer, found := m.answers[request]
	if !found {
		// Its deadline has passed.
		return nil
	}
	delete(m.answers, request)
	response := host.Response{ID: request, Payload: payload}
	if failure != nil {
		response.Err = failure
	}
	answer <- response
	return nil
}

func (m memory) Open(contract, name, provider string) (uint32, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !slices.Contains(m.manifest.Requires, contract) && !slices.Contains(m.manifest.Wants, contract) {
		return 0, denied("`%s`: neither `requires` nor `wants` lists it", contract)
	}
	called := operation{contract, name}
	if m.fakes[called] == nil {
		return 0, &host.Error{Case: host.UnknownContract, Text: contract}
	}
	m.targets = append(m.targets, called)
	return uint32(len(m.targets) - 1), nil
}

func (m memory) Call(target uint32, payload []byte, options host.Options) ([]byte, error) {
	if err := fits(payload); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within(options))
	defer cancel()
	m.mutex.Lock()
	answer := m.fakes[m.targets[target]]
	m.mutex.Unlock()
	payload, err := answer(ctx, payload)
	if ctx.Err() != nil {
		return nil, &host.Error{Case: host.Timeout}
	}
	return payload, asHandler(err)
}

func (m memory) Send(target uint32, payload []byte, options host.Options) (uint64, error) {
	if err := fits(payload); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within(options))
	m.mutex.Lock()
	defer m.mutex.Unlock()
	id := m.id()
	answer := m.fakes[m.targets[target]]
	m.underWay[id] = cancel
	respond := func(payload []byte, err error) {
		m.mutex.Lock()
		_, waits := m.underWay[id]
		delete(m.underWay, id)
		if waits {
			m.inbox = append(m.inbox, host.Response{ID: id, Payload: payload, Err: err})
		}
		m.mutex.Unlock()
		cancel()
		m.wakeUp()
	}
	context.AfterFunc(ctx, func() { respond(nil, &host.Error{Case: host.Timeout}) })
	m.answering.Go(func() {
		payload, err := answer(ctx, payload)
		respond(payload, asHandler(err))
	})
	return id, nil
}

func (m memory) Cancel(request uint64) {
	m.mutex.Lock()
	cancel, found := m.underWay[request]
	delete(m.underWay, request)
	m.mutex.Unlock()
	if found {
		cancel()
	}
}

func (m memory) Subscribe(pattern string) (uint32, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !covered(m.manifest.Subscribes, pattern) {
		return 0, denied("`%s`: `subscribes` does not cover it", pattern)
	}
	for number, known := range m.patterns {
		if known == pattern {
			return number, nil
		}
	}
	number := uint32(m.id())
	m.patterns[number] = pattern
	return number, nil
}

func (m memory) Unsubscribe(subscription uint32) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, found := m.patterns[subscription]; !found {
		return invalid("there is no subscription %d", subscription)
	}
	delete(m.patterns, subscription)
	return nil
}

func (m memory) Publish(topic string, payload []byte, _ host.Options) (host.Receipt, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !covered(m.manifest.Publishes, topic) {
		return host.Receipt{}, denied("`%s`: `publishes` does not cover it", topic)
	}
	if err := fits(payload); err != nil {
		return host.Receipt{}, err
	}
	m.published = append(m.published, Message{topic, payload})
	receipt := host.Receipt{Delivered: m.deliver(topic, payload)}
	m.wakeUp()
	return receipt, nil
}

func (m memory) PublishTo(_, topic string, payload []byte, options host.Options) (host.Receipt, error) {
	return m.Publish(topic, payload, options)
}

func (m memory) OpenQueue(name string) (uint32, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !slices.Contains(m.manifest.Puts, name) && !slices.Contains(m.manifest.Takes, name) {
		return 0, denied("`%s`: neither `puts` nor `takes` lists it", name)
	}
	return m.queue(name).number, nil
}

func (m memory) Put(number uint32, payload []byte, _ host.Options) (uint64, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	queue := m.queues[number]
	if !slices.Contains(m.manifest.Puts, queue.name) {
		return 0, denied("`%s`: `puts` does not list it", queue.name)
	}
	if err := fits(payload); err != nil {
		return 0, err
	}
	id := m.put(queue, payload)
	m.wakeUp()
	return id, nil
}

func (m memory) Take(number uint32, next uint32) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	queue := m.queues[number]
	if !slices.Contains(m.manifest.Takes, queue.name) {
		return denied("`%s`: `takes` does not list it", queue.name)
	}
	queue.next = next
	m.hand(queue)
	m.wakeUp()
	return nil
}

func (m memory) Done(job uint64) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	ended, err := m.end(job)
	if err == nil {
		ended.queue.done++
	}
	return err
}

func (m memory) GiveBack(job uint64) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	given, err := m.end(job)
	if err != nil {
		return err
	}
	if given.job.Deliveries >= deliveries {
		given.queue.dead++
		return nil
	}
	given.job.Deliveries++
	given.queue.waiting = append(given.queue.waiting, given.job)
	m.hand(given.queue)
	m.wakeUp()
	return nil
}

func (m memory) Ready() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.state == "" {
		close(m.ready)
	}
	m.state = "ready"
}

func (m memory) Interrupted(reason string) { m.declare(reason) }

func (m memory) Fail(reason string) { m.declare(reason) }

func (m *Main) declare(reason string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state = reason
}

func (m memory) OwnName() string { return m.manifest.ID }

func (m memory) NameOf(uint32) string { return "main" }

func (m memory) Log(level host.Level, message string, fields []host.Field) {
	line := Line{slog.Level(int(level)*4 - 8), message, map[string]string{}}
	for _, field := range fields {
		line.Fields[field.Name] = field.Value
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.lines = append(m.lines, line)
}

func (m memory) Config(key string) (string, bool, error) {
	value, found := m.config[key]
	return value, found, nil
}

func within(options host.Options) time.Duration {
	if options.Timeout > 0 {
		return options.Timeout
	}
	return timeout
}

func asHandler(err error) error {
	var failure *host.Error
	if err == nil || errors.As(err, &failure) {
		return err
	}
	return weir.Errorf(weir.Code(err), "%v", err)
}

// fits refuses a payload that is over the limit.
func fits(payload []byte) error {
	if len(payload) > messageSize {
		return &host.Error{Case: host.TooLarge, Used: uint64(len(payload)), Allowed: messageSize}
	}
	return nil
}

// end takes a job out of the hand of the extension.
func (m *Main) end(job uint64) (inHand, error) {
	ended, found := m.inHand[job]
	if !found {
		return ended, invalid("job %d is not in hand", job)
	}
	delete(m.inHand, job)
	return ended, nil
}

func invalid(format string, args ...any) error {
	return &host.Error{Case: host.Invalid, Text: fmt.Sprintf(format, args...)}
}

func denied(format string, args ...any) error {
	return &host.Error{Case: host.PermissionDenied, Text: fmt.Sprintf(format, args...)}
}

func covered(granted []string, asked string) bool {
	return slices.ContainsFunc(granted, func(pattern string) bool { return covers(pattern, asked) })
}

// covers says whether a pattern matches whatever another one does.
func covers(pattern, other string) bool {
	granted, asked := strings.Split(pattern, "."), strings.Split(other, ".")
	for index, segment := range granted {
		if index >= len(asked) {
			return false
		}
		if segment == ">" {
			return true
		}
		if asked[index] == ">" || segment != "*" && segment != asked[index] {
			return false
		}
	}
	return len(granted) == len(asked)
}
