// State of the corpus's steps moved between HBM and pinned host memory, against what XLA made of
// the same step with it there (host_state_step.py).
#include <doctest/doctest.h>

#include <cmath>

#include "model/hardware/read_profile.h"
#include "model/memory/memory_report.h"
#include "sim/rewrite/offload_state.h"
#include "sim/rewrite/place_residuals.h"
#include "sim/schedule/reorder.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/model/memory/loaded_dump.h"
#include "tests/sim/rewrite/check_sound.h"

namespace spillway {
namespace {

using testing::check_sound;

constexpr StateClass kParameters = StateClass::kParameters, kOptimizer = StateClass::kOptimizer;
constexpr Placement kDevice = Placement::kDevice, kHost = Placement::kPinnedHost;

struct Outcome {
  MemoryTotals totals;
  HostTraffic traffic;
  Seconds step;
};

class Machine {
 public:
  Machine() : profile_(read_profile(testing::source_path("hw_profiles/gb200.yaml")).value()) {}

  Outcome run(const Program& program) const {
    const Schedule schedule = text_schedule(program).value();
    const MemoryAssignment memory = assign_memory(program, schedule);
    const Topology topology = make_topology(program.device_count(), profile_);
    return {sum_totals(memory), sum_traffic(program),
            simulate(program, schedule, memory, profile_, topology).value().step};
  }
  /// Moved, and what that changed in XLA's order.
  Program move(const Program& program, const std::vector<StateChange>& changes) const {
    const MemoryAssignment memory = assign_memory(program, text_schedule(program).value());
    return order(move_state(program, memory, find_training_state(program), changes), program);
  }
  Program order(const Program& rewritten, const Program& original) const {
    return reorder_changed(rewritten, original, profile_);
  }

 private:
  HardwareProfile profile_;
};

double off(double ours, double theirs) { return std::abs(ours / theirs - 1); }

/// Host bytes and what crosses to the byte; device and step within a bar.
void check_as_compiled(const Outcome& ours, const Outcome& xla, double device, double step) {
  MESSAGE("device " << ours.totals.total_device.value() << " for "
                    << xla.totals.total_device.value() << " B, step " << ours.step.value()
                    << " for " << xla.step.value() << " s");
  CHECK(ours.totals.host_argument == xla.totals.host_argument);
  CHECK(ours.totals.host_temp == xla.totals.host_temp);
  CHECK(ours.totals.host_alias == xla.totals.host_alias);
  CHECK(ours.totals.argument == xla.totals.argument);
  CHECK(ours.traffic.device_to_host == xla.traffic.device_to_host);
  CHECK(ours.traffic.host_to_device == xla.traffic.host_to_device);
  CHECK(off(ratio(ours.totals.total_device, xla.totals.total_device), 1) <= device);
  CHECK(off(ratio(ours.step, xla.step), 1) <= step);
}

TEST_CASE("state moved as XLA compiled it, and back") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  struct Row {
    const char* from;
    const char* to;
    StateChange change;
    double device;  ///< 0: to the byte
  };
  // Where ours needs more: XLA lays the gradients of one parameter out as the parameter, we as
  // they were in HBM, so that the update makes a transposed copy (33 MB).
  const Row rows[] = {{"host_a_device", "host_b_opt", {kOptimizer, kHost}, 0},
                      {"host_b_opt", "host_a_device", {kOptimizer, kDevice}, 0},
                      {"host_a_device", "host_c_params", {kParameters, kHost}, 0.005},
                      {"host_c_params", "host_a_device", {kParameters, kDevice}, 0.00001}};
  const Machine machine;
  for (const Row& row : rows) {
    CAPTURE(row.from);
    CAPTURE(row.to);
    const Program from = read_program((*corpus / row.from).string()).value();
    const Program to = read_program((*corpus / row.to).string()).value();
    CHECK(placement_of(find_training_state(from), row.change.kind) != row.change.placement);
    CHECK(placement_of(find_training_state(to), row.change.kind) == row.change.placement);
    const Program moved = machine.move(from, {row.change});
    check_sound(moved);
    check_as_compiled(machine.run(moved), machine.run(to), row.device, 0.005);
  }
}

TEST_CASE("both classes and three activations at once") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const Machine machine;
  const Program from = read_program((*corpus / "host_a_device").string()).value();
  const Program to = read_program((*corpus / "host_d_both_act").string()).value();
  const Program moved = machine.move(from, {{kOptimizer, kHost}, {kParameters, kHost}});
  const MemoryAssignment memory = assign_memory(moved, text_schedule(moved).value());
  const ResidualTable table = find_residuals(moved, memory, {});
  std::vector<PlacementChange> changes;
  for (const ResidualId id : ids(table.residuals))
    if (!table.residuals[id].is_layer_input) changes.push_back({id, kHost});
  CHECK(changes.size() == 3);
  const Program all = machine.order(place_residuals(moved, memory, table, changes), from);
  check_sound(all);
  // To order XLA's own program anew takes as much off its peak: docs/schedule.md.
  check_as_compiled(machine.run(all), machine.run(to), 0.04, 0.01);
}

TEST_CASE("moments of every program of the corpus that has them can go, whatever its layers") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const Machine machine;
  for (const char* id : {"l8b_b2_full", "l8b4_unr_full", "ds671_full", "l8b_ga4_full"}) {
    CAPTURE(id);
    const Program program = read_program((*corpus / id).string()).value();
    const Bytes moments = bytes_of(find_training_state(program), kOptimizer);
    const Program moved = machine.move(program, {{kOptimizer, kHost}});
    check_sound(moved);
    const Outcome before = machine.run(program), after = machine.run(moved);
    CHECK(after.totals.host_argument == moments);
    CHECK(after.totals.argument == before.totals.argument - moments);
    CHECK(after.traffic.device_to_host == before.traffic.device_to_host + moments);
    CHECK(after.traffic.host_to_device == before.traffic.host_to_device + moments);
    CHECK(after.step > before.step);
    MESSAGE(std::string(id) << ": device " << before.totals.total_device.value() << " -> "
                            << after.totals.total_device.value() << " B, step "
                            << before.step.value() << " -> " << after.step.value() << " s");
  }
}

}  // namespace
}  // namespace spillway
