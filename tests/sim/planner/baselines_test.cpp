#include "sim/planner/baselines.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace spillway {
namespace {

constexpr Choice kKeep = Choice::kKeep;
constexpr Choice kOffload = Choice::kOffload;

Handle make_handle(Choice as_compiled, const std::string& fixed_because = "") {
  Handle handle;
  handle.as_compiled = as_compiled;
  handle.fixed_because = fixed_because;
  return handle;
}

TEST_CASE("baselines move what may move and leave the rest as compiled") {
  const std::vector<Handle> handles = {make_handle(kKeep), make_handle(kOffload),
                                       make_handle(kKeep, "peeled"),
                                       make_handle(kOffload, "peeled")};
  const std::map<std::string, Policy> expected = {
      {"as compiled", {kKeep, kOffload, kKeep, kOffload}},
      {"keep all", {kKeep, kKeep, kKeep, kOffload}},
      {"offload all", {kOffload, kOffload, kKeep, kOffload}},
  };
  CHECK(baselines().size() == expected.size());
  for (const Baseline& baseline : baselines()) {
    CAPTURE(baseline.name);
    REQUIRE(expected.contains(baseline.name));
    CHECK(baseline.propose(handles) == expected.at(baseline.name));
    CHECK(baseline.propose({}).empty());
  }
}

}  // namespace
}  // namespace spillway
