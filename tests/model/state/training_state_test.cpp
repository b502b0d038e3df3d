// Which arguments of a step are parameters, which the optimizer's, and how that is known.
#include "model/state/training_state.h"

#include <doctest/doctest.h>

#include "model/hlo/read_program.h"
#include "tests/model/memory/loaded_dump.h"
#include "tests/model/state/toy_training.h"

namespace spillway {
namespace {

using testing::ToyTraining;

std::string names_of(const Program& program, const TrainingState& state, StateClass kind) {
  std::string names;
  for (const StateArgument& argument : state.of(kind))
    names += (names.empty() ? "" : " ") +
             std::string(program[InstructionId{program.entry, argument.instruction}].name);
  return names;
}

TEST_CASE("by use and name, or by use and shape; counters and what is not donated are no state") {
  for (const bool named : {true, false})
    for (const bool asynchronous : {true, false}) {
      CAPTURE(named);
      const Program program = ToyTraining{.named = named, .asynchronous = asynchronous}.program();
      const TrainingState state = find_training_state(program);
      CHECK(state.unknown_because == "");
      CHECK(names_of(program, state, StateClass::kParameters) == "p h");
      CHECK(names_of(program, state, StateClass::kOptimizer) == "mp mh vp vh");
      CHECK(name_of(state.optimizer) == (named ? "use and name" : "use and shape"));
      CHECK(name_of(state.parameters) == (named ? "use and name" : "use"));
      CHECK(bytes_of(state, StateClass::kParameters) == Bytes(1024 + 256));
      CHECK(bytes_of(state, StateClass::kOptimizer) == 2 * Bytes(1024 + 256));
      CHECK(host_bytes_of(state, StateClass::kOptimizer) == Bytes(0));
      CHECK(state.of(StateClass::kOptimizer)[1].output == 5);  // node 0 is the whole result
    }
}

TEST_CASE("a name wins over the use, and says so") {
  // The moments of a matrix-aware optimizer are multiplied with as well.
  const Program program = testing::toy_program(
      R"(ENTRY %main {
  %p = f32[8,8]{1,0} parameter(0), metadata={op_name="params['w']"}
  %m = f32[8,8]{1,0} parameter(1), metadata={op_name="opt_state.mu['w']"}
  %x = f32[8,8]{1,0} parameter(2)
  %y = f32[8,8]{1,0} dot(%x, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %m1 = f32[8,8]{1,0} dot(%m, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %p1 = f32[8,8]{1,0} subtract(%p, %m1)
  ROOT %out = (f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(%p1, %m1)
}
)",
      ", input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }");
  const TrainingState state = find_training_state(program);
  CHECK(names_of(program, state, StateClass::kOptimizer) == "m");
  CHECK(name_of(state.optimizer) == "name");
  CHECK(name_of(state.parameters) == "use and name");
}

TEST_CASE("without donation nothing can be told, and that is said") {
  const TrainingState state = find_training_state(ToyTraining{.donated = false}.program());
  CHECK(state.arguments.empty());
  CHECK(state.unknown_because ==
        "no argument of the step is donated (donate_argnums), so that nothing says which result is "
        "the new state of which");
}

TEST_CASE("of the corpus: each parameter that is trained has its moments") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  struct Row {
    const char* id;
    std::size_t parameters, moments;
    const char* optimizer;
  };
  const Row rows[] = {
      {"host_a_device", 12, 24, "use and name"},
      {"host_b_opt", 12, 24, "use and name"},
      {"host_c_params", 12, 24, "use and name"},
      {"host_d_both_act", 12, 24, "use and name"},
      {"l405b_full", 12, 24, "use and name"},
      {"ds671_full", 32, 62, "use and name"},  // the router's bias is not trained by gradients
      {"l8b4_unr_full", 39, 78, "use and name"},
      {"l8b_ga4_full", 12, 24, "use and name"},
      {"v0_12_0_1_scan_save", 11, 11, "use and shape"},  // one moment, called m
  };
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const TrainingState state =
        find_training_state(read_program((*corpus / row.id).string()).value());
    CHECK(state.unknown_because == "");
    CHECK(state.of(StateClass::kParameters).size() == row.parameters);
    CHECK(state.of(StateClass::kOptimizer).size() == row.moments);
    CHECK(name_of(state.optimizer) == row.optimizer);
  }
}

}  // namespace
}  // namespace spillway
