// Pieces of fusions, told by their text.
#include "sim/rewrite/fusion_parts.h"

#include <doctest/doctest.h>

#include "tests/sim/rewrite/describe.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::describe;

using Numbers = std::vector<std::uint32_t>;

/// Writes h = tanh(x) into a stack and hands h out, too; y stands aside.
Program maker() {
  return testing::read_entry(R"(
  %stack = f32[4,8]{1,0} parameter(0)
  %x = f32[8]{0} parameter(1)
  %i = s32[] parameter(2)
  %y = f32[8]{0} parameter(3)
  %zero = s32[] constant(0)
  %h = f32[8]{0} tanh(%x)
  %layer = f32[1,8]{1,0} bitcast(%h)
  %new = f32[4,8]{1,0} dynamic-update-slice(%stack, %layer, %i, %zero)
  %twice = f32[8]{0} add(%h, %y)
  ROOT %out = (f32[8]{0}, f32[4,8]{1,0}, f32[8]{0}) tuple(%h, %new, %twice)
)");
}

/// Reads slices of a stack, twice the same, behind a renaming.
Program reader(const std::string& second_slice) {
  return testing::read_entry(R"(
  %x = f32[8]{0} parameter(0)
  %stack = f32[4,8]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  %flat = f32[4,8]{1,0} bitcast(%stack)
  %s1 = f32[1,8]{1,0} dynamic-slice(%stack, %i, %zero), dynamic_slice_sizes={1,8}
  )" + second_slice + R"(
  %b1 = f32[8]{0} bitcast(%s1)
  %b2 = f32[8]{0} bitcast(%s2)
  %m = f32[8]{0} multiply(%x, %b1)
  ROOT %r = f32[8]{0} add(%m, %b2)
)");
}
constexpr const char* kSameSlice =
    "%s2 = f32[1,8]{1,0} dynamic-slice(%flat, %i, %zero), dynamic_slice_sizes={1,8}";

Operand named(const Program& program, const char* name) {
  return {testing::find_instruction(program, name).instruction, 0};
}
const Instruction& parameter(const Computation& computation, std::uint32_t number) {
  return computation[computation.parameters()[number]];
}

TEST_CASE("a part is what its root needs, with the parameters it still takes") {
  const Program program = maker();
  const auto storage = std::make_shared<RewriteStorage>();
  const Computation& inner = program.entry_computation();
  struct Row {
    const char* root;
    const char* expected;
    Numbers parameters;
  };
  const Row rows[] = {
      {"h", "x h(x) -> h", {1}},
      {"twice", "x y h(x) twice(h,y) -> twice", {1, 3}},
      {"new", "stack x i zero h(x) layer(h) new(stack,layer,i,zero) -> new", {0, 1, 2}},
      {"x", "x -> x", {1}},
      {"zero", "zero -> zero", {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.root);
    const FusionPart part = cut_fusion(inner, named(program, row.root), {}, "part", storage);
    CHECK(describe(*part.computation) == row.expected);
    CHECK(part.parameters == row.parameters);
    CHECK(part.computation->name() == "part");
    REQUIRE(part.computation->parameters().size() == row.parameters.size());
    for (std::uint32_t k = 0; k < row.parameters.size(); ++k)
      CHECK(parameter(*part.computation, k).name == parameter(inner, row.parameters[k]).name);
  }
}

TEST_CASE("what is cut at is handed in, in its own shape") {
  const Program program = maker();
  const auto storage = std::make_shared<RewriteStorage>();
  const Computation& inner = program.entry_computation();
  const InstructionIndex layer = named(program, "layer").instruction;
  const FusionPart update =
      cut_fusion(inner, named(program, "new"), {{{layer}, inner[layer].shape}}, "cut", storage);
  CHECK(describe(*update.computation) ==
        "stack i zero handed_in.0 layer(handed_in.0) new(stack,layer,i,zero) -> new");
  CHECK(update.parameters == Numbers{0, 2});
  CHECK(parameter(*update.computation, 2).name == "handed_in.0");
  CHECK(same_shape(parameter(*update.computation, 2).shape, inner[layer].shape));
  // Several cuts, one of which stands for two values of different shapes.
  const InstructionIndex h = named(program, "h").instruction;
  const InstructionIndex zero = named(program, "zero").instruction;
  const FusionPart rest =
      cut_fusion(inner, inner.root(), {{{h, layer}, inner[h].shape}, {{zero}, inner[zero].shape}},
                 "rest", storage);
  CHECK(describe(*rest.computation) ==
        "stack i y handed_in.1 zero(handed_in.1) handed_in.0 h(handed_in.0) layer(handed_in.0) "
        "new(stack,layer,i,zero) twice(h,y) out(h,new,twice) -> out");
  CHECK(rest.parameters == Numbers{0, 2, 3});
  CHECK(parameter(*rest.computation, 3).name == "handed_in.0");
  CHECK(parameter(*rest.computation, 4).name == "handed_in.1");
}

TEST_CASE("an output goes, with what only it needed") {
  const Program program = maker();
  const auto storage = std::make_shared<RewriteStorage>();
  const Computation& inner = program.entry_computation();
  const FusionPart no_stack = drop_output(inner, 1, "rest", storage);
  CHECK(describe(*no_stack.computation) == "x y h(x) twice(h,y) out(h,twice) -> out");
  CHECK(no_stack.parameters == Numbers{1, 3});
  CHECK(to_string(no_stack.computation->root_instruction().shape) == "(f32[8], f32[8])");
  // What another output shares stays; one that is left is no tuple.
  const FusionPart no_h = drop_output(inner, 0, "rest", storage);
  CHECK(describe(*no_h.computation) ==
        "stack x i y zero h(x) layer(h) new(stack,layer,i,zero) twice(h,y) out(new,twice) -> out");
  const FusionPart one = drop_output(*no_stack.computation, 0, "rest", storage);
  CHECK(describe(*one.computation) == "x y h(x) twice(h,y) -> twice");
  CHECK(one.parameters == Numbers{0, 1});
}

TEST_CASE("a parameter is computed inside instead of being handed in") {
  const Program slice = testing::read_entry(R"(
  %from = f32[4,8]{1,0} parameter(0)
  %at = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %cut = f32[1,8]{1,0} dynamic-slice(%from, %at, %zero), dynamic_slice_sizes={1,8}
)");
  const Program use = testing::read_entry(R"(
  %layer = f32[1,8]{1,0} parameter(0)
  %x = f32[8]{0} parameter(1)
  %b = f32[8]{0} bitcast(%layer)
  ROOT %m = f32[8]{0} multiply(%x, %b)
)");
  const auto joined = compute_parameter(use.entry_computation(), 0, slice.entry_computation(),
                                        "joined", std::make_shared<RewriteStorage>());
  CHECK(describe(*joined) ==
        "x sliced.zero sliced.at sliced.from sliced.cut(sliced.from,sliced.at,sliced.zero) "
        "layer(sliced.cut) b(layer) m(x,b) -> m");
  REQUIRE(joined->parameters().size() == 3);
  CHECK(parameter(*joined, 0).name == "x");
  CHECK(parameter(*joined, 1).name == "sliced.from");
  CHECK(parameter(*joined, 2).name == "sliced.at");
  // And the other way round: its slice is found, and can be cut out again.
  const auto slices = find_slices(*joined, 1);
  REQUIRE(slices.size() == 1);
  CHECK((*joined)[slices[0]].name == "sliced.cut");
}

TEST_CASE("the update of a parameter is found, and which output it makes") {
  const Program program = maker();
  const Computation& inner = program.entry_computation();
  const auto update = find_update(inner, 0);
  REQUIRE(update.has_value());
  CHECK(update->output == 1);
  CHECK(inner[update->instruction].name == "new");
  for (const std::uint32_t other : {1u, 2u, 3u}) CHECK_FALSE(find_update(inner, other).has_value());

  struct Row {
    const char* what;
    const char* lines;
    bool found;
  };
  const Row rows[] = {
      {"the whole result",
       "  ROOT %u = f32[4,8]{1,0} dynamic-update-slice(%stack, %layer, %i, %i)\n", true},
      {"behind renamings of stack and result",
       "  %flat = f32[32]{0} bitcast(%stack)\n  %square = f32[4,8]{1,0} reshape(%flat)\n"
       "  %u = f32[4,8]{1,0} dynamic-update-slice(%square, %layer, %i, %i)\n"
       "  ROOT %r = f32[32]{0} bitcast(%u)\n",
       true},
      {"of something that was computed",
       "  %n = f32[4,8]{1,0} negate(%stack)\n"
       "  ROOT %u = f32[4,8]{1,0} dynamic-update-slice(%n, %layer, %i, %i)\n",
       false},
      {"that is computed with",
       "  %u = f32[4,8]{1,0} dynamic-update-slice(%stack, %layer, %i, %i)\n"
       "  ROOT %n = f32[4,8]{1,0} negate(%u)\n",
       false}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Program fused = testing::read_entry(
        std::string("  %stack = f32[4,8]{1,0} parameter(0)\n  %layer = f32[1,8]{1,0} "
                    "parameter(1)\n  %i = s32[] parameter(2)\n") +
        row.lines);
    CHECK(find_update(fused.entry_computation(), 0).has_value() == row.found);
  }
}

TEST_CASE("slices of a parameter are found when all are of one place") {
  const Program program = reader(kSameSlice);
  const Computation& fused = program.entry_computation();
  CHECK(find_slices(fused, 1).size() == 2);
  CHECK(find_slices(fused, 0).empty());  // x is multiplied as a whole
  CHECK(find_slices(fused, 2).empty());  // i is an index
  struct Row {
    const char* what;
    const char* slice;
  };
  const Row rows[] = {
      {"another place",
       "%s2 = f32[1,8]{1,0} dynamic-slice(%flat, %zero, %zero), dynamic_slice_sizes={1,8}"},
      {"another size",
       "%s2 = f32[1,4]{1,0} dynamic-slice(%flat, %i, %zero), dynamic_slice_sizes={1,4}"},
      {"a fixed place", "%s2 = f32[1,8]{1,0} slice(%flat), slice={[0:1], [0:8]}"},
      {"the whole", "%s2 = f32[4,8]{1,0} negate(%flat)"},
      {"as what is sliced with",
       "%n = s32[4,8]{1,0} convert(%x)\n  %s2 = f32[1,8]{1,0} dynamic-slice(%n, %flat, %zero), "
       "dynamic_slice_sizes={1,8}"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(find_slices(reader(row.slice).entry_computation(), 1).empty());
  }
  const Program fixed = testing::read_entry(R"(
  %stack = f32[4,8]{1,0} parameter(0)
  %s1 = f32[1,8]{1,0} slice(%stack), slice={[1:2], [0:8]}
  %s2 = f32[1,8]{1,0} slice(%stack), slice={[1:2], [0:8]}
  %s3 = f32[1,8]{1,0} add(%s1, %s2)
  ROOT %r = f32[8]{0} bitcast(%s3)
)");
  CHECK(find_slices(fixed.entry_computation(), 0).size() == 2);
}

TEST_CASE("slices that nothing is computed with are none") {
  const Program program = testing::read_entry(R"(
  %dead = f32[4,8]{1,0} parameter(0)
  %where = s32[4]{0} parameter(1)
  %stack = f32[4,8]{1,0} parameter(2)
  %zero = s32[] constant(0)
  %d1 = f32[1,8]{1,0} slice(%dead), slice={[0:1], [0:8]}
  %w1 = s32[1]{0} slice(%where), slice={[0:1]}
  %start = s32[] bitcast(%w1)
  %s1 = f32[1,8]{1,0} dynamic-slice(%stack, %start, %zero), dynamic_slice_sizes={1,8}
  ROOT %r = f32[8]{0} bitcast(%s1)
)");
  CHECK(find_slices(program.entry_computation(), 0).empty());
  CHECK(find_slices(program.entry_computation(), 1).empty());  // goes where the slice goes
  CHECK(find_slices(program.entry_computation(), 2).size() == 1);
}

TEST_CASE("a parameter is found behind renamings alone") {
  const Program program = maker();
  const Computation& inner = program.entry_computation();
  CHECK(find_parameter(inner, named(program, "x")) == 1u);
  CHECK(find_parameter(inner, named(program, "layer")) == std::nullopt);  // a bitcast of tanh
  const Program renamed = reader(kSameSlice);
  CHECK(find_parameter(renamed.entry_computation(), named(renamed, "flat")) == 1u);
}

TEST_CASE("a moved parameter takes along what is updated in place or renamed from it") {
  const auto in_host_memory = [](const Program& program, const Numbers& parameters) {
    const auto moved =
        move_parameters(program.entry_computation(), parameters, MemorySpace::kPinnedHost,
                        std::make_shared<RewriteStorage>());
    std::string names;
    for (const InstructionIndex i : moved->instructions())
      for (ShapeNodeIndex node = 0; node < (*moved)[i].shape.node_count(); ++node)
        if (is_host((*moved)[i].shape.at(node).space()))
          names += (names.empty() ? "" : " ") + describe(*moved, Operand{i, node});
    CHECK(describe(*moved) == describe(program.entry_computation()));
    return names;
  };
  CHECK(in_host_memory(maker(), {0}) == "stack new out#2");
  CHECK(in_host_memory(maker(), {1}) == "x");
  CHECK(in_host_memory(maker(), {}) == "");
  // A slice is made anew, on the device.
  CHECK(in_host_memory(reader(kSameSlice), {1}) == "stack flat");
}

}  // namespace
}  // namespace spillway
