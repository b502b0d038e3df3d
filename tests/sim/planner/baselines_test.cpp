#include "sim/planner/baselines.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace spillway {
namespace {

constexpr Choice kKeep = Choice::kKeep;
constexpr Choice kOffload = Choice::kOffload;

constexpr Choice kRecompute = Choice::kRecompute;

Handle make_handle(const std::string& name, Bytes bytes, Choice as_compiled = kKeep) {
  Handle handle;
  handle.name = name;
  handle.bytes = bytes;
  handle.as_compiled = as_compiled;
  return handle;
}

/// Handles with nothing known of their costs.
BaselineFacts facts_of(const std::vector<Handle>& handles) {
  return {handles, std::vector<HandleFacts>(handles.size()), Seconds(0), Seconds(0)};
}

std::map<std::string, std::vector<Policy>> by_name(const BaselineFacts& facts) {
  std::map<std::string, std::vector<Policy>> found;
  for (const Baseline& baseline : baselines(facts)) found[baseline.name] = baseline.chain;
  return found;
}

TEST_CASE("baselines move what may move and leave the rest as compiled") {
  std::vector<Handle> handles = {make_handle("a", Bytes(1)), make_handle("b", Bytes(1), kOffload),
                                 make_handle("c", Bytes(1)), make_handle("d", Bytes(1), kOffload),
                                 make_handle("optimizer", Bytes(1))};
  handles[2].fixed_because = handles[3].fixed_because = "peeled";
  handles[1].saved_because = handles[3].saved_because = "the layer's input";
  handles[4].state = StateClass::kOptimizer;
  const auto found = by_name(facts_of(handles));
  using List = std::vector<Policy>;
  CHECK(found.at("as compiled") == List{{kKeep, kOffload, kKeep, kOffload, kKeep}});
  CHECK(found.at("keep all") == List{{kKeep, kKeep, kKeep, kOffload, kKeep}});
  CHECK(found.at("offload all") == List{{kOffload, kOffload, kKeep, kOffload, kKeep}});
  CHECK(found.at("recompute all") == List{{kRecompute, kKeep, kRecompute, kOffload, kKeep}});
  CHECK_FALSE(found.contains("MaxText minimal"));
  // Without handles all of them are the empty policy.
  const std::vector<Handle> none;
  for (const auto& [name, chain] : by_name(facts_of(none))) CHECK(chain == List{{}});
}

TEST_CASE("rules go by what hides, and by what recomputing costs for the memory it spares") {
  const std::vector<Handle> handles = {make_handle("cheap", Bytes(10)),
                                       make_handle("dear", Bytes(10)),
                                       make_handle("slow", Bytes(10))};
  BaselineFacts facts = facts_of(handles);
  facts.forward = facts.backward = Seconds(10);
  facts.of[0] = {Seconds(6), Seconds(6), Seconds(1)};
  facts.of[1] = {Seconds(6), Seconds(6), Seconds(3)};
  facts.of[2] = {Seconds(11), Seconds(6), Seconds(9)};
  const auto found = by_name(facts);
  using List = std::vector<Policy>;
  CHECK(found.at("offload what hides alone") == List{{kOffload, kOffload, kRecompute}});
  // Both do not hide together: the one that is dearer to recompute goes.
  CHECK(found.at("offload what hides, recompute the rest") ==
        List{{kRecompute, kOffload, kRecompute}});
  CHECK(found.at("MaxText's chain") == List{{kRecompute, kRecompute, kRecompute},
                                            {kRecompute, kRecompute, kOffload},
                                            {kRecompute, kOffload, kOffload},
                                            {kOffload, kOffload, kOffload},
                                            {kOffload, kOffload, kKeep},
                                            {kOffload, kKeep, kKeep},
                                            {kKeep, kKeep, kKeep}});
}

TEST_CASE("MaxText's presets save what they name, and the layer's input") {
  std::vector<Handle> handles = {
      make_handle("decoder_layer_input", Bytes(1)), make_handle("query_proj", Bytes(1)),
      make_handle("out_proj", Bytes(1)), make_handle("moe_mlpwi_0", Bytes(1)),
      make_handle("context", Bytes(1))};
  handles[0].saved_because = "the layer's input";
  handles[3].aliases = {"mlpwi_0"};  // two names on one value
  const auto found = by_name(facts_of(handles));
  struct Row {
    const char* preset;
    Policy policy;
  };
  const Row rows[] = {
      {"full", {kKeep, kRecompute, kRecompute, kRecompute, kRecompute}},
      {"save_out_proj", {kKeep, kRecompute, kKeep, kRecompute, kRecompute}},
      {"save_qkv_proj", {kKeep, kKeep, kRecompute, kRecompute, kRecompute}},
      {"save_dot_except_mlp", {kKeep, kKeep, kKeep, kRecompute, kRecompute}},
      {"save_dot_with_context_except_mlp", {kKeep, kKeep, kKeep, kRecompute, kKeep}},
      {"save_dot_except_mlpwi", {kKeep, kKeep, kKeep, kRecompute, kRecompute}},
      {"minimal", {kKeep, kKeep, kKeep, kKeep, kRecompute}},
      {"minimal_with_context", {kKeep, kKeep, kKeep, kKeep, kKeep}},
      {"qkv_proj_offloaded", {kKeep, kOffload, kRecompute, kRecompute, kRecompute}},
      {"minimal_offloaded", {kKeep, kOffload, kOffload, kOffload, kRecompute}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.preset);
    CHECK(found.at(std::string("MaxText ") + row.preset) == std::vector<Policy>{row.policy});
  }
}

}  // namespace
}  // namespace spillway
