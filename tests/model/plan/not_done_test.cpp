// What of a plan was not done, from lists written down by hand.
#include "model/plan/not_done.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

constexpr Choice kKeep = Choice::kKeep, kOffload = Choice::kOffload,
                 kRecompute = Choice::kRecompute;

PlannedResidual planned(const std::string& name, Choice choice, const std::string& shape = "s8[8]",
                        std::int64_t layers = 4) {
  std::vector<std::string> names;
  if (!name.empty()) names.push_back(name);
  return {names, shape, layers, Bytes(8 * layers), choice};
}

SavedValue saved(const std::string& name, Placement placement, const std::string& shape = "s8[8]",
                 std::int64_t layers = 4) {
  std::vector<std::string> names;
  if (!name.empty()) names.push_back(name);
  return {names, !name.empty(), shape, layers, Bytes(8 * layers), placement};
}

SavedValue guessed(const std::string& name, Placement placement) {
  SavedValue value = saved(name, placement);
  value.is_sure = false;
  return value;
}

/// A residual of some shape, which its program owns.
Residual residual_of(const Program& program, const std::string& name, NameEvidence evidence) {
  Residual residual;
  residual.names = {name};
  residual.evidence = evidence;
  residual.slice = program.entry_computation().root_instruction().shape;
  residual.layers = 4;
  return residual;
}

const char* const kOneArray = "  ROOT %a = f32[8] parameter(0)\n";

/// "q: offload -> keep".
std::string describe(const NotDone& value) {
  return value.label + ": " +
         (value.planned ? std::string(name_of(*value.planned)) : std::string("?")) + " -> " +
         std::string(name_of(value.found)) +
         (value.growth == Bytes(0) ? "" : " " + std::to_string(value.growth.value()));
}

TEST_CASE("what was planned beside what is saved") {
  const Placement here = Placement::kDevice, there = Placement::kPinnedHost;
  struct Row {
    const char* name;
    std::vector<PlannedResidual> plan;
    std::vector<SavedValue> program;
    std::vector<std::string> differences;
  };
  const Row rows[] = {
      {"all done",
       {planned("a", kKeep), planned("b", kOffload), planned("c", kRecompute)},
       {saved("a", here), saved("b", there)},
       {}},
      {"an offload that matched nothing",
       {planned("a", kOffload)},
       {saved("a", here)},
       {"a: offload -> keep"}},
      {"saved nowhere", {planned("a", kOffload)}, {}, {"a: offload -> recompute"}},
      {"saved after all",
       {planned("a", kRecompute)},
       {saved("a", there)},
       {"a: recompute -> offload"}},
      {"kept, but moved", {planned("a", kKeep)}, {saved("a", there)}, {"a: keep -> offload"}},
      {"unknown to the plan", {}, {saved("", here, "f32[2]")}, {"f32[2]: ? -> keep"}},
      {"a name that the plan has not",
       {planned("a", kKeep)},
       {saved("a", here), saved("z", here)},
       {"z: ? -> keep"}},
      // Names of one shape, of which a program saves one: who that is cannot be told.
      {"any of two names will do",
       {planned("a", kRecompute), planned("b", kOffload)},
       {guessed("a", there)},
       {}},
      {"but in the right place",
       {planned("a", kRecompute), planned("b", kOffload)},
       {guessed("a", here)},
       {"b: offload -> keep"}},
      {"and as many",
       {planned("a", kRecompute), planned("b", kOffload)},
       {guessed("a", there), guessed("b", there)},
       {"a: recompute -> offload"}},
      {"sure names are not exchanged",
       {planned("a", kKeep), planned("b", kOffload)},
       {saved("a", there), saved("b", here)},
       {"a: keep -> offload", "b: offload -> keep"}},
      {"one that is surely another's stands in for none",
       {planned("a", kKeep)},
       {saved("z", here)},
       {"a: keep -> recompute", "z: ? -> keep"}},
      {"without names, by shape",
       {planned("", kKeep), planned("", kOffload, "f32[2]")},
       {saved("", there, "f32[2]"), saved("", here)},
       {}},
      {"a name in two loops, by layers",
       {planned("a", kKeep, "s8[8]", 3), planned("a", kOffload, "s8[8]", 5)},
       {saved("a", there, "s8[8]", 5), saved("a", here, "s8[8]", 3)},
       {}},
      {"fewer layers of it",
       {planned("a", kKeep)},
       {saved("a", here, "s8[8]", 3)},
       {"a: keep -> keep -8"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<std::string> differences;
    for (const NotDone& value : find_not_done(row.plan, row.program))
      differences.push_back(describe(value));
    CHECK(differences == row.differences);
  }
}

TEST_CASE("source lines that two names share make no name sure") {
  const Program program = testing::read_entry(kOneArray);
  ResidualTable table;
  table.residuals.push(residual_of(program, "a", NameEvidence::kSource));
  NameList list;
  list.names.push_back({"a", {8}, ElementType::kS8, "f.py:3", 4});
  list.names.push_back({"b", {8}, ElementType::kS8, "f.py:3", 4});
  CHECK_FALSE(list_saved(table, {}, list)[0].is_sure);
  list.names[1].source = "f.py:4";
  CHECK(list_saved(table, {}, list)[0].is_sure);
  table.residuals[ResidualId(0)].evidence = NameEvidence::kGuess;
  CHECK_FALSE(list_saved(table, {}, list)[0].is_sure);
}

TEST_CASE("names matched in order are sure where all of them lie in one place") {
  const Program program = testing::read_entry(kOneArray);
  const auto sure = [&program](Placement first, Placement second) {
    ResidualTable table;
    for (const auto& [name, placement] : {std::pair{"a", first}, std::pair{"b", second}}) {
      Residual residual = residual_of(program, name, NameEvidence::kOrder);
      residual.placement = placement;
      table.residuals.push(residual);
    }
    const std::vector<SavedValue> saved = list_saved(table, {}, {});
    return std::pair(saved[0].is_sure, saved[1].is_sure);
  };
  const Placement here = Placement::kDevice, there = Placement::kPinnedHost;
  CHECK(sure(here, here) == std::pair(true, true));
  CHECK(sure(there, there) == std::pair(true, true));
  CHECK(sure(here, there) == std::pair(false, false));
}

}  // namespace
}  // namespace spillway
