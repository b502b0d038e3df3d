"""`dump`: what is refused before XLA is asked, and real compiles where JAX can compile for GPUs."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests")]

import spillway.jax as sj
from built import find_spillway
from spillway.jax import ahead_of_time, aot, xla_dump

needs_yaml = unittest.skipUnless(find_spec("yaml"), "PyYAML is not installed")
needs_compiler = unittest.skipUnless(
    find_spec("yaml") and find_spec("jax") and find_spec("jax_plugins")
    and find_spec("jax_plugins.xla_cuda13"),
    'JAX with its CUDA 13 plugin is not installed: pip install "jax[cuda13]"',
)  # fmt: skip
LAYERS, BATCH, WIDTH, INNER, DEVICES = 4, 64, 256, 512, 8


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "dump"


class Prepare(InFolder):
    @needs_yaml
    def test_prepared(self):
        request = ahead_of_time.prepare(self.folder, "gb200", mem_fraction=0.8)
        self.assertEqual(request.folder, self.folder.resolve())
        self.assertEqual(request.gpu.id, "gb200")
        self.assertEqual(request.memory_bytes, request.gpu.hbm_bytes)
        self.assertIn("--xla_disable_hlo_passes=rematerialization", request.xla_flags)
        self.assertFalse(self.folder.exists())

    @needs_yaml
    def test_refused(self):
        rows = [
            ({"target": "gb2000"}, "there is no hardware profile 'gb2000' in "),
            ({"devices": 0}, "devices must be at least 1"),
            ({"mem_fraction": 2}, "a memory fraction of 2 is not above 0 and at most 1"),
            ({"xla_flags": "xla_a"}, "'xla_a' is no XLA flag"),
        ]
        for options, message in rows:
            with self.subTest(message), self.assertRaises(sj.UserError) as caught:
                ahead_of_time.prepare(self.folder, **options)
            self.assertTrue(str(caught.exception).startswith(message), str(caught.exception))

    @needs_yaml
    def test_a_folder_in_use(self):
        self.folder.mkdir()
        ahead_of_time.prepare(self.folder)  # empty
        (self.folder / "old").touch()
        for folder in (self.folder, self.folder / "old"):
            with self.subTest(folder), self.assertRaises(sj.UserError) as caught:
                ahead_of_time.prepare(folder)
            self.assertEqual(
                str(caught.exception),
                f"{folder.resolve()} is no empty folder: name a new one, or clear it",
            )

    def test_another_number_of_devices(self):
        ahead_of_time.check_devices(None, 1)
        ahead_of_time.check_devices(8, 8)
        with self.assertRaises(sj.UserError) as caught:
            ahead_of_time.check_devices(8, 1)
        self.assertTrue(
            str(caught.exception).startswith("the step is for 1 device(s), not 8: its arguments'")
        )
        self.assertIn('jax.sharding.AbstractMesh((8,), ("fsdp",), ', str(caught.exception))


@needs_compiler
class Compiled(InFolder):
    @classmethod
    def setUpClass(cls):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax

        cls.jax = jax

    def abstract_mesh(self):
        auto = (self.jax.sharding.AxisType.Auto,)
        return self.jax.sharding.AbstractMesh((DEVICES,), ("fsdp",), axis_types=auto)

    def make(self, policy, mesh, weights_on="device", attention=False):
        """A scanned MLP's gradient step and its arguments, the batch split over the mesh."""
        jax, jnp = self.jax, self.jax.numpy
        from jax.ad_checkpoint import checkpoint_name

        def layer(x, w):
            if weights_on == "pinned_host":
                w = jax.device_put(w, jax.memory.Space.Device)
            if attention:
                heads = x.reshape(x.shape[0], -1, 2, 64)
                mixed = jax.nn.dot_product_attention(heads, heads, heads, implementation="cudnn")
                x = x + mixed.reshape(x.shape)
            inner = checkpoint_name(jnp.tanh(x @ w["in"]), "inner")
            return x + inner @ w["out"], None

        body = jax.checkpoint(layer, policy=policy, prevent_cse=False)

        def train_step(weights, x):
            loss = lambda weights: jnp.mean(jax.lax.scan(body, x, weights)[0] ** 2)
            return jax.grad(lambda w: loss(w).astype(jnp.float32))(weights)

        def shape(dims, *axes, kind=None):
            spec = jax.sharding.PartitionSpec(*axes)
            sharding = mesh and jax.sharding.NamedSharding(mesh, spec, memory_kind=kind)
            return jax.ShapeDtypeStruct(dims, jnp.bfloat16, sharding=sharding)

        weights = {
            "in": shape((LAYERS, WIDTH, INNER), kind=weights_on if mesh else None),
            "out": shape((LAYERS, INNER, WIDTH), kind=weights_on if mesh else None),
        }
        x = shape((BATCH, 128, WIDTH) if attention else (BATCH, WIDTH), "fsdp")
        return train_step, weights, x

    def host_bytes(self, dump) -> int:
        return xla_dump.allocation_summary(dump.folder)["host_bytes"]

    def program(self, dump) -> str:
        return xla_dump.find_file(dump.folder, "after_optimizations.txt").read_text()

    def test_meshes_of_no_devices_of_live_ones_and_none(self):
        """Of the mesh only its size matters, and the host holds what is offloaded, nothing else."""
        jax = self.jax
        live = jax.sharding.Mesh(jax.devices("cpu")[:1], ("fsdp",))
        for name, mesh, devices in (
            ("abstract", self.abstract_mesh(), DEVICES), ("live", live, 1), ("none", None, 1),
        ):  # fmt: skip
            with self.subTest(name):
                step = self.make(sj.policy({"inner": "offload"}), mesh)
                dump = sj.dump(*step, folder=self.folder / name, devices=devices)
                self.assertEqual(dump.devices, devices)
                self.assertEqual(self.host_bytes(dump), LAYERS * BATCH // devices * INNER * 2)
                self.assertEqual(json.loads(dump.names_file.read_text()), dump.names)
                self.assertEqual(dump.names["devices"], devices)
                self.assertEqual([each["name"] for each in dump.names["names"]], ["inner"])
                program = self.program(dump)
                self.assertTrue(program.startswith("HloModule jit_train_step, is_scheduled=true"))
                self.assertEqual(f"num_partitions={DEVICES}" in program, devices == DEVICES)
                self.assertFalse("spillway/jax/" in program, "a frame of ours is in the program")

    def test_save_all(self):
        for name, save_all, host in (("offloaded", False, True), ("kept", True, False)):
            with self.subTest(name):
                step = self.make(sj.policy({"inner": "offload"}), self.abstract_mesh())
                dump = sj.dump(*step, folder=self.folder / name, save_all=save_all)
                self.assertEqual(self.host_bytes(dump) > 0, host)
                stack = f"bf16[{LAYERS},{BATCH // DEVICES},{INNER}]"
                program = self.program(dump)
                self.assertTrue(stack in program)
                self.assertEqual("S(5)" in program, host)

    def test_arguments_in_host_memory_and_attention_that_asks_for_devices(self):
        """cuDNN's attention is not lowered for an abstract mesh; `memory_kind` survives that."""
        policy = sj.policy({"inner": "offload"})
        for attention in (False, True):
            for kind in ("device", "pinned_host"):
                with self.subTest(attention=attention, weights_on=kind):
                    step = self.make(policy, self.abstract_mesh(), kind, attention)
                    dump = sj.dump(*step, folder=self.folder / f"{attention} {kind}",
                                   xla_flags="--xla_gpu_enable_triton_gemm=false")  # fmt: skip
                    self.assertEqual("__cudnn$fmha" in self.program(dump), attention)
                    weights = LAYERS * 2 * WIDTH * INNER * 2
                    self.assertEqual(dump.memory_analysis["host_argument_size_in_bytes"],
                                     weights if kind == "pinned_host" else 0)  # fmt: skip
                    rows = BATCH // DEVICES * (128 if attention else 1)
                    self.assertEqual(dump.memory_analysis["host_temp_size_in_bytes"],
                                     LAYERS * rows * INNER * 2)  # fmt: skip

    def test_refused_by_xla_or_for_its_devices(self):
        step = self.make(sj.policy({}), None)
        rows = [
            ({"xla_flags": "--xla_no_such_flag=1"},
             "XLA did not compile the step: INVALID_ARGUMENT: No such compile option: "
             "'xla_no_such_flag'", 3),
            ({"devices": 8}, "the step is for 1 device(s), not 8: ", 2),
        ]  # fmt: skip
        for options, message, code in rows:
            with self.subTest(message), self.assertRaises(sj.UserError) as caught:
                sj.dump(*step, folder=self.folder, **options)
            self.assertTrue(str(caught.exception).startswith(message), str(caught.exception))
            self.assertEqual(caught.exception.exit_code, code)
            self.assertFalse(self.folder.exists())

    def test_a_compiled_step_is_inspected_as_its_dump_is(self):
        """What JAX's own `compile` makes of it, on a mesh of compile-only devices."""
        jax, spillway = self.jax, self.spillway()
        import numpy as np

        request = ahead_of_time.prepare(self.folder)
        devices = np.array(aot.make_devices(request.target_text, DEVICES))
        auto = (jax.sharding.AxisType.Auto,)
        policy = sj.policy({"inner": "offload"})
        step, *args = self.make(policy, jax.sharding.Mesh(devices, ("fsdp",), axis_types=auto))
        lowered = jax.jit(step).trace(*args).lower(lowering_platforms=("cuda",))
        compiled = lowered.compile(xla_dump.compiler_options(request.xla_flags))
        dump = sj.dump(*self.make(policy, self.abstract_mesh()), folder=self.folder)
        names = sj.names(step, *args)
        self.assertEqual(names, dump.names)
        of_step = sj.inspect(compiled, names, hw="gb200", spillway=spillway)
        of_dump = sj.inspect(dump, hw="gb200", spillway=spillway)
        for part in ("memory", "transfers"):
            self.assertEqual(of_step[part], of_dump[part])
        self.assertEqual(repr(of_step), repr(of_dump))

    def test_a_step_that_calls_back_into_python(self):
        jax, jnp = self.jax, self.jax.numpy

        def step(x):
            jax.debug.print("{}", x[0])
            return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((4,), jnp.float32), x)

        with self.assertRaises(sj.UserError) as caught:
            sj.dump(step, jax.ShapeDtypeStruct((4,), jnp.float32), folder=self.folder)
        self.assertRegex(
            str(caught.exception),
            r"the step calls back into Python \(debug_\w+ at \S+test_ahead_of_time.py:\d+, "
            r"pure_callback at \S+test_ahead_of_time.py:\d+\), which a GPU that is not there "
            r"cannot: leave that out of the step for the dump",
        )
        self.assertFalse(self.folder.exists())

    def spillway(self) -> str:
        found = find_spillway()
        if not found:
            self.skipTest("there is no spillway binary: build it, or set SPILLWAY")
        return found

    def test_a_dump_planned_and_compiled_again(self):
        """The loop a user goes: names saved, planned, compiled with the plan."""
        spillway = self.spillway()
        make = lambda policy: self.make(policy, self.abstract_mesh())
        dump = sj.dump(*make(None), folder=self.folder / "all", save_all=True)
        command = [spillway, "plan", dump.folder, "--names", dump.names_file, "--hw", "gb200",
                   "--json"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        plan = json.loads(done.stdout)
        self.assertEqual(list(plan["best"]["policy"]), ["inner"])
        kept = sj.inspect(dump, spillway=spillway)
        self.assertEqual([each["names"] for each in kept["residuals"]].count(["inner"]), 1)
        self.assertEqual(kept["memory"]["host_temp_bytes"], 0)
        again = sj.dump(*make(sj.policy(plan, dump.names)), folder=self.folder / "planned")
        offloads = plan["best"]["policy"]["inner"] == "offload"
        self.assertEqual(self.host_bytes(again) > 0, offloads)
        found = sj.inspect(again, spillway=spillway)["memory"]["host_temp_bytes"]
        self.assertEqual(found, self.host_bytes(again))


if __name__ == "__main__":
    unittest.main()
