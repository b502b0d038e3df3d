"""The four functions on real JAX, with its CPU alone: names, policy, inspect, and saving all names.

The step is a stack of two matrix products a layer, scanned or unrolled, on 4 pretended devices.
"""

import os
import subprocess
import sys
import unittest
import warnings
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests")]

import spillway.jax as sj
from built import find_spillway
from spillway.jax import tracing

needs_jax = unittest.skipUnless(find_spec("jax"), "JAX is not installed: pip install jax")
LAYERS, ROWS, WIDTH, INNER = 3, 8, 16, 32


@needs_jax
class LiveStep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax
        import jax.numpy as jnp

        cls.jax, cls.jnp = jax, jnp

    def make(self, policy=None, unroll=False, checkpoint=True):
        """A gradient step over (weights, x). `inner` is named, and so is the layer's input."""
        jax, jnp = self.jax, self.jnp
        from jax.ad_checkpoint import checkpoint_name

        def layer(x, w):
            x = checkpoint_name(x, "layer_input")
            inner = checkpoint_name(jnp.sin(x @ w[0]), "inner")
            return x + jnp.sin(inner) @ w[1], None

        body = jax.checkpoint(layer, policy=policy) if checkpoint else layer

        def loss(weights, x):
            if unroll:
                for i in range(LAYERS):
                    x, _ = body(x, jax.tree.map(lambda w: w[i], weights))
            else:
                x, _ = jax.lax.scan(body, x, weights)
            return jnp.sum(x)

        def train(weights, x):
            return jax.grad(loss)(weights, x)

        return train

    def arguments(self, sharded=0):
        jax, jnp = self.jax, self.jnp
        split = whole = None
        if sharded:
            mesh = jax.sharding.AbstractMesh(
                (sharded,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,)
            )
            split, whole = (
                jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
                for axes in (("fsdp",), ())
            )
        shape = lambda dims, sharding: jax.ShapeDtypeStruct(dims, jnp.float32, sharding=sharding)
        weights = (shape((LAYERS, WIDTH, INNER), whole), shape((LAYERS, INNER, WIDTH), whole))
        return weights, shape((ROWS, WIDTH), split)

    def saved(self, step) -> int:
        """How many arrays of `inner`'s shape, stacked, the forward scan hands to backward."""
        return self.saved_in(self.jax.jit(step).trace(*self.arguments()).jaxpr)

    def saved_in(self, jaxpr) -> int:
        forward = next(e for e in tracing.equations(jaxpr) if e.primitive.name == "scan")
        return sum(out.aval.shape == (LAYERS, ROWS, INNER) for out in forward.outvars)


class Names(LiveStep):
    def test_functions_jitted_or_not_and_traced(self):
        step = self.make()
        found = [
            sj.names(step, *self.arguments()),
            sj.names(self.jax.jit(step), *self.arguments()),
            sj.names(self.jax.jit(step).trace(*self.arguments())),
        ]
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        names = found[0]["names"]
        self.assertEqual([entry["name"] for entry in names], ["layer_input", "inner"])
        self.assertEqual(names[1]["shape"], [ROWS, INNER])
        self.assertEqual((names[1]["path"], names[1]["layers"]), ("scan", LAYERS))
        self.assertRegex(names[1]["source"], r"test_live_step\.py:\d+$")
        self.assertEqual(found[0]["schema"], "spillway.names/1")
        self.assertEqual(found[0]["devices"], 1)

    def test_example_arrays_and_keyword_arguments(self):
        weights, x = self.jax.tree.map(
            lambda leaf: self.jnp.zeros(leaf.shape, leaf.dtype), self.arguments()
        )
        found = sj.names(self.make(unroll=True), weights, kwargs={"x": x})
        self.assertEqual([each["layers"] for each in found["names"]], [1, 1])

    def test_devices_are_those_of_the_shardings(self):
        self.assertEqual(sj.names(self.make(), *self.arguments(4))["devices"], 4)
        self.assertEqual(sj.names(self.make(), *self.arguments(), devices=16)["devices"], 16)

    def test_devices_of_a_mesh_inside_the_step(self):
        jax = self.jax
        sharding = self.arguments(8)[1].sharding

        def step(weights, x):
            return self.make()(weights, jax.lax.with_sharding_constraint(x, sharding))

        self.assertEqual(sj.names(step, *self.arguments())["devices"], 8)

    def test_what_is_no_step(self):
        for step, args, message in (
            (3, (), "3 is no step: give a function, jitted or not, and its arguments"),
            (self.jax.jit(self.make()).trace(*self.arguments()), (1,),
             "the step is traced already, so it takes no more arguments"),
        ):  # fmt: skip
            with self.assertRaises(sj.UserError) as caught:
                sj.names(step, *args)
            self.assertEqual(str(caught.exception), message)


class Policy(LiveStep):
    def test_a_choice_decides_what_is_saved(self):
        rows = [("keep", {"inner": "keep"}, 1), ("recompute", {"inner": "recompute"}, 0),
                ("nothing said", {}, 0)]  # fmt: skip
        for name, choices, count in rows:
            with self.subTest(name):
                self.assertEqual(self.saved(self.make(sj.policy(choices))), count)

    def test_offload_saves_on_the_host(self):
        step = self.make(sj.policy({"best": {"policy": {"inner": "offload"}}}))
        jaxpr = self.jax.jit(step).trace(*self.arguments()).jaxpr
        forward = next(e for e in tracing.equations(jaxpr) if e.primitive.name == "scan")
        host = [out.aval for out in forward.outvars
                if str(out.aval.memory_space).lower().endswith("host")]  # fmt: skip
        self.assertEqual([aval.shape for aval in host], [(LAYERS, ROWS, INNER)])

    def test_an_unknown_name_is_an_error_if_the_names_are_given(self):
        names = sj.names(self.make(), *self.arguments())
        sj.policy({"inner": "keep"}, names)
        with self.assertRaises(sj.UserError) as caught:
            sj.policy({"iner": "offload"}, names)
        self.assertEqual(
            str(caught.exception),
            "the step has no checkpoint name 'iner'; it has layer_input, inner",
        )

    def test_warnings(self):
        with self.assertWarnsRegex(UserWarning, "does not fit its budget"):
            sj.policy({"policy": {"inner": "keep"}, "fits": False})
        with self.assertWarnsRegex(UserWarning, "'optimizer' on the host is not part"):
            sj.policy({"inner": "keep", "optimizer": "offload"}, ["inner"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sj.policy({"inner": "keep", "optimizer": "keep"}, ["inner"])


class EveryNameSaved(LiveStep):
    def traced(self, step):
        with tracing.every_name_saved():
            return self.jax.jit(step).trace(*self.arguments()).jaxpr

    def test_whatever_the_policy(self):
        policies = {
            "none": None,
            "drops it": sj.policy({"inner": "recompute"}),
            "offloads it": sj.policy({"inner": "offload"}),
            "saves it": sj.policy({"inner": "keep"}),
        }
        for name, policy in policies.items():
            with self.subTest(name):
                step = self.make(policy)
                jaxpr = self.traced(step)
                tracing.check_every_name_saved(jaxpr)
                self.assertEqual(self.saved_in(jaxpr), 1)

    def test_what_a_policy_saves_besides_stays_saved(self):
        dots = self.jax.checkpoint_policies.dots_saveable
        self.assertEqual(self.saved(self.make(dots)), 1)  # x @ w[0], not named
        self.assertEqual(self.saved_in(self.traced(self.make(dots))), 2)

    def test_traces_before_and_after_are_untouched(self):
        step = self.jax.jit(self.make())
        saved = lambda: self.saved_in(step.trace(*self.arguments()).jaxpr)
        self.assertEqual(saved(), 0)
        with tracing.every_name_saved():
            self.assertEqual(saved(), 1)
        self.assertEqual(saved(), 0)

    def test_a_policy_that_escaped_is_found(self):
        jaxpr = self.jax.jit(self.make()).trace(*self.arguments()).jaxpr
        with self.assertRaises(sj.UserError) as caught:
            tracing.check_every_name_saved(jaxpr)
        self.assertIn("cannot be replaced", str(caught.exception))

    def test_the_new_remat_of_jax(self):
        if not hasattr(self.jax.config, "jax_remat3"):
            self.skipTest("this JAX has no jax_remat3")
        self.jax.config.update("jax_remat3", True)
        self.addCleanup(self.jax.config.update, "jax_remat3", False)
        step = self.make(sj.policy({"inner": "recompute"}))
        self.assertEqual(self.saved(step), 0)
        self.assertEqual(self.saved_in(self.traced(step)), 1)


class Inspect(LiveStep):
    def test_a_compiled_step(self):
        spillway = find_spillway()
        if not spillway:
            self.skipTest("there is no spillway binary: build it, or set SPILLWAY")
        step = self.make(sj.policy({"inner": "keep"}))
        compiled = self.jax.jit(step).lower(*self.arguments()).compile()
        found = sj.inspect(compiled, names=sj.names(step, *self.arguments()), spillway=spillway)
        stats = compiled.memory_analysis()
        self.assertEqual(found["memory"]["argument_bytes"], stats.argument_size_in_bytes)
        self.assertEqual(found["memory"]["argument_bytes"],
                         4 * (2 * LAYERS * WIDTH * INNER + ROWS * WIDTH))  # fmt: skip
        self.assertEqual(found["program"]["name"], "jit_train")
        self.assertIn(["inner"], [each["names"] for each in found["residuals"]])
        self.assertTrue(repr(found).startswith("jit_train, 1 device(s), one of them:\n  HBM "))


class Importing(unittest.TestCase):
    def test_no_jax_is_imported(self):
        """So that XLA_FLAGS can be set after importing this package."""
        done = subprocess.run(
            [sys.executable, "-c",
             "import sys, spillway.jax as sj; print('jax' in sys.modules, sorted(sj.__all__))"],
            cwd=ROOT / "python", capture_output=True, text=True, check=True)  # fmt: skip
        self.assertEqual(done.stdout, "False ['UserError', 'dump', 'inspect', 'names', 'policy']\n")


del LiveStep  # only its subclasses are tests

if __name__ == "__main__":
    unittest.main()
