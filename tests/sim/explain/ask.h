// Asks why a copy of a small program is exposed, on the toy machine.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/hardware/read_profile.h"
#include "sim/explain/explain.h"
#include "tests/model/hardware/toy_profile.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

inline Result<std::vector<CopyExplanation>> ask(const Program& program, const std::string& name) {
  const auto profile = parse_profile(std::string(kToyProfile), "toy.yaml");
  REQUIRE(profile.ok());
  const Schedule schedule = toy_schedule(program);
  const MemoryAssignment memory = assign_memory(program, schedule);
  const Topology topology = make_topology(program.device_count(), *profile);
  const auto prepared = prepare_step(program, schedule, memory, *profile, topology);
  REQUIRE(prepared.ok());
  const auto result = simulate(program, memory, *profile, topology, *prepared);
  REQUIRE(result.ok());
  return explain_copies(program, memory, *prepared, *result, find_residuals(program, memory, {}),
                        name);
}

inline CopyExplanation explain(const Program& program, const std::string& name) {
  const auto copies = ask(program, name);
  REQUIRE_MESSAGE(copies.ok(), (copies.ok() ? "" : to_text(copies.error())));
  REQUIRE(copies->size() == 1);
  return copies->front();
}

inline const Remedy* find(const CopyExplanation& e, RemedyKind kind) {
  const auto found = std::ranges::find(e.remedies, kind, &Remedy::kind);
  return found == e.remedies.end() ? nullptr : &*found;
}
inline const Remedy& get(const CopyExplanation& e, RemedyKind kind) {
  const Remedy* const remedy = find(e, kind);
  REQUIRE(remedy != nullptr);
  return *remedy;
}

}  // namespace spillway::testing
