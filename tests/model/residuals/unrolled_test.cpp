// Residuals of steps whose layers are not scanned: of a toy, and of programs that XLA compiled.
#include "model/residuals/unrolled.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/model/memory/loaded_dump.h"
#include "tests/model/residuals/toy_unrolled.h"

namespace spillway {
namespace {

using testing::toy_unrolled;
using testing::ToyHold;

UnrolledTable find(const Program& program, const NameList& names = {}) {
  return find_unrolled_residuals(program, assign_memory(program, testing::toy_schedule(program)),
                                 names);
}

std::string name_at(const Program& program, InstructionIndex i) {
  return std::string(program.entry_computation()[i].name);
}

/// "u1 device: q0 by d0/1, q1 by …".
std::string describe(const Program& program, const UnrolledResidual& r) {
  std::string text =
      r.id + (r.is_layer_input ? " input " : " ") + std::string(name_of(r.placement));
  for (const UnrolledValue& value : r.layers) {
    text += " | " + name_at(program, value.value.instruction) + " by";
    for (const UnrolledValue::Read& read : value.reads)
      text += " " + name_at(program, read.reader) + "/" + std::to_string(read.operand);
  }
  return text;
}

TEST_CASE("what each layer saves is one residual, however the backward part gets at it") {
  struct Row {
    ToyHold hold;
    const char* placement;
  };
  for (const Row& row : {Row{ToyHold::kDevice, "device"}, Row{ToyHold::kHost, "pinned_host"},
                         Row{ToyHold::kTuple, "device"}}) {
    const Program program = toy_unrolled(row.hold);
    const UnrolledTable table = find(program);
    REQUIRE(table.residuals.size() == 3);
    CHECK(describe(program, table.residuals[UnrolledId(0)]) ==
          "u0 input device | x0 by again0/0 | x1 by again1/0 | x2 by again2/0");
    CHECK(describe(program, table.residuals[UnrolledId(1)]) ==
          "u1 " + std::string(row.placement) + " | q0 by d0/1 | q1 by d1/1 | q2 by d2/1");
    CHECK(describe(program, table.residuals[UnrolledId(2)]) ==
          "u2 device | a0 by b0/1 | a1 by b1/1 | a2 by b2/1");
    CHECK(table.residuals[UnrolledId(1)].total_bytes() == Bytes(48));
  }
}

TEST_CASE("positions are those of the schedule") {
  const Program program = toy_unrolled();
  const UnrolledTable table = find(program);
  const UnrolledValue& q = table.residuals[UnrolledId(1)].layers[1];
  const auto at = [&](const char* name) {
    return LogicalTime(
        static_cast<std::int32_t>(testing::find_instruction(program, name).instruction.index));
  };
  CHECK(q.defined_at == at("q1"));
  CHECK(q.last_forward_use == at("a1"));
  CHECK(q.first_backward_use == at("d1"));
  CHECK(q.last_use == at("d1"));
}

TEST_CASE("a layer's backward part waits for the gradient of the layer behind it") {
  const Program program = toy_unrolled();
  const UnrolledTable table = find(program);
  REQUIRE(table.layers.size() == 3);
  const auto names = [&](const std::vector<InstructionIndex>& list) {
    std::string text;
    for (const InstructionIndex i : list) text += (text.empty() ? "" : " ") + name_at(program, i);
    return text;
  };
  for (int l = 0; l < 3; ++l) {
    const std::string n = std::to_string(l);
    const UnrolledLayer& layer = table.layers[static_cast<std::size_t>(l)];
    CHECK(names(layer.gradients) == "g" + std::to_string(l + 1));
    CHECK(names(layer.first) == "again" + n + " b" + n);
  }
  const auto layer_of = [&](const char* name) {
    return table.layer_of[testing::find_instruction(program, name).instruction.index];
  };
  CHECK(layer_of("d1") == 1u);
  CHECK(layer_of("g3") == 3u);  // the loss
  CHECK(!layer_of("q1"));
  CHECK(!layer_of("updated"));
}

TEST_CASE("nothing crosses where there is one layer, or no jax.checkpoint") {
  CHECK(find(toy_unrolled(ToyHold::kDevice, 1)).residuals.empty());
  std::string text = testing::toy_unrolled_text();
  for (std::size_t at; (at = text.find("checkpoint/")) != std::string::npos;) text.erase(at, 11);
  for (std::size_t at; (at = text.find("rematted_computation/")) != std::string::npos;)
    text.erase(at, 21);
  CHECK(find(testing::read_entry(text)).residuals.empty());
}

TEST_CASE("names are matched as those of stacks are, listed once or for every layer") {
  const CheckpointName name{"x", {4}, ElementType::kF32, "", 1};
  NameList names;
  for (const char* each : {"x", "q", "a"}) {
    names.names.push_back(name);
    names.names.back().name = each;
  }
  NameList repeated = names;
  repeated.names.insert(repeated.names.end(), names.names.begin(), names.names.end());
  for (const NameList& list : {names, repeated}) {
    const UnrolledTable table = find(toy_unrolled(), list);
    CHECK(table.residuals[UnrolledId(0)].names == std::vector<std::string>{"x"});
    CHECK(table.residuals[UnrolledId(0)].evidence == NameEvidence::kCarry);
    CHECK(table.residuals[UnrolledId(1)].names == std::vector<std::string>{"q"});
    CHECK(table.residuals[UnrolledId(1)].evidence == NameEvidence::kOrder);
    CHECK(table.residuals[UnrolledId(2)].names == std::vector<std::string>{"a"});
    CHECK(table.unmatched_names.empty());
  }
}

TEST_CASE("MaxText unrolled: every saved name, one value a layer") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const NameList names =
      read_names((*corpus / "l8b4_unr_allsaved" / "names.json").string()).value();
  struct Row {
    std::string id;
    std::size_t layers;
    std::map<std::string, Placement> names;
  };
  const Placement host = Placement::kPinnedHost, device = Placement::kDevice;
  const std::map<std::string, Placement> offloaded = {
      {"decoder_layer_input", host}, {"query_proj", host}, {"key_proj", host},
      {"value_proj", host},          {"mlpwi_0", host},    {"mlpwi_1", host}};
  const Row rows[] = {{"l8b4_unr_allsaved",
                       4,
                       {{"decoder_layer_input", device},
                        {"query_proj", device},
                        {"key_proj", device},
                        {"value_proj", device},
                        {"context", device},
                        {"out_proj", device},
                        {"mlpwi_0", device},
                        {"mlpwi_1", device}}},
                      {"l8b4_unr_full", 4, {{"decoder_layer_input", device}}},
                      {"l8b4_unr_off", 4, offloaded},
                      {"l8b4_unr_off_lhs0", 4, offloaded},
                      {"l8b_unr32_off",
                       32,
                       {{"decoder_layer_input", host},
                        {"query_proj", host},
                        {"key_proj", host},
                        {"value_proj", host}}}};
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const testing::LoadedDump dump = testing::load_dump(*corpus / row.id);
    const UnrolledTable table = find_unrolled_residuals(dump.program, dump.memory, names);
    std::map<std::string, Placement> found;
    for (const UnrolledResidual& r : table.residuals) {
      REQUIRE(r.names.size() == 1);
      found[r.names[0]] = r.placement;
      CHECK(r.layers.size() == row.layers);
    }
    CHECK(found == row.names);
    for (const UnrolledLayer& layer : table.layers) CHECK(layer.gradients.size() == 1);
  }
}

TEST_CASE("jaxlib 0.8 to 0.12, unrolled: the layer's input and the three that are saved") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  for (const char* version : {"0_8_3", "0_10_2", "0_11_2", "0_12_0_1"})
    for (const bool offloads : {false, true}) {
      const std::string id =
          std::string("v") + version + (offloads ? "_unroll_off" : "_unroll_save");
      CAPTURE(id);
      const testing::LoadedDump dump = testing::load_dump(*corpus / id);
      const UnrolledTable table = find_unrolled_residuals(dump.program, dump.memory, {});
      std::multiset<Placement> placements;
      for (const UnrolledResidual& r : table.residuals) {
        CHECK(r.layers.size() == 6);
        placements.insert(r.placement);
      }
      CHECK(placements.count(Placement::kDevice) == (offloads ? 1 : 4));
      CHECK(placements.count(Placement::kPinnedHost) == (offloads ? 3 : 0));
    }
}

}  // namespace
}  // namespace spillway
