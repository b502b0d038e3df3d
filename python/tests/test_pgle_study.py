"""What examples/jax/pgle_study.py reads from XLA's log and from a profile. Needs no JAX."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "examples" / "jax"))

import pgle_study

LOG = """\
W1130 09:24:37.073110   16263 profile_guided_latency_estimator.cc:192] Found 46 instructions from the profile.
W1130 09:24:37.073255   16263 profile_guided_latency_estimator.cc:194] Missing 4 instructions from the profile.
W1130 09:24:37.073265   16263 profile_guided_latency_estimator.cc:197]   fusion-done.3
W1130 09:24:37.073265   16263 profile_guided_latency_estimator.cc:197]   copy-start
W1130 09:24:37.073268   16263 profile_guided_latency_estimator.cc:197]   dynamic-slice-start.1.0
W1130 09:24:37.073288   16263 profile_guided_latency_estimator.cc:197]   custom-call.23
"""


class ReadLog(unittest.TestCase):
    def test_starts_and_dones_are_not_missing(self):
        self.assertEqual(pgle_study.read_log(LOG), {"found": 46, "missing": 1})

    def test_without_a_profile_there_is_nothing_to_say(self):
        self.assertEqual(pgle_study.read_log("W1130 something else"), {"found": "", "missing": ""})


class Variants(unittest.TestCase):
    def read(self, text: str) -> dict[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            profile = Path(folder) / "ours.pbtxt"
            profile.write_text(text)
            return {kind: path.read_text() for kind, path in pgle_study.variants(profile).items()}

    def test_a_scaled_profile_goes_back_to_microseconds(self):
        made = self.read(
            "# So the costs are microseconds x 2.5, which makes 5000 the longest of those.\n"
            "# host copy copy-start.1 takes 2000.000 us alone, no cost\n"
            'costs { name: "fusion.1" cost_us: 25 }\n'
        )
        self.assertEqual(made["kernels"], 'costs { name: "fusion.1" cost_us: 10.000 }\n')
        self.assertEqual(
            made["alone"], made["kernels"] + 'costs { name: "copy-start.1" cost_us: 2000.000 }\n'
        )

    def test_copies_of_a_loop_take_their_own_time(self):
        made = self.read(
            "# host copy wrapped_save takes 40.000 us alone\n"
            'costs { name: "wrapped_save" cost_us: 70 }\n'
            'costs { name: "while.1" cost_us: 1e+06 }\n'
        )
        self.assertEqual(made["kernels"], 'costs { name: "while.1" cost_us: 1000000.000 }\n')
        self.assertIn('costs { name: "wrapped_save" cost_us: 40.000 }\n', made["alone"])


if __name__ == "__main__":
    unittest.main()
