"""The flags of a compile, and the numbers read back from XLA's text."""

import gzip
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from spillway.jax import xla_dump
from spillway.jax.errors import UserError

ASSIGNMENT = """\
BufferAssignment:
allocation 0: size 100, page 0, parameter 0, shape |f32[25]| at ShapeIndex {}, maybe-live-out:
 value: <1 p @0> (size=100,offset=0): f32[25]
allocation 1: size 4, page 0, thread-local:
allocation 2: size 4096, color 5, page 0, preallocated-temp:
 value: <7 allocation 9: size 1, @5> (size=4096,offset=0): f32[1024]
allocation 3: size 256, preallocated-temp:

Total bytes used: 4456
"""
REPORT = """\
Memory Space: default (color=0)
Total bytes: 360 (360B)
  cumulative_size;       size

Memory Space: cmem (color=5)
Total bytes: 4096 (4.0KiB)
"""
PROGRAM = """\
HloModule jit_train_step, is_scheduled=true
  %add.remat = f32[] add(%a, %b)
  ROOT %add.1.remat2.3 = f32[] add(%a, %b), metadata={op_name="checkpoint/rematted"}
  %premature = f32[] add(%add.remat, %b)
"""
NAME = "module_0001.jit_train_step.sm_10.0a_gpu_after_optimizations"


def write_dump(folder: Path) -> None:
    """A tiny dump as XLA names its files, with two that nobody reads."""
    for name, text in {
        f"{NAME}.txt": PROGRAM,
        f"{NAME}-buffer-assignment.txt": ASSIGNMENT,
        f"{NAME}-buffer-assignment-values.txt": "values",
        f"{NAME}-memory-usage-report.txt": REPORT,
        "module_0001.jit_train_step.thunk_sequence.txt": "000: kGemm",
        "module_0001.jit_train_step.thunk_sequence_after_thunk_passes.txt": "000: kGemm",
    }.items():
        (folder / name).write_text(text)


class Flags(unittest.TestCase):
    def flags(self, *args, **kwargs):
        return xla_dump.compile_flags(*args, **kwargs)[len(xla_dump.NO_AUTOTUNING) :]

    def test_flags(self):
        off = "--xla_disable_hlo_passes=rematerialization"
        rows = [
            ("nothing", "", False, [off]),
            ("XLA's remat kept", "", True, []),
            ("more flags", "--xla_a=1 '--xla_b=x y'", False, ["--xla_a=1", "--xla_b=x y", off]),
            ("another pass disabled", "--xla_disable_hlo_passes=dce", False,
             ["--xla_disable_hlo_passes=dce,rematerialization"]),
            ("another, XLA's remat kept", "--xla_disable_hlo_passes=dce", True,
             ["--xla_disable_hlo_passes=dce"]),
            ("the same pass", off, False, [off]),
        ]  # fmt: skip
        for name, extra, keep, expected in rows:
            with self.subTest(name):
                self.assertEqual(self.flags(extra, keep_xla_remat=keep), expected)

    def test_compiler_options(self):
        rows = [
            ("--xla_a=1", "xla_a", "1"),
            ("--xla_a=true", "xla_a", True),
            ("--xla_a=False", "xla_a", False),
            ("--xla_a", "xla_a", True),
            ("--xla_a=", "xla_a", ""),
            ("--xla_a=b=c d", "xla_a", "b=c d"),
        ]
        for flag, name, value in rows:
            with self.subTest(flag):
                self.assertEqual(xla_dump.compiler_options([flag]), {name: value})

    def test_of_a_flag_given_twice_the_last_wins(self):
        self.assertEqual(xla_dump.compiler_options(["--xla_a=1", "--xla_a=2"]), {"xla_a": "2"})

    def test_refused(self):
        for extra, message in (
            ("xla_a=1", "'xla_a=1' is no XLA flag: one looks like --xla_name=value"),
            ("--xla_a='1", "the XLA flags cannot be read: No closing quotation"),
        ):
            with self.subTest(extra), self.assertRaises(UserError) as caught:
                xla_dump.compile_flags(extra)
            self.assertEqual(str(caught.exception), message)


class Reading(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        write_dump(self.folder)

    def test_totals(self):
        self.assertEqual(xla_dump.allocated_bytes(ASSIGNMENT), {0: 360, 5: 4096})
        self.assertEqual(xla_dump.reported_bytes(REPORT), {0: 360, 5: 4096})
        self.assertEqual(
            xla_dump.allocation_summary(self.folder), {"device_bytes": 360, "host_bytes": 4096}
        )

    def test_totals_that_disagree(self):
        (self.folder / f"{NAME}-memory-usage-report.txt").write_text(REPORT.replace("360", "361"))
        with self.assertRaises(UserError) as caught:
            xla_dump.allocation_summary(self.folder)
        self.assertIn("sum to {0: 360, 5: 4096}", str(caught.exception))

    def test_remat_clones(self):
        self.assertEqual(xla_dump.count_remat_clones(PROGRAM), 2)

    def test_pack(self):
        xla_dump.pack(self.folder, "lean")
        self.assertEqual(
            sorted(path.name for path in self.folder.iterdir()),
            [
                "jit_train_step.sm_10.0a_gpu_after_optimizations-buffer-assignment.txt.gz",
                "jit_train_step.sm_10.0a_gpu_after_optimizations-memory-usage-report.txt.gz",
                "jit_train_step.sm_10.0a_gpu_after_optimizations.txt.gz",
                "jit_train_step.thunk_sequence.txt.gz",
            ],
        )
        packed = xla_dump.find_file(self.folder, "after_optimizations.txt")
        self.assertEqual(xla_dump.read_text(packed), PROGRAM)
        self.assertEqual(packed.read_bytes(), gzip.compress(PROGRAM.encode(), 9, mtime=0))
        self.assertEqual(xla_dump.allocation_summary(self.folder)["device_bytes"], 360)

    def test_pack_removes_nothing_if_a_file_is_missing(self):
        before = sorted(self.folder.iterdir())
        with self.assertRaises(UserError) as caught:
            xla_dump.pack(self.folder, "full")
        self.assertIn("one file *after_optimizations.hlo.pb, and holds none", str(caught.exception))
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_two_programs_in_one_folder(self):
        (self.folder / "module_0002.jit_f.sm_10.0a_gpu_after_optimizations.txt").write_text("")
        with self.assertRaises(UserError) as caught:
            xla_dump.find_file(self.folder, "after_optimizations.txt")
        self.assertIn("should hold one file", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
