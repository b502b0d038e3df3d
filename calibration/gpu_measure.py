#!/usr/bin/env python3
"""gpu_measure.py OUT [--small] [case ...]: measures real offloaded training steps on the one GPU of this machine.

A Llama-like step (scan over layers, GQA, SwiGLU, AdamW, bf16, random data) is run once per case, each in a process of its own:
  save       q/k/v and the two MLP inputs kept on the device       offload      the same names in pinned host memory
  recompute  none of them saved                                    offload_lhs0 offload with --xla_gpu_enable_latency_hiding_scheduler=false
  offload_pho1  offload with pipelined host offloading
Written to OUT as each case ends: measured.jsonl (step times in seconds, compile seconds, device and host bytes from memory_analysis, peak bytes in use,
shapes, versions, flags), and CASE.tar.gz: optimised HLO, buffer assignment, thunk sequence under XLA's names, and the profile of
two steps (left out above 3 MiB). calibration/compare_steps.py sets them against predictions.
Takes about a minute a case on an H200. Needs JAX with CUDA. --small is for trying the script itself anywhere.
"""
import glob, json, os, subprocess, sys, tarfile, tempfile, time

CASES = {"save": "", "offload": "", "recompute": "", "offload_lhs0": "--xla_gpu_enable_latency_hiding_scheduler=false",
         "offload_pho1": "--xla_gpu_enable_pipelined_host_offloading=true"}
NAMES = ["query_proj", "key_proj", "value_proj", "mlpwi_0", "mlpwi_1"]


def pack(target, members):
    """A gzipped tar of {name: path}."""
    with tarfile.open(target, "w:gz") as tar:
        for name, path in members.items():
            tar.add(path, name)
    return os.path.getsize(target)


def one(case, out, small):
    dump = tempfile.mkdtemp()
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={dump} --xla_dump_hlo_as_text {CASES[case]} {os.environ.get('EXTRA', '')}".strip()
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.90")
    os.environ.setdefault("XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", "100")
    import jax, jax.numpy as jnp, numpy as np
    from jax.ad_checkpoint import checkpoint_name

    L, D, H, K, HD, F, V, B, S = (16, 4096, 32, 8, 128, 14336, 32000, 8, 4096) if not small else (3, 64, 4, 2, 16, 128, 256, 2, 64)

    def norm(x, g):
        return (x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)).astype(x.dtype) * g

    def attention(q, k, v):
        kind = "cudnn" if jax.default_backend() == "gpu" else "xla"
        return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=kind)

    def layer(x, w):
        h = norm(x, w["n1"])
        q = checkpoint_name(jnp.einsum("bsd,dhk->bshk", h, w["q"]), "query_proj")
        k = checkpoint_name(jnp.einsum("bsd,dhk->bshk", h, w["k"]), "key_proj")
        v = checkpoint_name(jnp.einsum("bsd,dhk->bshk", h, w["v"]), "value_proj")
        x = x + jnp.einsum("bshk,hkd->bsd", attention(q, k, v), w["o"])
        h = norm(x, w["n2"])
        gate, up = checkpoint_name(h @ w["g"], "mlpwi_0"), checkpoint_name(h @ w["u"], "mlpwi_1")
        return x + (jax.nn.silu(gate) * up) @ w["d"], None

    saved, offloaded = (NAMES if case == "save" else []), (NAMES if case.startswith("offload") else [])
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=saved, names_which_can_be_offloaded=offloaded, offload_src="device", offload_dst="pinned_host")
    block = jax.checkpoint(layer, policy=policy, prevent_cse=False)

    def loss(p, tokens):
        x, _ = jax.lax.scan(block, p["emb"][tokens], p["layers"])
        x = norm(x, p["nf"])

        def chunk(total, part):  # the logits of one slice of the sequence at a time
            xs, ts = part
            logits = (xs @ p["head"]).astype(jnp.float32)
            return total + jnp.sum(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, ts[..., None], -1)[..., 0]), None

        parts = 8
        xs = x.reshape(B, parts, S // parts, D).swapaxes(0, 1)
        ts = jnp.roll(tokens, -1, 1).reshape(B, parts, S // parts).swapaxes(0, 1)
        return jax.lax.scan(jax.checkpoint(chunk), jnp.float32(0), (xs, ts))[0] / (B * S)

    def step(state, tokens):
        p, m, v, t = state
        value, g = jax.value_and_grad(loss)(p, tokens)
        t = t + 1
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b.astype(jnp.float32), m, g)
        v = jax.tree.map(lambda a, b: 0.95 * a + 0.05 * jnp.square(b.astype(jnp.float32)), v, g)
        p = jax.tree.map(lambda a, b, c: (a - 1e-4 * b / (jnp.sqrt(c) + 1e-8)).astype(a.dtype), p, m, v)
        return (p, m, v, t), value

    shapes = {"n1": (L, D), "n2": (L, D), "q": (L, D, H, HD), "k": (L, D, K, HD), "v": (L, D, K, HD), "o": (L, H, HD, D),
              "g": (L, D, F), "u": (L, D, F), "d": (L, F, D)}
    shapes = {"emb": (V, D), "head": (D, V), "nf": (D,), "layers": shapes}

    @jax.jit
    def init(key):
        leaves, tree = jax.tree.flatten(shapes, is_leaf=lambda s: isinstance(s, tuple))
        keys = jax.random.split(key, len(leaves))
        p = jax.tree.unflatten(tree, [jax.random.normal(k, s, jnp.bfloat16) * 0.02 + (len(s) <= 2 and s[-1] == D and s[0] in (L, D)) for k, s in zip(keys, leaves)])
        zero = jax.tree.map(lambda a: jnp.zeros(a.shape, jnp.float32), p)
        return p, zero, jax.tree.map(jnp.copy, zero), jnp.int32(0)

    state = init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (B, S), 0, V)
    start = time.perf_counter()
    compiled = jax.jit(step, donate_argnums=0).lower(state, tokens).compile()
    compile_seconds = time.perf_counter() - start
    times, value = [], None
    for i in range(3 + 8):
        start = time.perf_counter()
        state, value = compiled(state, tokens)
        jax.block_until_ready((state, value))
        times.append(time.perf_counter() - start)
    logs = tempfile.mkdtemp()
    with jax.profiler.trace(logs):
        for _ in range(2):
            state, value = compiled(state, tokens)
        jax.block_until_ready((state, value))
    memory = compiled.memory_analysis()
    device = jax.devices()[0]
    record = {"case": case, "device": device.device_kind, "jax": jax.__version__, "flags": CASES[case], "names": NAMES,
              "shape": dict(layers=L, d=D, heads=H, kv_heads=K, head_dim=HD, ff=F, vocab=V, batch=B, seq=S), "compile_seconds": compile_seconds,
              "step_seconds": times[3:], "warm_up_seconds": times[:3], "loss": float(value),
              "memory": {k: getattr(memory, k) for k in dir(memory) if k.endswith("_in_bytes")},
              "peak_bytes_in_use": (device.memory_stats() or {}).get("peak_bytes_in_use")}
    with open(os.path.join(out, "measured.jsonl"), "a") as f:
        f.write(json.dumps(record) + "\n")
    members = {}
    for pattern in ("*step*after_optimizations.txt", "*step*buffer-assignment.txt", "*step*thunk_sequence.txt"):
        found = sorted(glob.glob(os.path.join(dump, pattern)), key=os.path.getsize)
        if found:
            members[os.path.basename(found[-1])] = found[-1]
    profile = glob.glob(os.path.join(logs, "**", "*.xplane.pb"), recursive=True)[:1]
    target = os.path.join(out, f"{case}.tar.gz")
    if pack(target, members | ({"xplane.pb": profile[0]} if profile else {})) > 3 << 20:
        pack(target, members)
    print(f"{case}: {min(record['step_seconds']):.4f} s a step, compiled in {compile_seconds:.0f} s")


def main():
    words = [a for a in sys.argv[1:] if not a.startswith("--")]
    out, cases, small = words[0], words[1:] or list(CASES), "--small" in sys.argv
    os.makedirs(out, exist_ok=True)
    if "--one" in sys.argv:
        return one(cases[0], out, small)
    failed = []
    for case in cases:
        try:
            done = subprocess.run([sys.executable, __file__, out, case, "--one", *(["--small"] if small else [])], timeout=110)
            failed += [case] if done.returncode else []
        except subprocess.TimeoutExpired:
            print(f"{case}: timed out")
            failed.append(case)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


main()
