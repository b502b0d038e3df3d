"""A plan in each form in which it comes, and what is said of what is none."""

import json
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from spillway.jax.errors import UserError
from spillway.jax.plans import ReadPlan, read_plan

CHOICES = {"query_proj": "offload", "mlpwi_0": "keep", "mlpwi_1": "recompute"}
JSON = {"schema": "spillway.plan/1", "fits": True, "best": {"policy": CHOICES, "fits": True}}
YAML = """\
# a plan
schema: spillway.plan_file/1
policy:
  query_proj: offload
  mlpwi_0: keep
  mlpwi_1: recompute
"""

needs_yaml = unittest.skipUnless(find_spec("yaml"), "PyYAML is not installed")


class Documents(unittest.TestCase):
    def test_accepted(self):
        rows = [
            ("choices", CHOICES, ReadPlan(CHOICES)),
            ("no choices", {}, ReadPlan({})),
            ("a plan", {"policy": CHOICES, "hardware": "gb200"}, ReadPlan(CHOICES)),
            ("spillway plan --json", JSON, ReadPlan(CHOICES)),
            ("one that does not fit", JSON | {"fits": False}, ReadPlan(CHOICES, fits=False)),
            ("a case that does not fit", {"policy": CHOICES, "fits": False},
             ReadPlan(CHOICES, fits=False)),
            ("r0 as a name that the user gave", {"r0": "keep"}, ReadPlan({"r0": "keep"})),
        ]  # fmt: skip
        for name, plan, expected in rows:
            with self.subTest(name):
                self.assertEqual(read_plan(plan), expected)

    def test_refused(self):
        bad = "is no choice for 'a': say keep, offload or recompute"
        rows = [
            ("a choice", {"a": "host"}, f"the plan: 'host' {bad}", 2),
            ("a number", {"a": 1}, f"the plan: '1' {bad}", 2),
            ("a list", {"policy": ["a"]},
             "the plan: 'policy' needs names, each with keep, offload or recompute", 3),
            ("nothing planned", {"best": None},
             "the plan has no best policy: nothing was planned", 3),
            ("residuals without names", {"best": {"policy": {"r0": "keep", "r12": "offload"}}},
             "the plan calls tensors r0, r12, which no step knows: it was made without names. Give "
             "spillway plan the --names that names() or dump() wrote", 3),
            ("no mapping", 3, "a int is no plan: give a dict or a file", 3),
        ]  # fmt: skip
        for name, plan, message, code in rows:
            with self.subTest(name), self.assertRaises(UserError) as caught:
                read_plan(plan)
            self.assertEqual(str(caught.exception), message)
            self.assertEqual(caught.exception.exit_code, code)


class Files(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = Path(temporary.name) / "plan"

    def test_json(self):
        self.path.write_text(json.dumps(JSON))
        for path in (self.path, str(self.path)):
            self.assertEqual(read_plan(path), ReadPlan(CHOICES))

    @needs_yaml
    def test_yaml(self):
        self.path.write_text(YAML)
        self.assertEqual(read_plan(self.path), ReadPlan(CHOICES))

    def refused(self, text: str, message: str):
        self.path.write_text(text)
        with self.assertRaises(UserError) as caught:
            read_plan(self.path)
        self.assertIn(f"{self.path} {message}", str(caught.exception))
        self.assertEqual(caught.exception.exit_code, 3)

    def test_broken_json(self):
        self.refused('{"policy": ', "is not JSON: Expecting value")

    @needs_yaml
    def test_broken_yaml(self):
        self.refused("policy: [", "is not YAML: ")
        self.refused("policy: {a: keep, a: offload}", "is not YAML: 'a' is given twice")
        self.refused("- keep", "holds no plan: it needs a mapping with 'policy'")
        self.refused("", "holds no plan: it needs a mapping with 'policy'")

    def test_missing(self):
        with self.assertRaises(UserError) as caught:
            read_plan(self.path)
        self.assertIn(f"{self.path} cannot be read: ", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
