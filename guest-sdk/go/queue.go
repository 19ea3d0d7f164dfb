package weir

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// Job is a job of a queue, in hand.
type Job[T any] struct {
	// ID is the same at each delivery.
	ID uint64
	// Deliveries counts this one, too. Over 1, an earlier reader did not finish the job.
	Deliveries uint32
	// Payload is what was put.
	Payload T

	link  *link
	ended atomic.Bool
}

// Put puts a job at the end of a queue, and returns its id. It stays there even if the request in hand fails.
//
// If the queue is full, the operator's policy decides. With `block` it waits for room as Publish does.
func Put[T any](ctx context.Context, queue string, job T) (id uint64, err error) {
	origin, payload, options, err := outgoing(ctx, job)
	if err != nil {
		return 0, err
	}
	number, err := origin.link.queue(queue)
	if err != nil {
		return 0, err
	}
	return origin.link.host.Put(number, payload, options)
}

// Take waits for one job of a queue. Meanwhile this extension serves other messages. End the job with Done or
// GiveBack, on every path: until then it is in hand, and nobody else gets it.
//
// A job that does not decode is logged and given back, so it ends among the dead letters. Use HandleJobs for an ordinary
// worker. Take fails with `not-ready` in OnStart and after stop.
func Take[T any](ctx context.Context, queue string) (*Job[T], error) {
	origin, err := from(ctx)
	if err != nil {
		return nil, err
	}
	for {
		taken, err := origin.link.take(ctx, queue)
		if err != nil {
			return nil, err
		}
		job, err := inHand[T](origin.link, taken)
		if err == nil {
			return job, nil
		}
		origin.link.log(host.Warn, "a job does not decode", "queue", queue, "error", err.Error())
	}
}

// Done says that the job is done.
func (j *Job[T]) Done() error {
	if j.ended.Swap(true) {
		return nil
	}
	return j.link.host.Done(j.ID)
}

// GiveBack says that the job is not done. Another reader gets it, or this one again, or it goes to the dead letters.
func (j *Job[T]) GiveBack() error {
	if j.ended.Swap(true) {
		return nil
	}
	return j.link.host.GiveBack(j.ID)
}

// inHand decodes a job, or gives it back.
func inHand[T any](link *link, taken host.Job) (*Job[T], error) {
	var payload T
	// A type may decode itself, and panic.
	err := guarded(func() (err error) {
		payload, err = decode[T](taken.Payload)
		return err
	})
	if err != nil {
		_ = link.host.GiveBack(taken.ID)
		return nil, err
	}
	return &Job[T]{ID: taken.ID, Deliveries: taken.Deliveries, Payload: payload, link: link}, nil
}

type worker struct {
	queue  string
	atOnce int
	handle func(*link, context.Context, host.Job) error
}

func jobHandler[T any](handler func(context.Context, *Job[T]) error) func(*link, context.Context, host.Job) error {
	return func(link *link, ctx context.Context, taken host.Job) error {
		job, err := inHand[T](link, taken)
		if err != nil {
			return err
		}
		if err := guarded(func() error { return handler(ctx, job) }); err != nil {
			_ = job.GiveBack()
			return err
		}
		return job.Done()
	}
}

// wants is what this extension wants of one queue.
type wants struct {
	name   string
	worker *worker
	// takers wait for one job each, before the worker.
	takers []chan host.Job
	// more is how many jobs Main may still deliver.
	more int
}

func (l *link) queue(name string) (uint32, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.openQueue(name)
}

func (l *link) openQueue(name string) (uint32, error) {
	if known, ok := l.queues[name]; ok {
		return known, nil
	}
	number, err := l.host.OpenQueue(name)
	if err == nil {
		l.queues[name] = number
		l.wants[number] = &wants{name: name}
	}
	return number, err
}

// offer changes how many jobs may still come.
func (l *link) offer(number uint32, by int) error {
	wants := l.wants[number]
	wants.more = max(wants.more+by, 0)
	return l.host.Take(number, uint32(wants.more))
}

func (l *link) take(ctx context.Context, queue string) (host.Job, error) {
	taker := make(chan host.Job, 1)
	l.mutex.Lock()
	number, err := l.openQueue(queue)
	if err == nil && (l.stopping || !l.receiving.Load()) {
		err = &Error{Case: CaseNotReady, Text: "no job comes before the start or after the stop"}
	}
	if err == nil {
		err = l.offer(number, 1)
	}
	if err != nil {
		l.mutex.Unlock()
		return host.Job{}, err
	}
	wants := l.wants[number]
	wants.takers = append(wants.takers, taker)
	l.mutex.Unlock()

	select {
	case job, ok := <-taker:
		if !ok {
			return job, &Error{Case: CaseNotReady, Text: "the extension stops"}
		}
		return job, nil
	case <-ctx.Done():
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for index, other := range wants.takers {
		if other == taker {
			wants.takers = append(wants.takers[:index], wants.takers[index+1:]...)
			_ = l.offer(number, -1)
			break
		}
	}
	select {
	case job, ok := <-taker:
		if ok {
			return job, nil
		}
	default:
	}
	if ctx.Err() == context.DeadlineExceeded {
		return host.Job{}, &Error{Case: CaseTimeout}
	}
	return host.Job{}, ctx.Err()
}

func (l *link) job(job host.Job) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	wants := l.wants[job.Queue]
	if wants == nil {
		_ = l.host.GiveBack(job.ID)
		return
	}
	wants.more = max(wants.more-1, 0)
	switch {
	case len(wants.takers) > 0:
		wants.takers[0] <- job
		wants.takers = wants.takers[1:]
	case wants.worker != nil:
		l.handlers++
		go l.handleJob(wants, job)
	default:
		// It came while the last taker gave up.
		_ = l.host.GiveBack(job.ID)
	}
}

func (l *link) handleJob(wants *wants, job host.Job) {
	origin := &origin{sender: &job.Sender}
	origin.parent.Store(job.ID)
	err := wants.worker.handle(l, l.context(origin), job)
	origin.parent.Store(0)
	if err != nil {
		l.log(host.Warn, "a job was not done", "queue", wants.name, "job", strconv.FormatUint(job.ID, 10),
			"deliveries", strconv.FormatUint(uint64(job.Deliveries), 10), "error", err.Error())
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.handlers--
	l.changed()
	if l.stopping {
		return
	}
	if err := l.offer(job.Queue, 1); err != nil {
		l.log(host.Failure, "no more jobs can be taken", "queue", wants.name, "error", err.Error())
	}
}
