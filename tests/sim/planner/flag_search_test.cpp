// Which flags are found to help: on a toy whose copy can be hidden, and on dumps of examples/.
#include "sim/planner/flag_search.h"

#include <doctest/doctest.h>

#include "model/flags/flag_names.h"
#include "tests/sim/planner/example.h"
#include "tests/sim/planner/toy_copy.h"

namespace spillway {
namespace {

using testing::Example;
using testing::kCopyBehindKernel;
using testing::read_example;
using testing::toy_example;
using testing::value_or_fail;

FlagContext on(const char* capability, const char* jaxlib = "0.12.0.1") {
  FlagContext context{.jaxlib = parse_jaxlib_version(jaxlib).value()};
  if (*capability != '\0') context.gpu = GpuModel{capability, "Toy GPU"};
  return context;
}

std::string names(const FlagSearch& search) {
  std::string text;
  for (const Setting& setting : search.flags)
    text += (text.empty() ? "" : " ") + setting.name + "=" + setting.value;
  return text;
}

constexpr const char* kCannot = "XLA cannot order with a limit below 1";
constexpr const char* kWhichDevice =
    "whether XLA hides latencies depends on a device that is not known";

TEST_CASE("what helps is found, with what it brings; what does not is left out") {
  const Example toy = toy_example(std::string(kCopyBehindKernel));
  const Evaluator evaluator = toy.evaluator();
  const std::string hiding(flag::kLatencyHiding), async(flag::kAsyncComputes);
  const PolicyCase off = value_or_fail(evaluator.evaluate({}, ScheduleSettings()));
  const PolicyCase hidden = value_or_fail(
      evaluator.evaluate({}, ScheduleSettings{.scheduler = {.hides_latencies = true}}));
  struct Row {
    const char* name;
    FlagContext context;
    FlagSettings users;
    std::string found;
    const char* not_tried;
  };
  const Row rows[] = {
      {"off before Hopper: switched on", on("8.0"), {}, hiding + "=true", ""},
      {"and for 12.0", on("12.0"), {}, hiding + "=true", ""},
      {"an old version has that flag, too", on("9.0", "0.7.0"), {}, hiding + "=true", ""},
      {"on by itself", on("9.0"), {}, "", ""},
      {"the user's word holds", on("8.0"), {{hiding, "false"}}, "", ""},
      {"set already", on("8.0"), {{hiding, "true"}}, "", ""},
      {"who knows which device", on(""), {}, "", kWhichDevice},
      {"a device is not needed to know", on(""), {{hiding, "false"}}, "", ""},
      {"by a profile", on("9.0"), {{std::string(flag::kProfile), "p.pbtxt"}}, "", ""},
      {"a profile that is switched off",
       on("9.0"),
       {{std::string(flag::kProfile), "p.pbtxt"}, {hiding, "false"}},
       "",
       ""},
      {"XLA could not, either", on("9.0"), {{async, "0"}}, "", kCannot},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const FlagSearch search = search_flags(evaluator, {}, row.users, row.context);
    CHECK(names(search) == row.found);
    CHECK(search.not_tried_because == row.not_tried);
    CHECK(search.with_flags.has_value() == search.not_tried_because.empty());
    if (search.flags.empty()) continue;
    // 25 s one after the other, 19 hidden; one array more is held.
    CHECK(search.flags[0].effect->step.value() == doctest::Approx(-6).epsilon(0.02));
    CHECK(search.flags[0].effect->step == hidden.step - off.step);
    CHECK(search.flags[0].effect->peak_device == hidden.peak_device - off.peak_device);
    CHECK(search.with_flags->step == hidden.step);
  }
}

TEST_CASE("a flag that makes a step miss its budget is none to set") {
  const Example toy = toy_example(std::string(kCopyBehindKernel));
  const ScheduleSettings off, hiding{.scheduler = {.hides_latencies = true}};
  const Bytes needed = value_or_fail(toy.evaluator().evaluate({}, off)).peak_device;
  const Bytes more = value_or_fail(toy.evaluator().evaluate({}, hiding)).peak_device;
  REQUIRE(more > needed);
  struct Row {
    Bytes pool;
    const char* found;
  };
  const Row rows[] = {{needed, ""},
                      {more - Bytes(1), ""},
                      {more, "xla_gpu_enable_latency_hiding_scheduler=true"},
                      // Fits neither way: what is faster is said all the same.
                      {needed - Bytes(1), "xla_gpu_enable_latency_hiding_scheduler=true"}};
  for (const Row& row : rows) {
    CAPTURE(row.pool.value());
    BudgetWishes wishes;
    wishes.hbm_limit = row.pool;
    const Evaluator evaluator = toy.evaluator(wishes);
    CHECK(names(search_flags(evaluator, {}, {}, on("8.0"))) == row.found);
  }
}

TEST_CASE("only what would change something is tried") {
  const Example toy = toy_example(std::string(kCopyBehindKernel));
  const Evaluator evaluator = toy.evaluator();
  const auto tried = [&](const FlagContext& context, const FlagSettings& users) {
    return search_flags(evaluator, {}, users, context).tried;
  };
  const std::string hiding(flag::kLatencyHiding);
  // Off and to stay off: of all candidates pipelining alone is no business of that scheduler.
  CHECK(tried(on("8.0"), {{hiding, "false"}}) == 1);
  // A version without fencing and pipelining has less to try than one with them.
  CHECK(tried(on("9.0", "0.8.0"), {}) < tried(on("9.0"), {}));
  // What the user sets is not tried with another value.
  CHECK(tried(on("9.0"), {{std::string(flag::kSlopFactor), "80"}}) + 1 == tried(on("9.0"), {}));
}

TEST_CASE("what compiling did not bear out says so") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator();
  for (const Choice choice : {Choice::kKeep, Choice::kOffload}) {
    Policy policy(evaluator.handles().size(), choice);
    const FlagSearch search = search_flags(evaluator, policy, {},
                                           {.jaxlib = parse_jaxlib_version("0.12.0.1").value(),
                                            .gpu = gpu_model(example.profile.device)});
    REQUIRE(search.with_flags.has_value());
    // A profile is named where it brings something on top of the flags.
    if (search.with_profile) CHECK(search.with_profile->step < search.with_flags->step);
    for (const Setting& setting : search.flags) {
      const bool compiled_too = setting.name == flag::kPipelinedOffloading ||
                                setting.name == flag::kFencing ||
                                setting.name == flag::kLatencyHiding;
      CAPTURE(setting.name);
      CHECK((setting.why.find("Low confidence") == std::string::npos) == compiled_too);
      CHECK(setting.effect.has_value());
    }
  }
}

}  // namespace
}  // namespace spillway
