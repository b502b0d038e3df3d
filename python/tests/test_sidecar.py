"""The names sidecar, from jaxprs that are imitated so that no JAX is needed."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace as Thing
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from spillway.jax import sidecar
from spillway.jax.sidecar import bytes_per_device, collect_names, make_sidecar, portable_path


def jaxpr(*equations):
    return Thing(eqns=list(equations))


def equation(kind, **params):
    return Thing(primitive=Thing(name=kind), params=params, outvars=[])


def named(name, *shape, dtype="bfloat16"):
    result = equation("name", name=name)
    result.outvars = [Thing(aval=Thing(shape=shape, dtype=dtype))]
    return result


def entry(name, shape, path, layers, dtype="bfloat16"):
    return {"name": name, "shape": shape, "dtype": dtype, "source": "", "path": path,
            "layers": layers}  # fmt: skip


class CollectNames(unittest.TestCase):
    def test_layers_is_the_product_of_the_scans_around_a_name(self):
        layer = jaxpr(named("query_proj", 16, 8, 4))
        scan = equation("scan", jaxpr=Thing(jaxpr=layer), length=32)
        steps = equation("scan", jaxpr=Thing(jaxpr=jaxpr(scan)), length=4)
        rows = [
            ("outside", jaxpr(named("query_proj", 16, 8, 4)), "", 1),
            ("one scan", jaxpr(scan), "scan", 32),
            ("two scans", Thing(jaxpr=jaxpr(steps)), "scan/scan", 128),
            ("through jit and checkpoint",
             jaxpr(equation("jit", jaxpr=Thing(jaxpr=jaxpr(equation("remat2", jaxpr=layer))))),
             "", 1),
        ]  # fmt: skip
        for name, program, path, layers in rows:
            with self.subTest(name):
                self.assertEqual(
                    collect_names(program), [entry("query_proj", [16, 8, 4], path, layers)]
                )

    def test_branches_are_walked_too(self):
        branches = (Thing(jaxpr=jaxpr(named("a", 2))), Thing(jaxpr=jaxpr(named("b", 2))))
        found = collect_names(jaxpr(equation("cond", branches=branches)))
        self.assertEqual([each["name"] for each in found], ["a", "b"])

    def test_one_entry_for_forward_and_recomputation(self):
        layer = jaxpr(named("a", 2), named("b", 2))
        forward = equation("scan", jaxpr=layer, length=3)
        backward = equation("scan", jaxpr=jaxpr(equation("remat2", jaxpr=layer)), length=3)
        self.assertEqual(
            collect_names(jaxpr(forward, backward)),
            [entry("a", [2], "scan", 3), entry("b", [2], "scan", 3)],
        )

    def test_one_name_on_two_tensors_is_two_entries(self):
        found = collect_names(jaxpr(named("a", 2), named("a", 4), named("a", 2, dtype="float32")))
        self.assertEqual([each["shape"] for each in found], [[2], [4], [2]])


class PortablePath(unittest.TestCase):
    def test_no_folder_of_a_machine_is_left(self):
        rows = [
            ("of a package", "/home/me/venv/lib/site-packages/maxtext/layers/a.py",
             "maxtext/layers/a.py"),
            ("below the working directory", os.path.join(os.getcwd(), "src", "a.py"), "src/a.py"),
            ("in the working directory", os.path.join(os.getcwd(), "a.py"), "a.py"),
            ("elsewhere", "/home/me/secret/model/a.py", "model/a.py"),
            ("beside the working directory", os.getcwd() + "2/a.py",
             os.path.basename(os.getcwd()) + "2/a.py"),
            ("at the root", "/a.py", "a.py"),
            ("cut already", "examples/jax/a.py", "examples/jax/a.py"),
        ]  # fmt: skip
        for name, file, expected in rows:
            with self.subTest(name):
                self.assertEqual(portable_path(file), expected)
                self.assertTrue(file.endswith(expected))


class Sidecar(unittest.TestCase):
    def test_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "names.json"
            with mock.patch("spillway.jax.sidecar.metadata.version", return_value="0.12.0.1"):
                made = make_sidecar([entry("a", [2, 3], "scan", 5)], 8, sidecar.jaxlib_version())
                made.write(path)
            self.assertEqual(
                json.loads(path.read_text()),
                {
                    "schema": "spillway.names/1",
                    "note": "global shapes, before partitioning; "
                    "layers = product of enclosing scan lengths",
                    "devices": 8,
                    "jaxlib": "0.12.0.1",
                    "names": [entry("a", [2, 3], "scan", 5)],
                },
            )

    def test_no_version_where_jaxlib_is_not_installed(self):
        gone = sidecar.metadata.PackageNotFoundError
        with mock.patch("spillway.jax.sidecar.metadata.version", side_effect=gone):
            self.assertEqual(sidecar.jaxlib_version(), "")
        self.assertNotIn("jaxlib", make_sidecar([], devices=1))

    def test_printed(self):
        made = make_sidecar(
            [entry("layer_input", [2, 3], "scan", 5), entry("a", [4], "", 1, "float32")], devices=8
        )
        self.assertEqual(
            repr(made),
            "2 checkpoint names, 8 device(s)\n"
            "  layer_input  bfloat16[2,3] x 5\n"
            "  a            float32[4]",
        )

    def test_listed_names(self):
        entries = [entry("a", [2], "", 1), entry("b", [2], "", 1), entry("a", [4], "", 1)]
        for given in (make_sidecar(entries, 1), entries, ["a", "b", "a"], ("a", "b")):
            self.assertEqual(sidecar.listed_names(given), ["a", "b"])

    def test_bytes_per_device(self):
        rows = [("bfloat16", 2 * 24 // 4), ("float32", 4 * 24 // 4), ("float8_e4m3fn", 24 // 4),
                ("int4", 24 // 2 // 4), ("bool", 24 // 4)]  # fmt: skip
        for dtype, expected in rows:
            with self.subTest(dtype):
                self.assertEqual(bytes_per_device(entry("a", [4, 6], "", 1, dtype), 4), expected)


if __name__ == "__main__":
    unittest.main()
