// Small HloProtos for tests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "model/hlo/proto/hlo.pb.h"

namespace spillway::testing {

constexpr int kF32 = 11, kS32 = 4, kPred = 1, kTuple = 13;

inline pb::Shape array(int type, std::initializer_list<std::int64_t> dims, int space = 0) {
  pb::Shape shape;
  shape.set_element_type(type);
  for (const std::int64_t dim : dims) shape.add_dimensions(dim);
  pb::Layout& layout = *shape.mutable_layout();
  for (int d = static_cast<int>(dims.size()); d-- > 0;) layout.add_minor_to_major(d);
  layout.set_memory_space(space);
  return shape;
}

inline pb::Shape tuple(std::initializer_list<pb::Shape> elements) {
  pb::Shape shape;
  shape.set_element_type(kTuple);
  for (const pb::Shape& element : elements) *shape.add_tuple_shapes() = element;
  return shape;
}

inline pb::HloInstruction instruction(std::int64_t id, const std::string& name,
                                      const std::string& opcode, const pb::Shape& shape,
                                      std::initializer_list<std::int64_t> operands = {},
                                      std::initializer_list<std::int64_t> called = {}) {
  pb::HloInstruction in;
  in.set_id(id);
  in.set_name(name);
  in.set_opcode(opcode);
  *in.mutable_shape() = shape;
  for (const std::int64_t operand : operands) in.add_operand_ids(operand);
  for (const std::int64_t callee : called) in.add_called_computation_ids(callee);
  return in;
}

/// The last instruction is the root.
inline void add_computation(pb::HloModule& module, std::int64_t id, const std::string& name,
                            std::initializer_list<pb::HloInstruction> instructions) {
  pb::HloComputation& computation = *module.add_computations();
  computation.set_id(id);
  computation.set_name(name);
  for (const pb::HloInstruction& in : instructions) {
    *computation.add_instructions() = in;
    computation.set_root_id(in.id());
  }
  module.set_entry_computation_id(id);
}

/// A schedule in the order of the proto, for every computation.
inline void schedule_all(pb::HloModule& module) {
  module.clear_schedule();
  for (const pb::HloComputation& computation : module.computations()) {
    pb::ScheduledComputation& scheduled = *module.mutable_schedule()->add_sequences();
    scheduled.set_computation_id(computation.id());
    for (const pb::HloInstruction& in : computation.instructions())
      scheduled.mutable_sequence()->add_instruction_ids(in.id());
  }
}

inline constexpr std::int64_t kHigh = std::int64_t{7} << 32;  // ids as XLA has them today

/// A loop that runs four times and adds one to an array; the array is donated.
inline pb::HloFile toy_proto() {
  pb::HloFile file;
  pb::HloModule& module = *file.mutable_module();
  module.set_name("toy");
  const pb::Shape count = array(kS32, {}), data = array(kF32, {8, 4});
  const pb::Shape state = tuple({count, data});
  const auto element = [](pb::HloInstruction in, std::int64_t index) {
    in.set_tuple_index(index);
    return in;
  };
  pb::HloInstruction four = instruction(3, "four", "constant", count);
  four.mutable_literal()->add_s32s(4);
  pb::HloInstruction less = instruction(4, "less", "compare", array(kPred, {}), {2, 3});
  less.set_comparison_direction("LT");
  less.set_comparison_order("TOTAL");
  add_computation(module, 1, "condition",
                  {instruction(1, "c.state", "parameter", state),
                   element(instruction(2, "c.i", "get-tuple-element", count, {1}), 0), four, less});
  pb::HloInstruction one = instruction(kHigh + 9, "one", "constant", count);
  one.mutable_literal()->add_s32s(1);
  add_computation(
      module, 2, "body",
      {instruction(kHigh + 1, "b.state", "parameter", state),
       element(instruction(kHigh + 2, "b.i", "get-tuple-element", count, {kHigh + 1}), 0),
       element(instruction(kHigh + 3, "b.x", "get-tuple-element", data, {kHigh + 1}), 1), one,
       instruction(kHigh + 4, "next", "add", count, {kHigh + 2, kHigh + 9}),
       instruction(kHigh + 5, "twice", "add", data, {kHigh + 3, kHigh + 3}),
       instruction(kHigh + 6, "b.out", "tuple", state, {kHigh + 4, kHigh + 5})});
  pb::HloInstruction loop = instruction(13, "loop", "while", state, {12}, {2, 1});
  loop.set_backend_config(R"({"known_trip_count":{"n":"4"}})");
  loop.mutable_metadata()->set_op_name("jit(step)/while['x']");
  loop.mutable_metadata()->set_stack_frame_id(1);
  pb::HloInstruction zero = instruction(10, "zero", "constant", count);
  zero.mutable_literal()->add_s32s(0);
  add_computation(module, 5, "main",
                  {zero, instruction(11, "x", "parameter", data),
                   instruction(12, "start", "tuple", state, {10, 11}), loop,
                   element(instruction(14, "out", "get-tuple-element", data, {13}), 1)});
  pb::AliasEntry& alias = *module.mutable_input_output_alias()->add_entries();
  alias.set_kind(1);
  pb::StackFrameIndex& frames = *module.mutable_stack_frame_index();
  frames.add_file_names("step.py");
  frames.add_function_names("step");
  pb::FileLocation& location = *frames.add_file_locations();
  location.set_file(1);
  location.set_function(1);
  location.set_line(61);
  frames.add_stack_frames()->set_location(1);
  module.mutable_device_assignment()->set_replica_count(1);
  module.mutable_device_assignment()->set_computation_count(8);
  schedule_all(module);
  return file;
}

/// The same as text.
inline constexpr const char* kToyText =
    R"(HloModule toy, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }, num_partitions=8

FileNames
1 "step.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=61 end_line=61 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=0}

%condition (c.state: (s32[], f32[8,4])) -> pred[] {
  %c.state = (s32[], f32[8,4]{1,0}) parameter(0)
  %four = s32[] constant(4)
  ROOT %less = pred[] compare(%c.state#0, %four), direction=LT
}

%body (b.state: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %b.state = (s32[], f32[8,4]{1,0}) parameter(0)
  %one = s32[] constant(1)
  %next = s32[] add(%b.state#0, %one)
  %twice = f32[8,4]{1,0} add(%b.state#1, %b.state#1)
  ROOT %b.out = (s32[], f32[8,4]{1,0}) tuple(%next, %twice)
}

ENTRY %main (x: f32[8,4]) -> f32[8,4] {
  %zero = s32[] constant(0)
  %x = f32[8,4]{1,0} parameter(0)
  %start = (s32[], f32[8,4]{1,0}) tuple(%zero, %x)
  %loop = (s32[], f32[8,4]{1,0}) while(%start), condition=%condition, body=%body, metadata={op_name="jit(step)/while[\'x\']" stack_frame_id=1}, backend_config={"known_trip_count":{"n":"4"}}
  ROOT %out = f32[8,4]{1,0} get-tuple-element(%loop), index=1
}
)";

inline std::shared_ptr<const std::string> bytes_of(const pb::HloFile& file) {
  return std::make_shared<const std::string>(file.SerializeAsString());
}

}  // namespace spillway::testing
