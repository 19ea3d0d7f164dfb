package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	weir "github.com/weir-rt/weir/guest-sdk/go"
)

// outcome is `ok`, `ok VALUE`, or `error CASE` with its fields. It always succeeds.
func outcome(value string, err error) (string, error) {
	if err == nil {
		return strings.TrimRight("ok "+value, " "), nil
	}
	var failure *weir.Error
	if !errors.As(err, &failure) {
		return "error handler " + weir.Code(err) + " " + err.Error(), nil
	}
	line := "error " + string(failure.Case)
	switch failure.Case {
	case weir.CaseTimeout, weir.CasePeerGone, weir.CaseTrapped:
	case weir.CaseLimitExceeded:
		line += fmt.Sprintf(" %s %d %d", failure.Limit, failure.Used, failure.Allowed)
	case weir.CaseTooLarge:
		line += fmt.Sprintf(" %d %d", failure.Used, failure.Allowed)
	case weir.CaseWouldDeadlock:
		line += " " + strings.Join(failure.Cycle, " ")
	case weir.CaseHandler:
		line += " " + failure.Code + " " + failure.Text
	default:
		line += " " + failure.Text
	}
	return strings.TrimRight(line, " "), nil
}

func counts(receipt weir.Receipt, err error) (string, error) {
	return outcome(fmt.Sprintf("%d %d %d", receipt.Delivered, receipt.Shed, receipt.Refused), err)
}

func optional(value string, found bool) string {
	if !found {
		return "none"
	}
	return "ok " + value
}

// within is the context with this many milliseconds. 0 is the default.
func within(ctx context.Context, ms string) (context.Context, context.CancelFunc) {
	number, err := strconv.Atoi(ms)
	if err != nil || number == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(number)*time.Millisecond)
}
