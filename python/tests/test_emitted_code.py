"""The Python that `spillway plan` prints runs, and does what the plan says. CPU-only JAX does."""

import contextlib
import io
import os
import re
import subprocess
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

from built import ROOT, find_spillway

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import spillway.jax as sj

DUMP = ROOT / "examples/jax/dumps/keep"
SPILLWAY = find_spillway()
needs_jax = unittest.skipUnless(
    find_spec("jax") and find_spec("yaml"), "JAX and PyYAML are not installed: pip install them"
)
needs_spillway = unittest.skipUnless(SPILLWAY, "no spillway binary: see SPILLWAY")


def ask(*arguments: str) -> str:
    run = subprocess.run([SPILLWAY, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode <= 1, run.stderr
    return run.stdout


@needs_jax
@needs_spillway
class Policies(unittest.TestCase):
    """Each choice once: the expression, and the plan file through `spillway.jax.policy`."""

    POLICY = {
        "decoder_layer_input": "keep",
        "query_proj": "keep",
        "key_proj": "offload",
        "value_proj": "offload",
        "mlpwi_0": "recompute",
        "mlpwi_1": "recompute",
    }

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.plan = Path(temporary.name) / "plan.yaml"
        sets = [word for name, choice in cls.POLICY.items() for word in ("--set", f"{name}={choice}")]
        ask("whatif", str(DUMP), "--names", str(DUMP / "names.json"), "--hw", "gb200", *sets,
            "--out", str(cls.plan))  # fmt: skip

    def found(self, policy) -> dict[str, str]:
        """What becomes of each name in a layer whose tensors are told apart by their lengths."""
        import jax
        import jax.numpy as jnp
        from jax.ad_checkpoint import checkpoint_name, print_saved_residuals

        def layer(x):
            for number, name in enumerate(self.POLICY):
                x = jnp.sum(jnp.sin(checkpoint_name(jnp.sin(x + jnp.ones(number + 2)), name)))
            return x

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            print_saved_residuals(jax.checkpoint(layer, policy=policy), 1.0)
        choices = dict.fromkeys(self.POLICY, "recompute")
        for place, length in re.findall(r"f32(<host>)?\[(\d+)\]", out.getvalue()):
            choices[list(self.POLICY)[int(length) - 2]] = "offload" if place else "keep"
        return choices

    def test_expression(self):
        import jax
        import yaml

        expression = yaml.safe_load(self.plan.read_text())["jax_policy"]
        self.assertEqual(self.found(eval(expression, {"jax": jax})), self.POLICY)

    def test_plan_file(self):
        self.assertEqual(self.found(sj.policy(self.plan, list(self.POLICY))), self.POLICY)


@needs_jax
@needs_spillway
class State(unittest.TestCase):
    """A step whose optimizer state lives in pinned host memory, by the code that is printed."""

    def test_state(self):
        import jax
        import jax.numpy as jnp

        with tempfile.TemporaryDirectory() as folder:
            plan = Path(folder) / "plan.yaml"
            ask("whatif", str(DUMP), "--names", str(DUMP / "names.json"), "--hw", "gb200",
                "--set", "optimizer=offload", "--set", "params=offload", "--out",
                str(plan))  # fmt: skip
            import yaml

            document = yaml.safe_load(plan.read_text())
        self.assertEqual(document["maxtext"]["optimizer_memory_host_offload"], "true")
        self.assertEqual(document["maxtext"]["parameter_memory_host_offload"], "true")
        emitted: dict = {}
        exec(document["jax_state"], emitted)
        to_pinned_host, to_device = emitted["to_pinned_host"], emitted["to_device"]

        def loss(params, x):
            @jax.checkpoint
            def layer(x, weights):
                return jnp.tanh(x @ to_device(weights)), None

            return jnp.sum(jax.lax.scan(layer, x, params)[0] ** 2)

        def update(params, opt, x):
            grads = jax.grad(loss)(params, x)
            grads, params = to_device((grads, params))
            opt = 0.9 * to_device(opt) + 0.1 * grads
            return params - 0.1 * opt, opt

        params, opt, x = jnp.full((3, 4, 4), 0.1), jnp.zeros((3, 4, 4)), jnp.ones((2, 4))
        expected = jax.jit(update)(params, opt, x)
        params, opt = to_pinned_host(params), to_pinned_host(opt)
        shardings = (params.sharding, opt.sharding)
        step = jax.jit(update, donate_argnums=(0, 1), out_shardings=shardings)
        for result, wanted in zip(step(params, opt, x), expected):
            self.assertEqual(result.sharding.memory_kind, "pinned_host")
            self.assertTrue(jnp.allclose(jax.device_get(result), wanted))


if __name__ == "__main__":
    unittest.main()
