// step_cost PROGRAM MACHINE: the HBM that a compiled step needs, and how long it takes.
#include <cstdio>

#include "model/hardware/find_profile.h"
#include "model/hlo/read_program.h"
#include "sim/simulate.h"

using namespace spillway;

template <typename T>
T value_or_exit(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fputs(to_text(result.error()).c_str(), stderr);
  std::exit(3);
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: step_cost PROGRAM MACHINE\n", stderr), 2;
  const Program program = value_or_exit(read_program(argv[1]));
  const HardwareProfile machine = value_or_exit(find_profile(argv[2], {{PROFILES_DIR}}));

  const Schedule schedule = value_or_exit(text_schedule(program));
  const MemoryAssignment memory = assign_memory(program, schedule);
  const Topology topology = make_topology(program.device_count(), machine);
  const SimResult step = value_or_exit(simulate(program, schedule, memory, machine, topology));
  std::printf("%lld bytes of HBM, %.3f s a step\n",
              static_cast<long long>(step.memory.total_device.value()), step.step.value());
}
