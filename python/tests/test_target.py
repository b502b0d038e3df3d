"""The text that describes a GPU to XLA, and the profile it is written from."""

import dataclasses
import re
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from spillway.jax.errors import UserError
from spillway.jax.target import (
    AHEAD_OF_TIME_PERCENT,
    PROFILES,
    Gpu,
    find_profile,
    gpu_from_profile,
    memory_size_for_fraction,
    read_profile,
    target_text,
)

needs_yaml = unittest.skipUnless(find_spec("yaml"), "PyYAML is not installed")

GB200 = Gpu(
    id="gb200",
    xla_name="NVIDIA GB200",
    compute_capability="10.0",
    core_count=152,
    clock_ghz=2.062,
    matrix_clock_ghz=1.9259081,
    l2_bytes=135528448,
    hbm_bytes=197897748480,
    hbm_bytes_per_second=7928064000000,
)


def figure(value):
    return {"value": value, "origin": "specification", "source": "a test"}


def profile(**changes) -> dict:
    """The profile that says what GB200 above says; a change to None removes a key."""
    device = {
        "xla_name": "NVIDIA GB200",
        "compute_capability": "10.0",
        "sm_count": figure(152),
        "clock": figure("2.062 GHz"),
        "matrix_clock": figure("1.9259081 GHz"),
        "l2_capacity": figure("135528448 B"),
        "hbm_capacity": figure("197897748480 B"),
        "hbm_bandwidth": figure("7928.064 GB/s"),
        **changes,
    }
    device = {key: value for key, value in device.items() if value is not None}
    return {"id": "gb200", "name": "GB200", "device": device}


def rates(text: str, unit: str) -> dict[int, tuple[str, int, int]]:
    """PrimitiveType -> (clock, units a core, operations a clock) of a unit's description."""
    block = re.search(unit + r"_unit_description \{(.*?)\n  \}", text, re.DOTALL)[1]
    found = re.findall(
        r"key: (\d+) value \{ clock_rate_ghz: (\S+) units_per_core: (\d+) ops_per_clock: (\d+) \}",
        block,
    )
    return {int(key): (clock, int(units), int(ops)) for key, clock, units, ops in found}


class TargetText(unittest.TestCase):
    def test_product_figures(self):
        text = target_text(GB200)
        for line in (
            'name: "NVIDIA GB200"',
            "core_count: 152",
            "clock_rate_ghz: 2.062",
            "device_memory_size: 197897748480",
            "memory_bandwidth: 7928064000000",
            "l2_cache_size: 135528448",
            "cuda_compute_capability { major: 10 minor: 0 feature_extension: "
            "ACCELERATED_FEATURES }",
        ):
            with self.subTest(line):
                self.assertEqual(text.count(f"\n  {line}\n"), 1)

    def test_braces_balance(self):
        text = target_text(GB200)
        self.assertEqual(text.count("{"), text.count("}"))

    def test_memory_can_be_any_budget(self):
        text = target_text(GB200, memory_bytes=1 << 30)
        self.assertIn("\n  device_memory_size: 1073741824\n", text)
        self.assertIn("with 1073741824B RAM", text)
        self.assertNotIn("197897748480", text)

    def test_matrix_rates_give_the_dense_peak(self):
        """cores x units x operations x 2 x clock, in TFLOP/s, beside the published figure."""
        h100 = dataclasses.replace(
            GB200, compute_capability="9.0", core_count=132, clock_ghz=1.98,
            matrix_clock_ghz=1.8295201)  # fmt: skip
        a100 = dataclasses.replace(
            GB200, compute_capability="8.0", core_count=108, clock_ghz=1.41,
            matrix_clock_ghz=1.41)  # fmt: skip
        bf16, f8, f64 = 16, 20, 12
        rows = [
            ("h100 bf16", h100, bf16, 989.4),
            ("h100 f8", h100, f8, 1978.9),
            ("h100 f64", h100, f64, 66.9),
            ("a100 bf16", a100, bf16, 311.9),
            ("gb200 bf16", GB200, bf16, 2398.1),
        ]
        for name, gpu, key, published in rows:
            with self.subTest(name):
                clock, units, operations = rates(target_text(gpu), "matrix")[key]
                peak = gpu.core_count * units * operations * 2 * float(clock) / 1e3
                self.assertAlmostEqual(peak / published, 1, delta=0.001)

    def test_scalar_rates(self):
        self.assertEqual(
            rates(target_text(GB200), "scalar"),
            {4: ("2.062", 64, 1), 8: ("2.062", 64, 1), 11: ("2.062", 128, 1),
             12: ("2.062", 64, 1), 10: ("2.062", 128, 1), 16: ("2.062", 128, 1)},
        )  # fmt: skip

    def test_an_unknown_generation_is_refused(self):
        with self.assertRaises(UserError) as caught:
            target_text(dataclasses.replace(GB200, compute_capability="7.5"))
        self.assertEqual(
            str(caught.exception),
            "compute capability 7.5 of gb200 is not described; "
            "described are 8.0, 9.0, 10.0, 10.3, 10.7, 12.0",
        )


class MemoryFraction(unittest.TestCase):
    def test_xla_then_starts_from_the_pool_of_a_live_run(self):
        for hbm in (197897748480, 84942979072, 10**9 + 7):
            for fraction in (0.75, 0.8, 0.9, 1.0, 0.333):
                with self.subTest(hbm=hbm, fraction=fraction):
                    size = memory_size_for_fraction(hbm, fraction)
                    pool = int(hbm * fraction)
                    self.assertEqual(size * AHEAD_OF_TIME_PERCENT // 100, pool)
                    self.assertLess((size - 1) * AHEAD_OF_TIME_PERCENT // 100, pool)

    def test_the_default_of_xla_is_the_real_size(self):
        self.assertEqual(memory_size_for_fraction(GB200.hbm_bytes, 0.8), GB200.hbm_bytes)

    def test_out_of_range(self):
        for fraction in (0, -1, 1.01, float("nan")):
            with self.subTest(fraction=fraction), self.assertRaises(UserError):
                memory_size_for_fraction(GB200.hbm_bytes, fraction)


class Profile(unittest.TestCase):
    def test_read(self):
        self.assertEqual(gpu_from_profile(profile()), GB200)

    def test_units(self):
        gpu = gpu_from_profile(
            profile(hbm_capacity=figure("80 GiB"), hbm_bandwidth=figure("3.35 TB/s"))
        )
        self.assertEqual(gpu.hbm_bytes, 80 << 30)
        self.assertEqual(gpu.hbm_bytes_per_second, 3350000000000)

    def test_without_a_matrix_clock_the_clock_holds(self):
        self.assertEqual(gpu_from_profile(profile(matrix_clock=None)).matrix_clock_ghz, 2.062)

    def test_refused(self):
        rows = [
            ({"sm_count": None}, "'device.sm_count' needs a 'value', for example \"152\""),
            ({"sm_count": figure("152 GHz")}, "'device.sm_count' needs"),
            ({"clock": figure("2.062")}, "'device.clock' needs a 'value', for example"),
            ({"clock": figure("2.062 GB")}, "'device.clock' needs"),
            ({"clock": "2.062 GHz"}, "'device.clock' needs"),
            ({"clock": figure("-1 GHz")}, "'device.clock' needs"),
            ({"clock": figure("nan GHz")}, "'device.clock' needs"),
            ({"hbm_capacity": figure("8 GB/s")}, "'device.hbm_capacity' needs"),
            ({"hbm_bandwidth": figure("8 GB")}, "'device.hbm_bandwidth' needs"),
            ({"hbm_bandwidth": figure(True)}, "'device.hbm_bandwidth' needs"),
            ({"compute_capability": 10.0}, "'device.compute_capability' needs a text in quotes"),
        ]
        for changes, message in rows:
            with self.subTest(changes), self.assertRaises(UserError) as caught:
                gpu_from_profile(profile(**changes), "p.yaml")
            self.assertIn("p.yaml: " + message, str(caught.exception))
            self.assertEqual(caught.exception.exit_code, 3)

    def test_no_profile_at_all(self):
        for document in (None, [], "text", {}, {"device": 3}):
            with self.subTest(document), self.assertRaises(UserError) as caught:
                gpu_from_profile(document, "p.yaml")
            self.assertEqual(
                str(caught.exception), "p.yaml is no hardware profile: it has no 'device'"
            )

    def test_find(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            folders = [Path(first), Path(second)]
            for path in (folders[0] / "gb200.yaml", folders[1] / "gb200.yaml",
                         folders[1] / "h100.yaml"):  # fmt: skip
                path.write_text("")
            self.assertEqual(find_profile("gb200", folders), folders[0] / "gb200.yaml")
            self.assertEqual(find_profile("h100", folders), folders[1] / "h100.yaml")
            self.assertEqual(find_profile(f"{second}/h100.yaml", []), folders[1] / "h100.yaml")
            self.assertEqual(find_profile(folders[1] / "h100.yaml"), folders[1] / "h100.yaml")
            with self.assertRaises(UserError) as caught:
                find_profile("h1000", folders)
            self.assertEqual(
                str(caught.exception),
                f"there is no hardware profile 'h1000' in {first}, {second}; there are gb200, h100",
            )
            with self.assertRaises(UserError):
                find_profile(f"{first}/h1000.yaml", folders)

    def test_the_variable_comes_before_the_own_profiles(self):
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "gb200.yaml").write_text("")
            with mock.patch.dict("os.environ", {"SPILLWAY_HW_PROFILES": f":{name}"}):
                self.assertEqual(find_profile("gb200"), Path(name) / "gb200.yaml")
                self.assertEqual(find_profile("h100"), PROFILES / "h100.yaml")

    def test_the_own_profiles_are_the_repositorys(self):
        repository = ROOT / "hw_profiles"
        self.assertEqual(
            {path.name: path.read_text() for path in PROFILES.glob("*.yaml")},
            {path.name: path.read_text() for path in repository.glob("*.yaml")},
        )

    @needs_yaml
    def test_broken_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "p.yaml"
            for data in (b"device: [", b"\xff\xfe\x00", b""):
                path.write_bytes(data)
                with self.subTest(data), self.assertRaises(UserError) as caught:
                    read_profile(path)
                self.assertIn("p.yaml", str(caught.exception))

    @needs_yaml
    def test_every_profile_of_the_repository_gives_a_target(self):
        paths = sorted((ROOT / "hw_profiles").glob("*.yaml"))
        if not paths:
            self.skipTest("hw_profiles/ holds no profile yet")
        for path in paths:
            with self.subTest(path.stem):
                gpu = read_profile(path)
                self.assertEqual(gpu.id, path.stem)
                self.assertIn(f'name: "{gpu.xla_name}"', target_text(gpu))


if __name__ == "__main__":
    unittest.main()
