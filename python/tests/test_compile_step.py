"""examples/jax/compile_step.py as a command: its mistakes, and one real compile where JAX is."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "jax" / "compile_step.py"
sys.path.insert(0, str(ROOT / "python"))

sys.path.insert(0, str(SCRIPT.parent))
from model_config import NAMES
from spillway.jax import policies, xla_dump

PROFILE = """\
id: testgpu
device:
  xla_name: "NVIDIA GB200"
  compute_capability: "10.0"
  sm_count: {value: 152}
  clock: {value: "2.062 GHz"}
  l2_capacity: {value: "135528448 B"}
  hbm_capacity: {value: "197897748480 B"}
  hbm_bandwidth: {value: "7928.064 GB/s"}
"""
SMALL = (
    "--layers=3 --d-model=256 --heads=4 --kv-heads=2 --head-dim=64 --ff=512 --vocab=1024 "
    "--batch=8 --seq=512 --loss-chunks=4"
).split()

needs_yaml = unittest.skipUnless(find_spec("yaml"), "PyYAML is not installed")
needs_compiler = unittest.skipUnless(
    find_spec("jax") and find_spec("jax_plugins") and find_spec("jax_plugins.xla_cuda13"),
    'JAX with its CUDA 13 plugin is not installed: pip install "jax[cuda13]"',
)


class CompileStep(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.profile = self.folder / "testgpu.yaml"
        self.profile.write_text(PROFILE)
        self.out = self.folder / "the out"  # a path with a blank

    def run_script(self, *args, **environment):
        return subprocess.run(
            [sys.executable, SCRIPT, "--out", self.out, *args],
            capture_output=True,
            text=True,
            env=os.environ | environment,
            check=False,
        )

    def refused(self, message, *args, code=2, **environment):
        """One line on stderr, nothing on stdout, no folder left behind."""
        done = self.run_script(*args, **environment)
        self.assertEqual(done.stderr, f"error: {message}\n")
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, code)
        self.assertFalse(self.out.exists())

    def test_help(self):
        done = self.run_script("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--policy", "--mem-fraction", "names: decoder_layer_input, query_proj"):
            self.assertIn(word, done.stdout)

    def test_policies_of_the_examples_in_the_help_are_policies(self):
        done = self.run_script("--help")
        texts = re.findall(r"--(?:policy|set) ([a-z_0-9]+=\S+)", done.stdout)
        self.assertGreaterEqual(len(texts), 3)
        for text in texts:
            with self.subTest(text):
                policies.complete_policy(policies.parse_policy([text]), NAMES)

    def test_sizes_that_clash(self):
        self.refused("batch (12) must be a multiple of devices (8)", "--batch=12")
        self.refused("heads (32) must be a multiple of kv_heads (5)", "--kv-heads=5")
        self.refused("head_dim (5) must be a multiple of 2", "--head-dim=5")
        self.refused("layers must be at least 1", "--layers=0")
        self.refused("--devices must be at least 1", "--devices=0")

    def test_unknown_name(self):
        self.refused(
            "the step has no checkpoint name 'query'; it has decoder_layer_input, query_proj, "
            "key_proj, value_proj, mlpwi_0, mlpwi_1",
            "--set=query=keep",
        )

    def test_a_plan_that_is_none(self):
        plan = self.folder / "plan.json"
        plan.write_text('{"best": {"policy": {"r0": "keep"}}}')
        self.refused(
            f"{plan} calls tensors r0, which no step knows: it was made without names. Give "
            "spillway plan the --names that names() or dump() wrote",
            f"--plan={plan}", code=3)  # fmt: skip

    def test_unknown_profile(self):
        done = self.run_script("--gpu=h1000")
        self.assertEqual(done.returncode, 2)
        self.assertIn("error: there is no hardware profile 'h1000' in ", done.stderr)

    @needs_yaml
    def test_memory_fraction(self):
        self.refused(
            "a memory fraction of 1.5 is not above 0 and at most 1",
            f"--gpu={self.profile}", "--mem-fraction=1.5")  # fmt: skip

    @needs_yaml
    def test_folder_in_use(self):
        self.out.mkdir()
        (self.out / "old").touch()
        done = self.run_script(f"--gpu={self.profile}")
        self.assertEqual(
            done.stderr, f"error: {self.out} is no empty folder: name a new one, or clear it\n"
        )

    @needs_yaml
    def test_jax_missing(self):
        (self.folder / "jax.py").write_text("raise ImportError('no jax here')")
        self.refused(
            "compiling needs JAX with its CUDA 13 plugin (no jax here): "
            'pip install "jax[cuda13]". Reading dumps needs neither',
            f"--gpu={self.profile}", code=3, PYTHONPATH=str(self.folder))  # fmt: skip

    @needs_yaml
    @needs_compiler
    def test_compile(self):
        plan = self.folder / "plan.json"
        plan.write_text(
            '{"fits": false, "best": {"policy": '
            '{"mlpwi_0": "offload", "query_proj": "offload", "optimizer": "keep"}}}'
        )
        done = self.run_script(
            f"--gpu={self.profile}", *SMALL, "--attention=xla", f"--plan={plan}",
            "--set=query_proj=keep", "--mem-fraction=0.9", "--pack=lean",
            XLA_FLAGS="--no_flag_of_xla")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        truth = json.loads((self.out / "truth.json").read_text())
        tokens_per_device = 8 * 512 // 8
        self.assertEqual(truth["allocations"]["host_bytes"], 3 * tokens_per_device * 512 * 2)
        self.assertEqual(xla_dump.allocation_summary(self.out), truth["allocations"])
        self.assertIn("note: this plan does not fit its budget;", done.stderr)
        self.assertEqual(truth["policy"]["mlpwi_0"], "offload")
        self.assertEqual(truth["policy"]["query_proj"], "keep")
        self.assertEqual(truth["policy"]["mlpwi_1"], "recompute")
        self.assertEqual(
            truth["target_device_memory_size_bytes"] * 80 // 100, int(197897748480 * 0.9)
        )
        names = json.loads((self.out / "names.json").read_text())
        self.assertEqual(names["names"][1]["shape"], [8, 512, 4, 64])
        self.assertEqual(names["names"][1]["path"], "scan")

    @needs_yaml
    @needs_compiler
    def test_what_cudnn_does_not_take(self):
        done = self.run_script(f"--gpu={self.profile}", *SMALL, "--head-dim=12")
        self.assertEqual(done.returncode, 2)
        self.assertIn("error: cuDNN's attention does not take this step; ", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
