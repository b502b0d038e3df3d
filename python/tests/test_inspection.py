"""How the binary is found, and what is made of its answers. A stand-in answers: see test_live_step
for the real one."""

import json
import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace as Thing
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from spillway.jax import inspection
from spillway.jax.errors import UserError
from spillway.jax.sizes import size_text

ANSWER = {
    "program": {"name": "jit_step", "devices": 8},
    "memory": {
        "total_device_bytes": 3 << 30, "argument_bytes": 1 << 30, "temp_bytes": 2 << 30,
        "live_peak_bytes": 5 << 29, "host_temp_bytes": 1 << 30, "host_argument_bytes": 1 << 29,
        "host_output_bytes": 1 << 29, "host_alias_bytes": 1 << 29,
    },
    "transfers": {"d2h_bytes_per_step": 1 << 30, "h2d_bytes_per_step": 3 << 29},
    "residuals": [
        {"id": "r0", "names": ["a", "b"], "layers": 4, "bytes_per_layer": 1 << 28,
         "placement": "pinned_host"},
        {"id": "r1", "names": [], "layers": 4, "bytes_per_layer": 1 << 27, "placement": "device"},
    ],
    "diagnostics": [{"severity": "warning", "code": "some-code", "message": "What is odd."}],
}  # fmt: skip

# Writes what it was told into `heard`, then answers as the files beside it say.
STAND_IN = """#!/bin/sh
here=$(dirname "$0")
printf '%s\\n' "$@" > "$here/heard"
cp "$2" "$here/program"
while [ $# -gt 0 ]; do
  if [ "$1" = --names ]; then cp "$2" "$here/names"; fi
  shift
done
cat "$here/stdout"
cat "$here/stderr" >&2
exit $(cat "$here/code")
"""


def compiled_to(*programs: bytes) -> Thing:
    """What looks like a `jax.stages.Compiled` of these programs."""
    modules = [Thing(as_serialized_hlo_module_proto=lambda p=p: p) for p in programs]
    return Thing(runtime_executable=lambda: Thing(hlo_modules=lambda: modules))


class StandIn(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.binary = self.folder / "spillway"
        self.binary.write_text(STAND_IN)
        self.binary.chmod(self.binary.stat().st_mode | stat.S_IXUSR)
        self.answer(json.dumps(ANSWER))
        self.compiled = compiled_to(b"a program")

    def answer(self, stdout: str, stderr: str = "", code: int = 0):
        for name, text in (("stdout", stdout), ("stderr", stderr), ("code", str(code))):
            (self.folder / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()


class Inspect(StandIn):
    def test_what_the_binary_hears(self):
        found = inspection.inspect(self.compiled, names={"names": []}, hw="gb200",
                                   spillway=self.binary)  # fmt: skip
        self.assertEqual(found, ANSWER)
        self.assertEqual(self.read("program"), "a program")
        self.assertEqual(json.loads(self.read("names")), {"names": []})
        heard = self.read("heard").split("\n")
        self.assertEqual(heard[0], "inspect")
        self.assertIn("--json", heard)
        self.assertEqual(heard[heard.index("--hw") + 1], "gb200")

    def test_names_may_be_a_file(self):
        path = self.folder / "my names.json"
        path.write_text("{}")
        inspection.inspect(self.compiled, names=path, spillway=self.binary)
        self.assertEqual(self.read("names"), "{}")

    def test_a_step_that_does_not_fit_is_an_answer(self):
        self.answer(json.dumps(ANSWER), "it does not fit", code=1)
        self.assertEqual(inspection.inspect(self.compiled, spillway=self.binary), ANSWER)

    def test_the_binarys_words(self):
        for code, stderr, said in (
            (3, "x.txt:1: error: is no HLO\n", "x.txt:1: error: is no HLO"),
            (70, "", "it ended with 70 and said nothing"),
            (-9, "", "it ended with 137 and said nothing"),
        ):
            self.answer("", stderr, code % 256 if code > 0 else 137)
            with self.subTest(code), self.assertRaises(UserError) as caught:
                inspection.inspect(self.compiled, spillway=self.binary)
            self.assertEqual(str(caught.exception), f"{self.binary} does not take this: {said}")

    def test_what_is_no_compiled_step(self):
        with self.assertRaises(UserError) as caught:
            inspection.inspect(3, spillway=self.binary)
        self.assertEqual(
            str(caught.exception),
            "int is no compiled step: give what jax.jit(step).lower(*args).compile() returns",
        )
        for programs in ((), (b"one", b"two")):
            with self.assertRaises(UserError) as caught:
                inspection.inspect(compiled_to(*programs), spillway=self.binary)
            self.assertEqual(
                str(caught.exception),
                f"the compiled step holds {len(programs)} programs, not one",
            )

    def test_printed(self):
        self.assertEqual(
            repr(inspection.Inspection(ANSWER)),
            "jit_step, 8 device(s), one of them:\n"
            "  HBM 3.00 GiB: arguments 1.00 GiB, temporaries 2.00 GiB; 2.50 GiB live at the peak\n"
            "  host 1.50 GiB; a step moves 1.00 GiB to it and 1.50 GiB back\n"
            "  a, b  4 x 256.00 MiB  pinned_host\n"
            "  r1    4 x 128.00 MiB  device\n"
            "  warning some-code: What is odd.",
        )


class SizeText(unittest.TestCase):
    def test_units(self):
        rows = [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536 << 10, "1.50 MiB"),
                (1 << 30, "1.00 GiB"), (3 << 41, "6144.00 GiB")]  # fmt: skip
        for size, text in rows:
            self.assertEqual(size_text(size), text)


class FindBinary(StandIn):
    def find(self, given=None, **environment) -> str:
        with mock.patch.dict(os.environ, environment):
            return inspection.find_binary(given)

    def test_the_argument_then_the_variable_then_path(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "spillway").symlink_to(self.binary)
        in_path = {"PATH": f"{other}:{os.environ['PATH']}"}
        rows = [
            ("argument", self.find(self.binary, SPILLWAY="/nowhere", **in_path), self.binary),
            ("variable", self.find(SPILLWAY=str(self.binary), **in_path), self.binary),
            ("path", self.find(SPILLWAY="", **in_path), other / "spillway"),
        ]
        for name, found, expected in rows:
            with self.subTest(name):
                self.assertEqual(found, str(expected))

    def test_not_found(self):
        mend = (
            ": build it (README.md of the repository), and give its path as spillway= or in the "
            "variable SPILLWAY"
        )
        nothing = {"PATH": str(self.folder / "empty"), "SPILLWAY": ""}
        rows = [
            ("/no/such", nothing, "spillway='/no/such' is no program"),
            (None, nothing | {"SPILLWAY": "/no/such"},
             "the variable SPILLWAY says '/no/such', which is no program"),
            (None, nothing, "there is no spillway on PATH"),
        ]  # fmt: skip
        for given, environment, message in rows:
            with self.subTest(message), self.assertRaises(UserError) as caught:
                self.find(given, **environment)
            self.assertEqual(str(caught.exception), message + mend)


if __name__ == "__main__":
    unittest.main()
