#include "sim/schedule/xla_order.h"

#include "model/plan/compiler_limit.h"

namespace spillway {
namespace {

/// The program with fences made from the memory scheduler's order; the same where they are off.
Program fence(const Program& program, const Schedule& order, Bytes limit,
              const XlaOrderOptions& options) {
  const auto threshold = fencing_threshold(options.fencing_threshold, limit);
  if (!threshold) return program;
  const Lifetimes memory = find_lifetimes(program, order);
  return with_control_dependencies(
      program,
      find_memory_fences(program, memory,
                         {.threshold = *threshold, .slack_windows = options.fencing_slack}));
}

}  // namespace

XlaOrder find_xla_order(const Program& program, const Lifetimes& given,
                        const HardwareProfile& profile, const XlaOrderOptions& options,
                        const IdVector<ComputationId, std::vector<Precedence>>& precedences) {
  DefaultOrder first = find_default_order(program, given);
  XlaOrder result;
  result.memory_scheduler = first.scheduler;
  result.scheduler =
      options.scheduler ? *options.scheduler : choose_scheduler({}, profile.device, program);
  if (!result.scheduler.hides_latencies) {
    result.schedule = std::move(first.schedule);
    return result;
  }
  LatencyHidingLimits limits = options.limits;
  if (!limits.memory)
    limits.memory = scheduler_limit(sum_totals(assign_outside_heaps(program, given)),
                                    ahead_of_time_base(profile.device.hbm_capacity.value));
  Program fenced = fence(program, first.schedule, *limits.memory, options);
  if (!precedences.empty()) fenced = with_control_dependencies(fenced, precedences);
  const auto estimator = make_estimator(result.scheduler, profile, options.estimator);
  result.schedule = hide_latencies(fenced, given, first.places, *estimator, limits);
  return result;
}

}  // namespace spillway
