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
  for (int constant = 0; constant < 3; ++constant) add_allocation(file, 4).set_is_constant(true);
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
    if (diagnostic.code == "memory-differs") return diagnostic.message();
  return "";
}

TEST_CASE("inspect compares with the assignment of the file") {
  CHECK(difference_of(testing::toy_proto()) == "");  // there is none
  CHECK(difference_of(assigned_toy(257)) == "");
  CHECK(
      difference_of(assigned_toy(64)) ==
      "the file's own buffer assignment differs: XLA allocates 204 B on the device and 0 B on the "
      "host, where this report has 397 B and 0 B. First difference: XLA's allocation 4, a "
      "temporary block of 64 bytes for start, where ours is temporary block of 257 bytes. Trust "
      "XLA's figures for this program, and please report it.");
  pb::HloFile longer = assigned_toy(257);
  add_allocation(longer, 8).set_is_thread_local(true);
  CHECK(difference_of(longer).find("First difference: XLA's allocation 5, a thread-local scalar of "
                                   "8 bytes, where ours is none.") != std::string::npos);
  pb::HloFile shorter = assigned_toy(257);
  shorter.mutable_buffer_assignment()->mutable_allocations()->RemoveLast();
  CHECK(difference_of(shorter).find("First difference: a temporary block of 257 bytes that XLA "
                                    "does not have.") != std::string::npos);
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
  CHECK(with([](pb::BufferAssignment& b) { b.mutable_allocations(4)->set_color(256); }) ==
        start + "allocation 4 is in memory space 256" + end);
  CHECK(with([](pb::BufferAssignment& b) {
          b.mutable_allocations(0)->mutable_assigned(0)->set_buffer(9);
        }) == start + "allocation 0 holds buffer 9, which is not there" + end);
  CHECK(with([](pb::BufferAssignment& b) {
          b.mutable_allocations(0)->mutable_assigned(0)->set_offset(-8);
        }) == start + "buffer 1 has 128 bytes at -8" + end);
}

}  // namespace
}  // namespace spillway
