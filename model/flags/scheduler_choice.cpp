#include "model/flags/scheduler_choice.h"

#include <algorithm>
#include <charconv>

namespace spillway {
namespace {

/// Of matrix products.
constexpr std::string_view kKeysWithTable[] = {"sm_90", "sm_100_B200"};

/// XLA's IsHopper and IsBlackwell, which ask for the major number alone.
bool is_hopper_or_blackwell(const GpuModel& gpu) {
  int major = 0;
  const std::string& text = gpu.compute_capability;
  std::from_chars(text.data(), text.data() + text.size(), major);
  return major == 9 || major == 10;
}

bool has_table(const GpuModel& gpu) {
  return std::ranges::find(kKeysWithTable, table_key(gpu)) != std::end(kKeysWithTable);
}

bool is_common_collective(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectivePermute:
    case Opcode::kReduceScatter:
      return true;
    default:
      return false;
  }
}

/// XLA's IsLHSEnabled; empty where it depends on the device. `may_take_sol`: but for the device.
std::optional<bool> hides_latencies(const SchedulerFlags& flags, const std::optional<GpuModel>& gpu,
                                    bool may_take_sol) {
  if (flags.optimization_level >= 1) return true;
  if (flags.latency_hiding) return *flags.latency_hiding;
  if (flags.has_profile) return true;
  if (!may_take_sol) return false;
  if (!gpu) return std::nullopt;
  return is_hopper_or_blackwell(*gpu);
}

/// Without a profile and without the analytical model.
void choose_plain_costs(SchedulerChoice& choice, const std::optional<GpuModel>& gpu,
                        bool may_take_sol) {
  if (!may_take_sol) return;
  if (!gpu) {
    choice.rest = std::nullopt;
    return;
  }
  if (!is_hopper_or_blackwell(*gpu)) return;
  if (has_table(*gpu))
    choice.rest = BelievedCosts::kSpeedOfLight;
  else
    choice.lacks_table = true;
}

}  // namespace

GpuModel gpu_model(const Device& device) { return {device.compute_capability, device.xla_name}; }

std::string table_key(const GpuModel& gpu) {
  std::string digits = gpu.compute_capability;
  std::erase(digits, '.');
  if (!gpu.compute_capability.starts_with("10.0")) return "sm_" + digits;
  const std::size_t space = gpu.xla_name.rfind(' ');
  const std::string last =
      space == std::string::npos ? gpu.xla_name : gpu.xla_name.substr(space + 1);
  return "sm_" + digits + "_" + last;
}

bool has_only_common_parts(const Program& program) {
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions()) {
      const Opcode opcode = program[id][i].opcode;
      if (is_collective(opcode) && !is_common_collective(opcode)) return false;
      const auto config = program[id].attribute(i, "backend_config");
      if (config && config->find("DEVICE_TYPE_HOST") != std::string_view::npos) return false;
    }
  return true;
}

std::string_view name_of(BelievedCosts costs) {
  switch (costs) {
    case BelievedCosts::kTShirt:
      return "fixed costs";
    case BelievedCosts::kSpeedOfLight:
      return "speed of light";
    case BelievedCosts::kAnalytical:
      return "analytical";
    case BelievedCosts::kProfile:
      return "a profile";
  }
  return "";
}

std::optional<SchedulerChoice> choose_scheduler(const SchedulerFlags& flags,
                                                const std::optional<GpuModel>& gpu,
                                                bool common_parts_only) {
  const bool by_level = flags.optimization_level >= 1;
  const bool may_take_sol = flags.speed_of_light && (by_level || common_parts_only);
  const auto hides = hides_latencies(flags, gpu, may_take_sol);
  if (!hides) return std::nullopt;
  SchedulerChoice choice{.hides_latencies = *hides};
  if (!*hides) return choice;
  choose_plain_costs(choice, gpu, may_take_sol);
  choice.costs = choice.rest;
  if (flags.analytical) {
    choice.costs = BelievedCosts::kAnalytical;
    if (!flags.has_profile) choice.rest = choice.costs;
  }
  if (flags.has_profile) choice.costs = BelievedCosts::kProfile;
  if (choice.costs == BelievedCosts::kAnalytical) choice.lacks_table = false;
  return choice;
}

SchedulerChoice choose_scheduler(const SchedulerFlags& flags, const Device& device,
                                 const Program& program) {
  return choose_scheduler(flags, gpu_model(device), has_only_common_parts(program)).value();
}

}  // namespace spillway
