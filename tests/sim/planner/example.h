// What a planner needs, from the dumps in examples/jax/dumps or from a toy.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "model/hardware/read_profile.h"
#include "model/hlo/read_program.h"
#include "sim/planner/evaluate.h"
#include "tests/golden.h"
#include "tests/model/hardware/toy_profile.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

template <typename T>
T value_or_fail(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : to_text(result.error())));
  return std::move(result).value();
}

/// A program on a machine.
struct Example {
  Program program;
  Schedule schedule;
  NameList names;
  HardwareProfile profile;
  Topology topology;

  /// A limit above the HBM is one of a machine that has as much.
  Budget budget(const BudgetWishes& wishes = {}) const {
    HardwareProfile machine = profile;
    Bytes& hbm = machine.device.hbm_capacity.value;
    hbm = std::max(hbm, wishes.hbm_limit.value_or(hbm));
    return value_or_fail(make_budget(machine, topology, wishes));
  }
  Evaluator evaluator(const BudgetWishes& wishes = {}) const {
    return Evaluator(program, schedule, profile, topology, names, budget(wishes));
  }
};

inline Example make_example(Program program, NameList names, HardwareProfile profile) {
  Schedule schedule = value_or_fail(text_schedule(program));
  Topology topology = make_topology(program.device_count(), profile);
  return {std::move(program), std::move(schedule), std::move(names), std::move(profile),
          std::move(topology)};
}

/// One of examples/jax/dumps with its names, on a machine of hw_profiles/.
inline Example read_example(const std::string& dump, const std::string& machine = "gb200") {
  const std::string folder = source_path("examples/jax/dumps/" + dump);
  return make_example(value_or_fail(read_program(folder)),
                      value_or_fail(read_names(folder + "/names.json")),
                      value_or_fail(read_profile(source_path("hw_profiles/" + machine + ".yaml"))));
}

/// The same with some of its names only: fewer handles.
inline Example read_example_with(const std::string& dump, const std::vector<std::string>& names,
                                 const std::string& machine = "gb200") {
  Example example = read_example(dump, machine);
  std::erase_if(example.names.names, [&names](const CheckpointName& name) {
    return std::ranges::find(names, name.name) == names.end();
  });
  return example;
}

/// HLO computations on the toy machine.
inline Example toy_example(const std::string& computations, NameList names = {}) {
  return make_example(toy_program(computations), std::move(names),
                      value_or_fail(parse_profile(std::string(kToyProfile), "toy.yaml")));
}

}  // namespace spillway::testing
