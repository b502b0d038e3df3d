// A plan with something in every field, for the tests of its file.
#pragma once

#include "model/plan/plan_file.h"

namespace spillway::testing {

inline PlanFile toy_plan() {
  PlanFile plan;
  plan.program = {"toy", "00000000000000ff", 12, 8, Bytes(400)};
  plan.hardware = "toy";
  plan.topology = HostGrid{2, 4};
  plan.jaxlib = JaxlibVersion{{0, 12, 0, 1}};
  plan.pageable_copies = BytesPerSecond(1.4e9);
  plan.anchored_on = "run.sqlite";
  plan.budget = {Bytes(1000), Bytes(750), Bytes(50), Bytes(2000), Bytes(740), Bytes(600)};
  plan.fits = true;
  plan.policy = {{"q", Choice::kOffload},
                 {"wi_0", Choice::kKeep},
                 {"mlp.wi_0", Choice::kKeep},
                 {"off", Choice::kRecompute},
                 {"a \"b\": #c", Choice::kRecompute},
                 {"optimizer", Choice::kOffload}};
  plan.residuals = {{{"q"}, "bf16[1,8]", 4, Bytes(64), Choice::kOffload},
                    {{"wi_0", "mlp.wi_0"}, "bf16[1,16]", 4, Bytes(128), Choice::kKeep},
                    {{}, "f32[1]", 4, Bytes(16), Choice::kKeep},
                    {{"off", "a \"b\": #c"}, "bf16[2,4]", 4, Bytes(64), Choice::kRecompute}};
  plan.state = {{StateClass::kOptimizer, Bytes(200), Bytes(200)},
                {StateClass::kParameters, Bytes(100), Bytes(0)}};
  StepFigures& predicted = plan.predicted;
  predicted.times = {Seconds(3), Seconds(1.0 / 3), Seconds(0),    Seconds(1e-9),
                     Seconds(2), Seconds(0),       Seconds(1e-20)};
  predicted.memory.total_device = Bytes(700);
  predicted.memory.argument = Bytes(200);
  predicted.memory.temp = Bytes(500);
  predicted.memory.host_argument = Bytes(200);
  predicted.memory.host_temp = Bytes(64);
  predicted.offloaded = Bytes(264);
  predicted.reloaded = Bytes(265);
  predicted.dot_flops = 912903888699392;
  predicted.live_peak = Bytes(690);
  predicted.peak_phase = "between the loops";
  predicted.peak_instruction = "fusion.1";
  predicted.remat_clones = 3;
  predicted.buffers = {{"while.1{2}", "bf16[4,8]", "jit(f)/while\n", Bytes(64), 2}};
  predicted.host_arrays = {{"q", "bf16[4,8]", "", Bytes(64), 1}};
  predicted.offloads = {{"c-start", "bf16[1,8]", "", Bytes(16), 4}};
  plan.flags = {{"xla_gpu_enable_latency_hiding_scheduler", "true"}};
  plan.recommended_flags = {{"xla_disable_hlo_passes", "a,b"}};
  plan.environment = {{"XLA_PYTHON_CLIENT_MEM_FRACTION", "0.90"}};
  plan.maxtext = {{"remat_policy", "custom"}, {"q", "offload"}};
  plan.jax_policy = "f([\"q\"])";
  plan.jax_state = "import jax\n\ndef f(x):\n    return x\n";
  return plan;
}

}  // namespace spillway::testing
