#include "model/plan/policy.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace spillway {
namespace {

/// What make_handles looks at of a residual.
struct ToyResidual {
  std::vector<std::string> names;
  std::int64_t bytes = 0;
  Placement placement = Placement::kDevice;
  std::string why_fixed{};
};

constexpr Placement kHost = Placement::kPinnedHost;

std::vector<Handle> handles_of(const std::vector<ToyResidual>& toys, bool has_names) {
  ResidualTable table;
  std::vector<std::string> why_fixed;
  for (const ToyResidual& toy : toys) {
    Residual residual;
    residual.id = "r" + std::to_string(table.residuals.size());
    residual.names = toy.names;
    residual.total_bytes = Bytes(toy.bytes);
    residual.placement = toy.placement;
    table.residuals.push(std::move(residual));
    why_fixed.push_back(toy.why_fixed);
  }
  return make_handles(table, has_names, why_fixed);
}

/// "name=alias[r0 r2] 12 B keep (why)": all of a handle in one line.
std::string line_of(const Handle& handle) {
  std::string text = handle.name;
  for (const std::string& alias : handle.aliases) text += "=" + alias;
  text += "[";
  for (const ResidualId id : handle.residuals)
    text += (text.back() == '[' ? "r" : " r") + std::to_string(id.index);
  text += "] " + std::to_string(handle.bytes.value()) + " B " +
          std::string(name_of(handle.as_compiled));
  return handle.fixed_because.empty() ? text : text + " (" + handle.fixed_because + ")";
}

TEST_CASE("choices are called as users call them") {
  CHECK(name_of(Choice::kKeep) == "keep");
  CHECK(name_of(Choice::kOffload) == "offload");
  CHECK(name_of(Choice::kRecompute) == "recompute");
}

TEST_CASE("residuals that the user sets as one are one handle") {
  struct Row {
    const char* name;
    std::vector<ToyResidual> residuals;
    bool has_names;
    std::vector<std::string> expected;
  };
  const Row rows[] = {
      {"nothing saved", {}, true, {}},
      {"without names, each under its id",
       {{{}, 8}, {{}, 16, kHost}},
       false,
       {"r0[r0] 8 B keep", "r1[r1] 16 B offload"}},
      {"with names, those without one cannot be set",
       {{{"query"}, 8}, {{}, 16}, {{"key"}, 4}},
       true,
       {"query[r0] 8 B keep", "key[r2] 4 B keep"}},
      {"one name in two loops",
       {{{"query"}, 8}, {{"key"}, 4}, {{"query"}, 24}},
       true,
       {"query[r0 r2] 32 B keep", "key[r1] 4 B keep"}},
      {"two names on one value", {{{"mlp", "moe_mlp"}, 8}}, true, {"mlp=moe_mlp[r0] 8 B keep"}},
      {"a second name in another loop",
       {{{"mlp", "moe_mlp"}, 8}, {{"moe_mlp"}, 4}},
       true,
       {"mlp=moe_mlp[r0 r1] 12 B keep"}},
      {"a second name found later",
       {{{"mlp"}, 8}, {{"mlp", "moe_mlp"}, 4}},
       true,
       {"mlp=moe_mlp[r0 r1] 12 B keep"}},
      {"one that cannot be moved holds all of its handle",
       {{{"query"}, 8}, {{"query"}, 8, Placement::kDevice, "two read it"}, {{"key"}, 4}},
       true,
       {"query[r0 r1] 16 B keep (two read it)", "key[r2] 4 B keep"}},
      {"of several reasons the first",
       {{{"query"}, 8, kHost, "peeled"}, {{"query"}, 8, kHost, "copied"}},
       true,
       {"query[r0 r1] 16 B offload (peeled)"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<std::string> lines;
    for (const Handle& handle : handles_of(row.residuals, row.has_names))
      lines.push_back(line_of(handle));
    CHECK(lines == row.expected);
  }
}

TEST_CASE("the compiled policy is where the dump has each handle") {
  const auto handles = handles_of({{{"a"}, 8}, {{"b"}, 8, kHost}, {{"c"}, 8}}, true);
  CHECK(compiled_policy(handles) == Policy{Choice::kKeep, Choice::kOffload, Choice::kKeep});
  CHECK(compiled_policy({}).empty());
}

TEST_CASE("layers of a name get a handle of their own") {
  UnrolledTable table;
  table.layers.resize(5);
  Handle handle;
  handle.name = "q";
  handle.aliases = {"query"};
  handle.unrolled = {UnrolledId(0)};
  handle.bytes = Bytes(500);
  std::vector<Handle> handles = {handle};
  const auto text = [&] {
    std::string lines;
    for (const Handle& one : handles)
      lines += one.name + "=" + one.aliases.front() + layers_text(layers_of(one, table)) + " " +
               std::to_string(one.bytes.value()) + "; ";
    return lines;
  };
  CHECK(text() == "q=query@0-4 500; ");
  split_layers(handles, table, {"query", {1, 2, 4}});
  CHECK(text() == "q=query@0,3 200; q@1-2,4=query@1-2,4@1-2,4 300; ");
  split_layers(handles, table, {"q", {1}});  // another has it
  split_layers(handles, table, {"q", {7}});
  split_layers(handles, table, {"k", {0}});
  split_layers(handles, table, {"q", {}});
  CHECK(handles.size() == 2);
  split_layers(handles, table, {"q", {0, 3}});  // all that was left
  CHECK(text() == "q@0,3=query@0,3@0,3 200; q@1-2,4=query@1-2,4@1-2,4 300; ");
  // What is scanned has no layers to split.
  std::vector<Handle> scanned(1);
  scanned[0].name = "q";
  split_layers(scanned, {}, {"q", {0}});
  CHECK(scanned.size() == 1);
}

}  // namespace
}  // namespace spillway
