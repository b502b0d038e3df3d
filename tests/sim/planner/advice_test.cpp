// What to set for a plan, from a plan written down by hand.
#include "sim/planner/advice.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

/// "name=value", a line each.
std::vector<std::string> lines_of(const std::vector<Setting>& settings) {
  std::vector<std::string> lines;
  for (const Setting& setting : settings) lines.push_back(setting.name + "=" + setting.value);
  return lines;
}

/// One handle a choice, called a, b, c, …
PlanResult plan_of(const Policy& policy) {
  PlanResult plan;
  for (std::size_t k = 0; k < policy.size(); ++k) {
    Handle handle;
    handle.name = std::string(1, static_cast<char>('a' + k));
    plan.handles.push_back(handle);
  }
  plan.best.policy = policy;
  plan.best.fit.smallest_fraction = 0.5;
  return plan;
}

TEST_CASE("flags and environment name only what differs from the defaults") {
  const std::vector<std::string> offload_flags = {
      "xla_disable_hlo_passes=rematerialization",
      "xla_disable_automatic_host_compute_offload=true"};
  struct Row {
    const char* name;
    Bytes host;
    double fraction;
    std::vector<std::string> flags, environment;
  };
  const Row rows[] = {
      {"everything stays in JAX's pool", Bytes(0), 0.75, {}, {}},
      {"more of the HBM", Bytes(0), 0.76, {}, {"XLA_PYTHON_CLIENT_MEM_FRACTION=0.76"}},
      {"all of it", Bytes(0), 1.0, {}, {"XLA_PYTHON_CLIENT_MEM_FRACTION=1.00"}},
      {"no fraction would do", Bytes(0), 1.01, {}, {}},
      {"a byte on the host", Bytes(1), 0.75, offload_flags, {}},
      {"what XLA's host pool holds", Bytes(64 * kGibibyte), 0.75, offload_flags, {}},
      {"a byte more",
       Bytes(64 * kGibibyte + 1),
       0.75,
       offload_flags,
       {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=65"}},
      {"whole gibibytes are not rounded up",
       Bytes(100 * kGibibyte),
       0.9,
       offload_flags,
       {"XLA_PYTHON_CLIENT_MEM_FRACTION=0.90", "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=100"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    PlanResult plan = plan_of({Choice::kOffload});
    plan.best.host = row.host;
    plan.best.fit.smallest_fraction = row.fraction;
    const Advice advice = advise(plan, true, {});
    CHECK(lines_of(advice.flags) == row.flags);
    CHECK(lines_of(advice.environment) == row.environment);
    for (const auto* settings : {&advice.flags, &advice.environment})
      for (const Setting& setting : *settings) CHECK(setting.why != "");
  }
}

TEST_CASE("every name is set as the plan has it") {
  PlanResult plan = plan_of({Choice::kKeep, Choice::kOffload, Choice::kOffload});
  plan.handles[1].aliases = {"b2", "b3"};
  const Advice advice = advise(plan, true, {"x", "y"});
  CHECK(lines_of(advice.maxtext) ==
        std::vector<std::string>{"remat_policy=custom", "a=device", "b=offload", "b2=offload",
                                 "b3=offload", "c=offload", "x=remat", "y=remat"});
  CHECK(advice.jax_policy ==
        "jax.checkpoint_policies.save_and_offload_only_these_names("
        "names_which_can_be_saved=[\"a\"], names_which_can_be_offloaded=[\"b\", \"b2\", \"b3\", "
        "\"c\"], offload_src=\"device\", offload_dst=\"pinned_host\")");
}

TEST_CASE("lists without names are empty lists") {
  CHECK(advise(plan_of({Choice::kKeep}), true, {}).jax_policy ==
        "jax.checkpoint_policies.save_and_offload_only_these_names("
        "names_which_can_be_saved=[\"a\"], names_which_can_be_offloaded=[], "
        "offload_src=\"device\", offload_dst=\"pinned_host\")");
}

TEST_CASE("without names that the user knows there is nothing to set in MaxText or JAX") {
  struct Row {
    const char* name;
    Policy policy;
    bool has_names;
  };
  const Row rows[] = {{"no sidecar", {Choice::kOffload}, false}, {"no residual", {}, true}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    PlanResult plan = plan_of(row.policy);
    plan.best.host = Bytes(1);
    const Advice advice = advise(plan, row.has_names, {"x"});
    CHECK(advice.maxtext.empty());
    CHECK(advice.jax_policy == "");
    CHECK(advice.flags.size() == 2);
  }
}

}  // namespace
}  // namespace spillway
