package host

import (
	"context"
	"fmt"
	"strings"
)

// Case is a case of an error, by its name in `wit/iec.wit`.
type Case string

// The cases. There is no other.
const (
	PermissionDenied Case = "permission-denied"
	UnknownContract  Case = "unknown-contract"
	NoProvider       Case = "no-provider"
	NotReady         Case = "not-ready"
	Timeout          Case = "timeout"
	Overloaded       Case = "overloaded"
	PeerGone         Case = "peer-gone"
	Trapped          Case = "trapped"
	LimitExceeded    Case = "limit-exceeded"
	WouldDeadlock    Case = "would-deadlock"
	TooLarge         Case = "too-large"
	Invalid          Case = "invalid"
	Handler          Case = "handler"
)

// Error says why a message failed.
type Error struct {
	// Case is one of a closed set.
	Case Case
	// Code is the provider's own word, such as `not-found`, if the case is Handler.
	Code string
	// Text is for people. It is empty for the cases Timeout, PeerGone, Trapped, LimitExceeded, WouldDeadlock and
	// TooLarge.
	Text string
	// Limit is the limit that was reached, if the case is LimitExceeded.
	Limit string
	// Used is how much was asked for, and Allowed how much is allowed, for LimitExceeded and TooLarge.
	Used, Allowed uint64
	// Cycle names the peers that wait for each other, if the case is WouldDeadlock.
	Cycle []string
}

// Error is the text for people.
func (e *Error) Error() string {
	switch e.Case {
	case PermissionDenied:
		return "permission denied: " + e.Text
	case UnknownContract:
		return "unknown contract `" + e.Text + "`"
	case NoProvider:
		return "no provider: " + e.Text
	case NotReady:
		return "not ready: " + e.Text
	case Timeout:
		return "timed out"
	case Overloaded:
		return "`" + e.Text + "` is full"
	case PeerGone:
		return "the receiver stopped before it answered"
	case Trapped:
		return "the receiver trapped with the request in hand"
	case LimitExceeded:
		return fmt.Sprintf("limit `%s` exceeded: %d of %d", e.Limit, e.Used, e.Allowed)
	case WouldDeadlock:
		return "would deadlock: " + strings.Join(e.Cycle, " -> ")
	case TooLarge:
		return fmt.Sprintf("payload of %d bytes is over the limit of %d", e.Used, e.Allowed)
	case Invalid:
		return "invalid: " + e.Text
	default:
		return e.Code + ": " + e.Text
	}
}

// Is makes errors.Is compare by case: with the Err variables, and a timeout with context.DeadlineExceeded.
func (e *Error) Is(target error) bool {
	if other, ok := target.(*Error); ok {
		return other.Text == "" && other.Case == e.Case && (other.Code == "" || other.Code == e.Code)
	}
	return e.Case == Timeout && target == context.DeadlineExceeded
}
