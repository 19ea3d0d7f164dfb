"""Tests of the sidecar: alone, and beside the Main that `weir test` starts."""

import json
import os
import subprocess
import sys
import time
import unittest

from main import parsed


class Alone(unittest.TestCase):
    def test_the_load_is_the_first_three_numbers(self) -> None:
        self.assertEqual(parsed("0.25 1.5 2 1/99 7\n"), {"one": 0.25, "five": 1.5, "fifteen": 2.0})


@unittest.skipUnless("WEIR" in os.environ, "`weir test` starts a Main")
class BesideMain(unittest.TestCase):
    def setUp(self) -> None:
        sidecar = subprocess.Popen([sys.executable, "main.py"])
        self.addCleanup(sidecar.wait)
        self.addCleanup(sidecar.kill)

    def test_the_sidecar_answers_through_main(self) -> None:
        command = [os.environ["WEIR"], "call", "{{name}}@1", "load"]
        begun = time.monotonic()
        while (call := subprocess.run(command, capture_output=True, text=True)).returncode:
            # It has not connected yet.
            self.assertLess(time.monotonic() - begun, 10, call.stderr)
            time.sleep(0.05)
        self.assertEqual(set(json.loads(call.stdout)), {"one", "five", "fifteen"})


if __name__ == "__main__":
    unittest.main()
