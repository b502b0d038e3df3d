// Edits of a computation, told by its text: what stands where and reads what.
#include "sim/rewrite/editor.h"

#include <doctest/doctest.h>

#include "sim/rewrite/program_editor.h"
#include "tests/sim/rewrite/describe.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::describe;
using Handle = ComputationEditor::Handle;
using Nodes = std::vector<std::optional<ShapeNodeIndex>>;

constexpr Handle kP = 0, kC = 1, kA = 2, kB = 3, kT = 4, kR = 5;

/// p, c, a = p + c, b = a * a, t = (a, b), r = t#1 - p
Program five() {
  return testing::read_entry(R"(
  %p = f32[4]{0} parameter(0)
  %c = f32[4]{0} constant({1, 2, 3, 4})
  %a = f32[4]{0} add(%p, %c)
  %b = f32[4]{0} multiply(%a, %a)
  %t = (f32[4]{0}, f32[4]{0}) tuple(%a, %b)
  ROOT %r = f32[4]{0} subtract(%t#1, %p)
)");
}
constexpr const char* kFive = "p c a(p,c) b(a,a) t(a,b) r(t#2,p) -> r";

/// The computation after an edit.
template <typename Edit>
std::string edited(const Edit& edit) {
  const Program program = five();
  ComputationEditor editor(program.entry_computation());
  edit(editor);
  return describe(*editor.finish("edited", std::make_shared<RewriteStorage>()));
}

TEST_CASE("an untouched copy is the computation") {
  CHECK(edited([](ComputationEditor&) {}) == kFive);
  const Program program = five();
  const Computation& original = program.entry_computation();
  const auto copy = ComputationEditor(original).finish("copy", nullptr);
  CHECK(copy->name() == "copy");
  for (const InstructionIndex i : original.instructions()) {
    CHECK(same_shape((*copy)[i].shape, original[i].shape));
    CHECK((*copy)[i].literal == original[i].literal);
  }
}

TEST_CASE("instructions move, and their readers follow") {
  CHECK(edited([](auto& e) { e.move_after(kC, kP); }) == kFive);
  CHECK(edited([](auto& e) { e.move_before(kC, kP); }) == "c p a(p,c) b(a,a) t(a,b) r(t#2,p) -> r");
  CHECK(edited([](auto& e) {
          const Handle n = e.add(make_node("n", Opcode::kNegate, e.shape_of({kA, 0})));
          e[n].operands = {{kA, 0}};
          e.move_after(n, kA);
          CHECK(e.place(n) == 3);
          CHECK(e.place(kB) == 4);
        }) == "p c a(p,c) n(a) b(a,a) t(a,b) r(t#2,p) -> r");
  CHECK(edited([](auto& e) {
          const Handle n = e.add(make_node("n", Opcode::kNegate, e.shape_of({kP, 0})));
          e[n].operands = {{kP, 0}};
          e.move_to_top(n);  // behind parameters and constants, in front of the rest
        }) == "p c n(p) a(p,c) b(a,a) t(a,b) r(t#2,p) -> r");
}

TEST_CASE("readers are redirected, with what they read of a tuple, and one may be kept") {
  CHECK(edited([](auto& e) {
          e.redirect({kA, 0}, {kC, 0});
        }) == "p c a(p,c) b(c,c) t(c,b) r(t#2,p) -> r");
  CHECK(edited([](auto& e) {
          e.redirect({kA, 0}, {kC, 0}, kB);
        }) == "p c a(p,c) b(a,a) t(c,b) r(t#2,p) -> r");
  CHECK(edited([](auto& e) {
          e.redirect({kR, 0}, {kB, 0});
        }) == "p c a(p,c) b(a,a) t(a,b) r(t#2,p) -> b");
  // An element alone, not the other one.
  CHECK(edited([](auto& e) { e.redirect({kT, 1}, {kP, 0}); }) == kFive);
  CHECK(edited([](auto& e) {
          e.redirect({kT, 2}, {kP, 0});
        }) == "p c a(p,c) b(a,a) t(a,b) r(p,p) -> r");
  // The whole tuple: its elements are read at the same places of the other.
  CHECK(edited([](auto& e) {
          const Handle u = e.add(make_node("u", Opcode::kTuple, e.shape_of({kT, 0})));
          e[u].operands = {{kB, 0}, {kA, 0}};
          e.move_after(u, kT);
          e.redirect({kT, 0}, {u, 0});
        }) == "p c a(p,c) b(a,a) t(a,b) u(b,a) r(u#2,p) -> r");
}

TEST_CASE("what is read is known by element") {
  const Program program = five();
  ComputationEditor editor(program.entry_computation());
  CHECK(editor.users(kA) == std::vector<Handle>{kB, kT});
  CHECK(editor.users(kR).empty());
  CHECK(editor.is_read({kT, 2}));
  CHECK_FALSE(editor.is_read({kT, 1}));
  CHECK_FALSE(editor.is_read({kT, 0}));  // nobody takes the tuple as a whole
  CHECK(editor.is_read({kR, 0}));        // the root
  editor.set_root({kT, 0});
  CHECK(editor.is_read({kT, 0}));
  CHECK(editor.is_read({kT, 1}));  // with the whole
  CHECK_FALSE(editor.is_read({kR, 0}));
  editor.erase(kB);
  CHECK(editor.users(kA) == std::vector<Handle>{kT});  // who is erased reads nothing
}

TEST_CASE("elements get new numbers where a result has changed") {
  // The tuple loses its first element: element 2 becomes 1.
  CHECK(edited([](auto& e) {
          RewriteStorage storage;
          e[kT].operands = {{kB, 0}};
          e.renumber(kT, Nodes{0, std::nullopt, 1});
        }) == "p c a(p,c) b(a,a) t(b) r(t#1,p) -> r");
  CHECK(edited([](auto& e) {
          e.set_root({kT, 2});
          e.renumber(kT, Nodes{0, 2, 1});
        }) == "p c a(p,c) b(a,a) t(a,b) r(t#1,p) -> t#1");
}

TEST_CASE("what the root does not need is dropped; parameters stay") {
  CHECK(edited([](auto& e) { e.drop_dead(); }) == kFive);
  CHECK(edited([](auto& e) {
          e.set_root({kB, 0});
          e.drop_dead();
        }) == "p c a(p,c) b(a,a) -> b");
  CHECK(edited([](auto& e) {
          e.set_root({kC, 0});
          e.drop_dead();
        }) == "p c -> c");
}

TEST_CASE("what nobody reads is erased, with what only it read, unless it has an effect") {
  const auto add_reader = [](ComputationEditor& e, Opcode opcode) {
    const Handle n = e.add(make_node("n", opcode, e.shape_of({kC, 0})));
    e[n].operands = {{kC, 0}};
    return n;
  };
  for (const Opcode opcode : {Opcode::kBitcast, Opcode::kBroadcast, Opcode::kCopy, Opcode::kFusion})
    CHECK(edited([&](auto& e) { e.erase_unread(add_reader(e, opcode)); }) == kFive);
  for (const Opcode opcode : {Opcode::kCustomCall, Opcode::kAllReduce, Opcode::kAsyncStart})
    CHECK(edited([&](auto& e) { e.erase_unread(add_reader(e, opcode)); }) ==
          "p c a(p,c) b(a,a) t(a,b) r(t#2,p) n(c) -> r");
  // The chain goes as far as others do not read it.
  CHECK(edited([&](auto& e) {
          const Handle n = add_reader(e, Opcode::kCopy);
          const Handle m = e.add(make_node("m", Opcode::kBitcast, e.shape_of({n, 0})));
          e[m].operands = {{n, 0}};
          e.erase_unread(n);  // m reads it
          CHECK_FALSE(e[n].erased);
          e.erase_unread(m);
          CHECK(e[n].erased);
        }) == kFive);
  CHECK(edited([](auto& e) {
          e.redirect({kA, 0}, {kP, 0});
          e[kA].instruction.opcode = Opcode::kCopy;
          e.erase_unread(kA);  // and the constant, which only it read; parameters never go
        }) == "p b(p,p) t(p,b) r(t#2,p) -> r");
  CHECK(edited([](auto& e) {
          e.set_root({kC, 0});
          e.redirect({kA, 0}, {kP, 0});
          e[kA].instruction.opcode = Opcode::kCopy;
          e.erase_unread(kA);  // the root is read by whoever calls
        }) == "p c b(p,p) t(p,b) r(t#2,p) -> c");
}

TEST_CASE("an allocation that nobody reads goes, other custom calls stay") {
  const char* const lines = R"(
  %p = f32[4]{0} parameter(0)
  %block = f32[4]{0} custom-call(), custom_call_target="AllocateBuffer"
  %call = f32[4]{0} custom-call(), custom_call_target="AllocateBuffers"
  ROOT %r = f32[4]{0} negate(%p)
)";
  const Program program = testing::read_entry(lines);
  ComputationEditor editor(program.entry_computation());
  editor.erase_unread(1);
  editor.erase_unread(2);
  CHECK(describe(*editor.finish("edited", nullptr)) == "p call r(p) -> r");
}

TEST_CASE("shapes are copied with another memory space, and joined to tuples") {
  RewriteStorage storage;
  const Program program = testing::read_entry(R"(
  %p = (f32[2,4]{0,1}, (s32[], bf16[8]{0:S(5)})) parameter(0)
  ROOT %c = (f32[2,4]{0,1}, (s32[], bf16[8]{0:S(5)})) copy(%p)
)");
  const Shape shape = program.entry_computation().root_instruction().shape;
  const Shape moved = with_space(shape, {1}, MemorySpace::kPinnedHost, storage);
  CHECK(compatible(moved, shape));
  CHECK_FALSE(same_shape(moved, shape));
  CHECK(moved.at(1).space() == MemorySpace::kPinnedHost);
  CHECK(moved.at(1).minor_to_major()[0] == 0);
  CHECK(moved.at(4).space() == MemorySpace::kPinnedHost);
  CHECK(same_shape(with_space(moved, {1}, MemorySpace::kDevice, storage), shape));
  // A part of a shape is copied alone.
  CHECK(same_shape(with_space(shape.element(1), {}, MemorySpace::kDevice, storage),
                   shape.element(1)));
  const Shape pair = make_tuple_shape({shape.element(0), shape.element(1)}, storage);
  CHECK(same_shape(pair, shape));
  CHECK(pair.bytes() == Bytes(16));
  CHECK(pair.array_bytes() == shape.array_bytes());
  CHECK(to_string(make_context_shape(storage)) == "u32[]");
  CHECK(make_context_shape(storage).bytes() == Bytes(4));
}

TEST_CASE("an edited program shares what was not touched, and outlives the original") {
  std::optional<Program> edited;
  {
    const Program program = testing::toy_program(
        "%f () -> f32[] {\n  %fp = f32[4]{0} parameter(0)\n  ROOT %fn = f32[4]{0} negate(%fp)\n}\n"
        "ENTRY %main () -> f32[] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %r = f32[4]{0} "
        "fusion(%p), kind=kLoop, calls=%f\n}\n");
    ProgramEditor editor(program);
    ComputationEditor& entry = editor.edit(program.entry);
    entry[0].instruction.name = editor.text("renamed");
    CHECK(&editor.edit(program.entry) == &entry);  // all edits of one meet in it
    edited = editor.finish();
    CHECK(edited->computations[ComputationId(0)] == program.computations[ComputationId(0)]);
    CHECK(edited->computations[program.entry] != program.computations[program.entry]);
    CHECK(describe(program.entry_computation()) == "p r(p) -> r");
  }
  CHECK(describe(edited->entry_computation()) == "renamed r(renamed) -> r");
}

TEST_CASE("what nobody reads goes, and what only that read") {
  const std::string left = edited([](ComputationEditor& editor) {
    ComputationEditor::Node copy;
    copy.instruction = editor[kA].instruction;
    copy.instruction.opcode = Opcode::kCopy;
    copy.operands = {{kA, 0}};
    const Handle first = editor.add(copy);
    copy.operands = {{first, 0}};
    editor.add(copy);
    editor.erase_all_unread();
  });
  CHECK(left == kFive);
}

}  // namespace
}  // namespace spillway
