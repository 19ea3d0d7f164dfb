package host

import (
	"math"
	"testing"
	"time"
)

func TestMillisecondsAreRoundedUpAndBounded(t *testing.T) {
	for duration, expected := range map[time.Duration]uint32{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, -time.Second: 0, math.MinInt64: 0,
		math.MaxUint32 * time.Millisecond: math.MaxUint32, math.MaxInt64: math.MaxUint32,
	} {
		if found := Milliseconds(duration, 0); found != expected {
			t.Errorf("%v: %d, not %d", duration, found, expected)
		}
	}
	if found := Milliseconds(0, 1); found != 1 {
		t.Errorf("the least is %d", found)
	}
}
