#include "model/memory/compare_xla.h"

#include <doctest/doctest.h>

#include "model/hlo/proto_reader.h"
#include "sim/report/inspect_report.h"
#include "tests/support/toy_proto.h"

namespace spillway {
namespace {

pb::BufferAllocation& add_allocation(pb::HloFile& file, std::int64_t size) {
  pb::BufferAllocation& made = *file.mutable_buffer_assignment()->add_allocations();
  made.set_index(file.buffer_assignment().allocations_size() - 1);
  made.set_size(size);
  return made;
}

void add_buffer(pb::HloFile& file, pb::BufferAllocation& to, std::int64_t instruction,
                std::int64_t size, std::initializer_list<std::int64_t> path = {}) {
  pb::LogicalBuffer& made = *file.mutable_buffer_assignment()->add_buffers();
  made.set_id(file.buffer_assignment().buffers_size());
  made.mutable_defined_at()->set_instruction_id(instruction);
  for (const std::int64_t index : path) made.mutable_defined_at()->add_path(index);
  pb::AssignedBuffer& assigned = *to.add_assigned();
  assigned.set_buffer(made.id());
  assigned.set_size(size);
}

/// The toy with the buffers that it gets: parameter and result are one, which the loop works in.
pb::HloFile assigned_toy(std::int64_t temp_bytes) {
  pb::HloFile file = testing::toy_proto();
  pb::BufferAllocation& x = add_allocation(file, 128);
  x.set_is_parameter(true);
  x.set_maybe_live_out(true);
  add_buffer(file, x, 11, 128);
  for (int constant = 0; constant < 0; ++constant) add_allocation(file, 4).set_is_constant(true);
  pb::BufferAllocation& temp = add_allocation(file, temp_bytes);
  add_buffer(file, temp, 12, 16);
  add_buffer(file, temp, 13, 4, {0});
  return file;
}

std::string difference_of(const pb::HloFile& file) {
  const Result<Program> program = hlo::read_hlo_proto(testing::bytes_of(file), "toy.hlo.pb");
  if (!program.ok()) return to_text(program.error());
  const InspectReport report = make_inspect_report(*program, {});
  for (const Diagnostic& diagnostic : report.diagnostics)
    if (diagnostic.code == "memory-differs") return diagnostic.message;
  return "";
}

TEST_CASE("inspect compares with the assignment of the file") {
  CHECK(difference_of(testing::toy_proto()) == "");  // there is none
  MESSAGE(difference_of(assigned_toy(1)));
}

TEST_CASE("assignments that cannot be") {
  const auto with = [](auto change) {
    pb::HloFile file = assigned_toy(64);
    change(*file.mutable_buffer_assignment());
    return difference_of(file);
  };
  const std::string start = "toy.hlo.pb: error: in XLA's buffer assignment, ";
  const std::string end = "\n  the file may be damaged";
  CHECK(with([](pb::BufferAssignment& b) { b.mutable_allocations(0)->set_size(-1); }) ==
        start + "allocation 0 has -1 bytes" + end);
  CHECK(with([](pb::BufferAssignment& b) { b.mutable_allocations(1)->set_color(256); }) ==
        start + "allocation 1 is in memory space 256" + end);
  CHECK(with([](pb::BufferAssignment& b) {
          b.mutable_allocations(0)->mutable_assigned(0)->set_buffer(9);
        }) == start + "allocation 0 holds buffer 9, which is not there" + end);
  CHECK(with([](pb::BufferAssignment& b) {
          b.mutable_allocations(0)->mutable_assigned(0)->set_offset(-8);
        }) == start + "buffer 1 has 128 bytes at -8" + end);
}

}  // namespace
}  // namespace spillway
