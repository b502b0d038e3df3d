// Steps whose layers are not scanned, rewritten: the toy computes what it did, and holds what it
// was asked to.
#include "sim/rewrite/unrolled.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "model/program/host_transfer.h"
#include "sim/rewrite/in_order.h"
#include "tests/model/residuals/toy_unrolled.h"
#include "tests/sim/rewrite/run_toy.h"

namespace spillway {
namespace {

using testing::toy_unrolled;
using testing::ToyHold;

constexpr UnrolledId kInput(0), kQ(1), kA(2);

/// A toy with what a rewrite needs of it.
struct Toy {
  explicit Toy(ToyHold hold) : program(toy_unrolled(hold)) {
    table = find_unrolled_residuals(program, assign_memory(program, testing::toy_schedule(program)),
                                    {});
    REQUIRE(table.residuals.size() == 3);
  }
  Program rewrite(const std::vector<UnrolledChange>& changes) const {
    return UnrolledRewrite(program, table).run(changes);
  }

  Program program;
  UnrolledTable table;
};

std::vector<UnrolledChange> in_every_layer(UnrolledId residual, Choice choice) {
  return {{residual, 0, choice}, {residual, 1, choice}, {residual, 2, choice}};
}

std::vector<double> run(const Program& program) {
  std::vector<testing::Tree> arguments;
  for (int k = 0; k < 2 + testing::kToyLayers; ++k)
    arguments.push_back({{0.1 + k, 0.2 - k, 0.3, 0.4}});
  return testing::ToyRun(program).run(program.entry, arguments).back();
}

/// "d1(c1,q1)": what an instruction reads.
std::string reads(const Program& program, const char* name) {
  const InstructionId id = testing::find_instruction(program, name);
  const Computation& entry = program.entry_computation();
  std::string text;
  for (const Operand& operand : entry.operands(id.instruction))
    text += (text.empty() ? "" : ",") + std::string(entry[operand.instruction].name);
  return std::string(name) + "(" + text + ")";
}

std::string waits_for(const Program& program, const char* name) {
  const InstructionId id = testing::find_instruction(program, name);
  return std::string(
      program.entry_computation().attribute(id.instruction, "control-predecessors").value_or(""));
}

std::size_t transfers(const Program& program) { return find_transfers(program).size(); }

TEST_CASE("offloaded: copied behind its maker, and back before the first use, layer by layer") {
  const Toy toy(ToyHold::kDevice);
  const Program moved = toy.rewrite(in_every_layer(kQ, Choice::kOffload));
  CHECK(run(moved) == run(toy.program));
  CHECK(transfers(moved) == 6);
  CHECK(reads(moved, "offload.u1.1.start") == "offload.u1.1.start(q1)");
  CHECK(reads(moved, "reload.u1.1.start") == "reload.u1.1.start(offload.u1.1.done)");
  CHECK(reads(moved, "d1") == "d1(c1,reload.u1.1.done)");
  CHECK(reads(moved, "a1") == "a1(q1)");  // the forward part reads what it made
  const InstructionId start = testing::find_instruction(moved, "offload.u1.1.start");
  CHECK(start.instruction.index == testing::find_instruction(moved, "q1").instruction.index + 1);
  const Shape shape = moved[start].shape;
  CHECK(is_host(shape.element(0).space()));
  CHECK(!is_host(shape.element(1).space()));
}

TEST_CASE("reloads, and all else of the layer, wait for its gradient and its copies to the host") {
  const Toy toy(ToyHold::kDevice);
  const Program moved = toy.rewrite(in_every_layer(kQ, Choice::kOffload));
  CHECK(waits_for(moved, "reload.u1.1.start") == "{%g2, %offload.u1.1.done}");
  CHECK(waits_for(moved, "again1") == "{%g2, %offload.u1.1.done}");
  CHECK(waits_for(moved, "b1") == "{%g2, %offload.u1.1.done}");
  CHECK(waits_for(moved, "d1").empty());  // it hangs on b1
  CHECK(waits_for(moved, "offload.u1.1.start").empty());
}

TEST_CASE("recomputed: the producers copied from what is saved, what is there already used") {
  const Toy toy(ToyHold::kDevice);
  const Program q = toy.rewrite(in_every_layer(kQ, Choice::kRecompute));
  CHECK(run(q) == run(toy.program));
  // h1 is computed anew as it is: again1.
  CHECK(reads(q, "d1") == "d1(c1,q1.layer1.recompute)");
  CHECK(reads(q, "q1.layer1.recompute") == "q1.layer1.recompute(again1,w1)");
  CHECK(waits_for(q, "q1.layer1.recompute") == "{%g2}");
  const InstructionId clone = testing::find_instruction(q, "q1.layer1.recompute");
  CHECK(metadata_text(q.entry_computation(), clone.instruction, "op_name")
            .find("rematted_computation/mul") != std::string::npos);

  const Program a = toy.rewrite(in_every_layer(kA, Choice::kRecompute));
  CHECK(run(a) == run(toy.program));
  CHECK(reads(a, "a1.layer1.recompute") == "a1.layer1.recompute(q1)");  // q is saved

  std::vector<UnrolledChange> both = in_every_layer(kQ, Choice::kRecompute);
  for (const UnrolledChange& change : in_every_layer(kA, Choice::kRecompute))
    both.push_back(change);
  const Program neither = toy.rewrite(both);
  CHECK(run(neither) == run(toy.program));
  CHECK(reads(neither, "a1.layer1.recompute") == "a1.layer1.recompute(q1.layer1.recompute)");
}

TEST_CASE("recomputation reads what is offloaded from where it comes back") {
  const Toy toy(ToyHold::kDevice);
  std::vector<UnrolledChange> changes = in_every_layer(kQ, Choice::kOffload);
  for (const UnrolledChange& change : in_every_layer(kA, Choice::kRecompute))
    changes.push_back(change);
  const Program moved = toy.rewrite(changes);
  CHECK(run(moved) == run(toy.program));
  CHECK(reads(moved, "a1.layer1.recompute") == "a1.layer1.recompute(reload.u1.1.done)");
}

TEST_CASE("kept, or recomputed, what was on the host: its copies go") {
  const Toy toy(ToyHold::kHost);
  CHECK(transfers(toy.program) == 6);
  const Program kept = toy.rewrite(in_every_layer(kQ, Choice::kKeep));
  CHECK(run(kept) == run(toy.program));
  CHECK(transfers(kept) == 0);
  CHECK(reads(kept, "d2") == "d2(c2,q2)");
  const Program again = toy.rewrite(in_every_layer(kQ, Choice::kRecompute));
  CHECK(run(again) == run(toy.program));
  CHECK(transfers(again) == 0);
}

TEST_CASE("through a tuple that was a barrier") {
  const Toy toy(ToyHold::kTuple);
  const Program moved = toy.rewrite(in_every_layer(kQ, Choice::kOffload));
  CHECK(run(moved) == run(toy.program));
  CHECK(reads(moved, "d1") == "d1(c1,reload.u1.1.done)");
}

TEST_CASE("one layer alone") {
  const Toy toy(ToyHold::kDevice);
  const Program moved = toy.rewrite({{kQ, 2, Choice::kOffload}, {kA, 0, Choice::kRecompute}});
  CHECK(run(moved) == run(toy.program));
  CHECK(transfers(moved) == 2);
  CHECK(reads(moved, "d2") == "d2(c2,reload.u1.2.done)");
  CHECK(reads(moved, "b0") == "b0(g1,a0.layer0.recompute)");
  CHECK(reads(moved, "d1") == "d1(c1,q1)");
}

TEST_CASE("the layer's input is never recomputed, and what is so already changes nothing") {
  const Toy toy(ToyHold::kDevice);
  const UnrolledRewrite rewrite(toy.program, toy.table);
  CHECK(rewrite.why_not_recomputed(kInput) ==
        "it is the layer's input, which recomputation starts from and jax.checkpoint always saves");
  CHECK(rewrite.why_not_recomputed(kQ).empty());
  const Program same = rewrite.run(in_every_layer(kInput, Choice::kRecompute));
  CHECK(same.computations[same.entry] == toy.program.computations[toy.program.entry]);
  const Program kept = rewrite.run(in_every_layer(kQ, Choice::kKeep));
  CHECK(transfers(kept) == 0);
  CHECK(kept.entry_computation().size() == toy.program.entry_computation().size());
}

TEST_CASE("any choice for any layer computes the same, from wherever it was") {
  std::mt19937 random(20261130);
  for (const ToyHold hold : {ToyHold::kDevice, ToyHold::kHost, ToyHold::kTuple}) {
    const Toy toy(hold);
    const std::vector<double> expected = run(toy.program);
    for (int k = 0; k < 60; ++k) {
      CAPTURE(k);
      std::vector<UnrolledChange> changes;
      for (const UnrolledId id : {kInput, kQ, kA})
        for (std::uint32_t layer = 0; layer < 3; ++layer)
          if (random() % 4 != 0) changes.push_back({id, layer, static_cast<Choice>(random() % 3)});
      CHECK(run(toy.rewrite(changes)) == expected);
    }
  }
}

TEST_CASE("in another order the program is the same") {
  const Program program = testing::read_entry(
      "  %p = f32[4] parameter(0)\n  %a = f32[4] negate(%p)\n  %b = f32[4] tanh(%p)\n"
      "  %c = f32[4] add(%a, %b)\n");
  Schedule schedule;
  schedule.order.resize(program.computations.size());
  for (const std::size_t i : {0, 2, 1, 3})
    schedule.order[program.entry].push_back(InstructionIndex(i));
  const Program ordered = in_order(program, schedule);
  CHECK(testing::find_instruction(ordered, "b").instruction.index == 1);
  CHECK(reads(ordered, "c") == "c(a,b)");
  CHECK(testing::run_toy(ordered) == testing::run_toy(program));
}

}  // namespace
}  // namespace spillway
