// What to set for a plan, from a plan written down by hand.
#include "sim/planner/advice.h"

#include <doctest/doctest.h>

#include "model/flags/known_flags.h"

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

/// With names, for the newest jaxlib, in a pool that holds anything.
AdviceContext context_of(std::vector<std::string> unmatched = {}) {
  AdviceContext context;
  context.jaxlib = newest_probed();
  context.pool = Bytes(1000 * kGibibyte);
  context.has_names = true;
  context.unmatched = std::move(unmatched);
  return context;
}

TEST_CASE("the environment names only what differs from the defaults") {
  struct Row {
    const char* name;
    Bytes host;
    double fraction;
    std::vector<std::string> environment;
  };
  const Row rows[] = {
      {"everything stays in JAX's pool", Bytes(0), 0.75, {}},
      {"more of the HBM", Bytes(0), 0.76, {"XLA_PYTHON_CLIENT_MEM_FRACTION=0.76"}},
      {"all of it", Bytes(0), 1.0, {"XLA_PYTHON_CLIENT_MEM_FRACTION=1.00"}},
      {"no fraction would do", Bytes(0), 1.01, {}},
      {"a byte on the host", Bytes(1), 0.75, {}},
      {"what XLA's host pool holds", Bytes(64 * kGibibyte), 0.75, {}},
      {"a byte more", Bytes(64 * kGibibyte + 1), 0.75, {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=65"}},
      {"whole gibibytes are not rounded up",
       Bytes(100 * kGibibyte),
       0.9,
       {"XLA_PYTHON_CLIENT_MEM_FRACTION=0.90", "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=100"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    PlanResult plan = plan_of({Choice::kOffload});
    plan.best.host = row.host;
    plan.best.fit.smallest_fraction = row.fraction;
    const Advice advice = advise(plan, context_of());
    CHECK(lines_of(advice.environment) == row.environment);
    CHECK(advice.flags.empty() == (row.host == Bytes(0)));
    for (const auto* settings : {&advice.flags, &advice.environment})
      for (const Setting& setting : *settings) CHECK(setting.why != "");
  }
}

TEST_CASE("flags only where they do something, and only those that the version has") {
  const std::string guard = "xla_disable_automatic_host_compute_offload=true";
  const std::string no_remat = "xla_disable_hlo_passes=rematerialization";
  // 60 GiB of temporaries: the limit is 0.95 of the pool.
  struct Row {
    const char* name;
    const char* jaxlib;
    std::int64_t host, pool;  // GiB
    const char* users;
    std::vector<std::string> flags;
  };
  const Row rows[] = {
      {"nothing on the host", "0.12.0.1", 0, 20, "", {}},
      {"HBM and host within XLA's limit", "0.12.0.1", 16, 80, "", {guard}},
      {"a gibibyte above it", "0.12.0.1", 17, 80, "", {no_remat, guard}},
      {"before the guard", "0.7.0", 17, 80, "", {no_remat}},
      {"between two versions that were asked", "0.7.1", 17, 80, "", {no_remat}},
      {"no version", "", 17, 80, "", {}},
      {"set already", "0.12.0.1", 17, 80, "--xla_disable_hlo_passes=rematerialization", {guard}},
      {"set to something else",
       "0.12.0.1",
       16,
       80,
       "--xla_disable_automatic_host_compute_offload=false",
       {guard}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    PlanResult plan = plan_of({Choice::kOffload});
    plan.best.host = Bytes(row.host * kGibibyte);
    AdviceContext context = context_of();
    context.jaxlib = parse_jaxlib_version(row.jaxlib);
    context.user_flags = settle(read_flags(row.users));
    context.pool = Bytes(row.pool * kGibibyte);
    context.planned.temp = context.planned.total_device = Bytes(60 * kGibibyte);
    context.planned.host_temp = plan.best.host;
    CHECK(lines_of(advise(plan, context).flags) == row.flags);
  }
}

TEST_CASE("every name is set as the plan has it") {
  PlanResult plan =
      plan_of({Choice::kKeep, Choice::kOffload, Choice::kOffload, Choice::kRecompute});
  plan.handles[0].name = "query_proj";
  plan.handles[1].aliases = {"b2", "mlpwi_0"};
  plan.handles[3].name = "context";
  plan.handles[3].aliases = {"d2"};
  const Advice advice = advise(plan, context_of({"mlpwo", "y"}));
  // A name that MaxText has no key for it recomputes: only to be kept or offloaded it is named.
  CHECK(lines_of(advice.maxtext) ==
        std::vector<std::string>{"remat_policy=custom", "query_proj=device", "b=offload",
                                 "b2=offload", "mlpwi_0=offload", "c=offload", "context=remat",
                                 "mlpwo=remat"});
  for (const Setting& key : advice.maxtext) {
    CAPTURE(key.name);
    CHECK(key.why.starts_with("no key of MaxText's own") == (key.name.size() <= 2));
  }
  // What jax.checkpoint finds in neither list it recomputes.
  CHECK(advice.jax_policy ==
        "jax.checkpoint_policies.save_and_offload_only_these_names("
        "names_which_can_be_saved=[\"query_proj\"], names_which_can_be_offloaded=[\"b\", \"b2\", "
        "\"mlpwi_0\", \"c\"], offload_src=\"device\", offload_dst=\"pinned_host\")");
}

TEST_CASE("lists without names are empty lists") {
  CHECK(advise(plan_of({Choice::kKeep}), context_of()).jax_policy ==
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
    AdviceContext context = context_of({"x"});
    context.has_names = row.has_names;
    const Advice advice = advise(plan, context);
    CHECK(advice.maxtext.empty());
    CHECK(advice.jax_policy == "");
    CHECK(advice.flags.size() == 1);
  }
}

}  // namespace
}  // namespace spillway
