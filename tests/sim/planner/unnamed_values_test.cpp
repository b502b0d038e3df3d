// Values that a name would be worth for: the graph of a real backward body, and what is told of it.
#include "sim/planner/unnamed_values.h"

#include <doctest/doctest.h>

#include "model/cost/run_time.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/planner/example.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::Example;
using testing::read_example;
using testing::toy_example;
using testing::ToyScan;
using testing::value_or_fail;

Example read_corpus(const std::filesystem::path& folder) {
  return testing::make_example(
      value_or_fail(read_program(folder.string())),
      value_or_fail(read_names((folder / "names.json").string())),
      value_or_fail(read_profile(testing::source_path("hw_profiles/gb200.yaml"))));
}

Policy all(const Evaluator& evaluator, Choice choice) {
  Policy policy = compiled_policy(evaluator.handles());
  for (std::size_t k = 0; k < policy.size(); ++k)
    if (is_name(evaluator.handles()[k]) && evaluator.handles()[k].saved_because.empty())
      policy[k] = choice;
  return policy;
}

TEST_CASE("attention's statistics are worth a name where its output has one, to the byte") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  struct Row {
    const char* dump;
    const char* shape;
    std::int64_t bytes;  ///< a layer
    std::int64_t layers;
  };
  // Batch x heads x sequence, in f32.
  const Row rows[] = {{"l8b_b2_allsaved", "f32[2,32,8192]", 2 * 32 * 8192 * 4, 32},
                      {"l70b_allsaved", "f32[2,64,8192]", 2 * 64 * 8192 * 4, 80},
                      {"l405b_allsaved", "f32[2,128,8192]", 2 * 128 * 8192 * 4, 126}};
  for (const Row& row : rows) {
    CAPTURE(row.dump);
    const Example example = read_corpus(*corpus / row.dump);
    const Evaluator evaluator = example.evaluator();
    const auto found = find_unnamed_values(evaluator, compiled_policy(evaluator.handles()));
    // Nothing else: all products are saved by name.
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].values.size() == 1);
    const UnnamedValue& value = found[0].values[0];
    CHECK(value.shape == row.shape);
    CHECK(value.bytes_per_layer == Bytes(row.bytes));
    CHECK(found[0].bytes == Bytes(row.bytes * row.layers));
    CHECK(value.source.find("attention_op.py:") != std::string::npos);
    CHECK(found[0].beside == std::vector<std::string>{"context"});
    CHECK(found[0].with_names.empty());
    CHECK(found[0].collectives == Seconds(0));
    // What it spares is that kernel, every layer once.
    REQUIRE(found[0].not_run_again.size() == 1);
    const InstructionId kernel =
        testing::find_instruction(example.program, found[0].not_run_again[0]);
    CHECK(found[0].kernels.value() ==
          doctest::Approx(evaluator.cost_table().cost(kernel).time.value() *
                          static_cast<double>(row.layers)));
    CHECK(found[0].saving < found[0].kernels * 0.05);
  }
}

TEST_CASE("where the output is recomputed as well, both have to be saved") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const Example example = read_corpus(*corpus / "l8b_b2_allsaved");
  const Evaluator evaluator = example.evaluator();
  const auto found = find_unnamed_values(evaluator, all(evaluator, Choice::kRecompute));
  REQUIRE(found.size() == 1);
  CHECK(found[0].with_names == std::vector<std::string>{"context"});
  CHECK(found[0].beside.empty());
  // 128 MiB of output and 2 of statistics, of 32 layers.
  CHECK(found[0].bytes == Bytes(std::int64_t{130} * 32 << 20));
}

TEST_CASE("without a name for attention's output it is found with the statistics") {
  const Example example = read_example("keep");
  const Evaluator evaluator = example.evaluator();
  const auto found = find_unnamed_values(evaluator, compiled_policy(evaluator.handles()));
  REQUIRE(!found.empty());
  REQUIRE(found[0].values.size() == 2);
  CHECK(found[0].values[0].shape == "bf16[8,32,8192,128]");
  CHECK(found[0].values[1].shape == "f32[8,32,8192]");
  for (std::size_t k = 1; k < found.size(); ++k)
    CHECK(ratio(found[k].spared(), found[0].spared()) * ratio(found[0].bytes, found[k].bytes) <= 1);
}

TEST_CASE("nothing is told where no product, attention or collective runs again") {
  ToyScan toy;
  toy.counted = true;
  const Example example = toy_example(toy.text());
  const Evaluator evaluator = example.evaluator();
  CHECK(find_unnamed_values(evaluator, compiled_policy(evaluator.handles())).empty());
  CHECK(find_unnamed_values(evaluator, all(evaluator, Choice::kRecompute)).empty());
}

}  // namespace
}  // namespace spillway
