#include "sim/schedule/latency/choose_estimator.h"

#include <algorithm>

#include "sim/schedule/latency/analytical_estimator.h"
#include "sim/schedule/latency/profile_guided_estimator.h"
#include "sim/schedule/latency/sol_estimator.h"
#include "sim/schedule/latency/tshirt_estimator.h"

namespace spillway {
namespace {

constexpr std::string_view kKeysWithTable[] = {"sm_90", "sm_100_B200"};

bool is_hopper_or_blackwell(std::string_view capability) {
  return capability.starts_with("9.") || capability.starts_with("10.") ||
         capability.starts_with("12.");
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

/// What XLA asks of a program before it takes the speed-of-light model by itself.
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

}  // namespace

std::string_view name_of(EstimatorKind kind) {
  switch (kind) {
    case EstimatorKind::kTshirt:
      return "T-shirt sizes";
    case EstimatorKind::kSol:
      return "speed of light";
    case EstimatorKind::kAnalytical:
      return "analytical";
    case EstimatorKind::kProfileGuided:
      return "profile-guided";
  }
  return "";
}

std::string table_key(const Device& device) {
  std::string digits = device.compute_capability;
  std::erase(digits, '.');
  if (!device.compute_capability.starts_with("10.0")) return "sm_" + digits;
  const std::size_t space = device.xla_name.rfind(' ');
  const std::string last =
      space == std::string::npos ? device.xla_name : device.xla_name.substr(space + 1);
  return "sm_" + digits + "_" + last;
}

EstimatorChoice choose_estimator(const Program& program, const Device& device,
                                 const EstimatorFlags& flags) {
  const bool supported = is_hopper_or_blackwell(device.compute_capability) && flags.sol;
  const bool by_itself = supported && !(flags.latency_hiding && !*flags.latency_hiding) &&
                         has_only_common_parts(program);
  const bool is_on = flags.latency_hiding.value_or(false) || flags.optimization_level >= 1 ||
                     flags.has_profile || by_itself;
  if (!is_on) return {};
  if (flags.has_profile) return {EstimatorKind::kProfileGuided};
  if (flags.analytical) return {EstimatorKind::kAnalytical};
  const bool wants_sol =
      supported && (flags.optimization_level >= 1 || has_only_common_parts(program));
  if (!wants_sol) return {EstimatorKind::kTshirt};
  if (std::ranges::find(kKeysWithTable, table_key(device)) == std::end(kKeysWithTable))
    return {EstimatorKind::kTshirt, true};
  return {EstimatorKind::kSol};
}

std::unique_ptr<LatencyEstimator> make_estimator(EstimatorKind kind, const Program& program,
                                                 const HardwareProfile& profile,
                                                 const EstimatorFlags& flags,
                                                 std::optional<ProfiledInstructions> measured) {
  switch (kind) {
    case EstimatorKind::kTshirt:
      return std::make_unique<TshirtEstimator>();
    case EstimatorKind::kSol:
      return std::make_unique<SolEstimator>(
          profile, SolOptions{.network = network_belief(profile.device.compute_capability),
                              .partition_size = flags.partition_size});
    case EstimatorKind::kAnalytical:
      return std::make_unique<AnalyticalEstimator>(profile);
    case EstimatorKind::kProfileGuided:
      break;
  }
  check(measured.has_value(), "a profile-guided estimator needs a profile");
  EstimatorFlags without = flags;
  without.has_profile = false;
  without.analytical = false;
  const auto rest = choose_estimator(program, profile.device, without).kind;
  return std::make_unique<ProfileGuidedEstimator>(
      std::move(*measured),
      make_estimator(rest.value_or(EstimatorKind::kTshirt), program, profile, without));
}

}  // namespace spillway
