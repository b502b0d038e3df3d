#include "model/diagnostics/slice_offsets.h"

#include <algorithm>
#include <vector>

#include "model/base/json_value.h"
#include "model/program/call_graph.h"
#include "model/program/loop_scalar.h"

namespace spillway {
namespace {

/// Empty where the annotation counts another loop than the innermost.
std::optional<SliceWalk> annotated_walk(const Computation& computation, InstructionIndex slice) {
  const std::string_view config = computation.attribute(slice, "backend_config").value_or("");
  std::string_view walk = json_value(config, "dynamic_slice_config");
  const std::string_view loop = json_value(walk, "loop_index");
  if (!loop.empty() && loop != "0") return std::nullopt;
  // Since 0.12 the numbers stand one level deeper, and zeros in their old place.
  if (const auto linear = json_value(walk, "linear"); !linear.empty()) walk = linear;
  const auto offset = to_integer(json_value(walk, "byte_offset"));
  const auto stride = to_integer(json_value(walk, "byte_stride"));
  if (!offset || !stride) return std::nullopt;
  return SliceWalk{*offset, *stride};
}

/// The dynamic slice or update of operand `number` in what an instruction calls.
std::optional<InstructionIndex> slice_of_parameter(const Computation& computation,
                                                   std::uint32_t number) {
  for (const InstructionIndex i : computation.instructions())
    if ((computation[i].opcode == Opcode::kDynamicSlice ||
         computation[i].opcode == Opcode::kDynamicUpdateSlice) &&
        find_parameter(computation, computation.operands(i)[0]) == number)
      return i;
  return std::nullopt;
}

/// The index along the first dimension, where an instruction reads or writes a slice that is one
/// whole layer: the layer's number.
std::optional<Operand> layer_index(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  const bool update = in.opcode == Opcode::kDynamicUpdateSlice;
  if (!update && in.opcode != Opcode::kDynamicSlice) return std::nullopt;
  const std::uint32_t index = update ? 2 : 1;
  if (in.operand_count <= index) return std::nullopt;
  const auto operands = computation.operands(i);
  const Shape stack = computation.shape_of(operands[0]);
  const Shape slice = update ? computation.shape_of(operands[1]) : in.shape;
  const auto order = stack.minor_to_major();
  const auto layer = slice.dims();
  const bool whole = !layer.empty() && layer.size() == stack.dims().size() && layer[0] == 1 &&
                     std::ranges::equal(layer.subspan(1), stack.dims().subspan(1)) &&
                     (order.empty() || order.back() == 0);
  return whole ? std::optional(operands[index]) : std::nullopt;
}

/// A dynamic slice or update, its index, and the calls that lead from the body of the loop to it.
struct Located {
  InstructionId slice;
  Operand index;
  std::vector<InstructionId> calls;
};

std::optional<Located> locate_slice(const Program& program, const FlatSchedule& schedule,
                                    const StackAccess& read, ComputationId body) {
  Located located{read.instruction, {}, {}};
  for (ComputationId at = read.instruction.computation; at != body;) {
    const auto caller = schedule.caller[at];
    // What these call gets their operands as they are; a branch or another loop does not.
    if (!caller) return std::nullopt;
    const Opcode opcode = program[*caller].opcode;
    if (opcode != Opcode::kCall && opcode != Opcode::kAsyncStart) return std::nullopt;
    located.calls.insert(located.calls.begin(), *caller);
    at = caller->computation;
  }
  if (program[read.instruction].opcode == Opcode::kFusion) {
    located.calls.push_back(read.instruction);
    const ComputationId fused =
        program[read.instruction.computation].called(read.instruction.instruction)[0];
    const auto inner = slice_of_parameter(program[fused], read.operand);
    if (!inner) return std::nullopt;
    located.slice = {fused, *inner};
  }
  const Computation& holder = program[located.slice.computation];
  const auto index = layer_index(holder, located.slice.instruction);
  if (!index) return std::nullopt;
  located.index = *index;
  return located;
}

/// Which layer a slice is, at a moment of the computation that leads to it.
std::optional<std::int64_t> layer_at(const Program& program, const Located& located,
                                     CallFrame outermost, Follow follow) {
  std::vector<CallFrame> frames(located.calls.size() + 1);
  frames[0] = outermost;
  for (std::size_t k = 0; k < located.calls.size(); ++k) {
    const InstructionId call = located.calls[k];
    frames[k + 1] = {program[call.computation].called(call.instruction)[0], call, &frames[k]};
  }
  const auto layer = scalar_value(program, frames.back(), located.index, follow);
  const Computation& computation = program[located.slice.computation];
  const std::int64_t layers =
      computation.shape_of(computation.operands(located.slice.instruction)[0]).dims()[0];
  return layer && *layer >= 0 && *layer < layers ? layer : std::nullopt;
}

/// A slice in the body of a loop that runs at least twice.
struct Looped {
  Located located;
  ComputationId body;
  InstructionId loop;
};

/// The walk that the slice's index along the first dimension makes.
std::optional<LayerWalk> walk_layers(const Program& program, const Looped& slice, Follow follow) {
  const auto layer_in = [&](std::int64_t iteration) {
    return layer_at(program, slice.located,
                    {slice.body, {}, nullptr, LoopMoment{slice.loop, iteration}}, follow);
  };
  const auto first = layer_in(0), second = layer_in(1);
  if (!first || !second) return std::nullopt;
  return LayerWalk{*first, *second - *first};
}

/// The same in bytes, of a slice that is read.
std::optional<SliceWalk> asked_walk(const Program& program, const Looped& slice) {
  const auto layers = walk_layers(program, slice, Follow::kCounter);
  if (!layers) return std::nullopt;
  const std::int64_t a_layer = program[slice.located.slice].shape.bytes().value();
  const auto offset = checked_multiply(layers->first, a_layer);
  const auto stride = checked_multiply(layers->step, a_layer);
  if (!offset || !stride) return std::nullopt;
  return SliceWalk{*offset, *stride};
}

std::optional<Looped> locate_in_loop(const Program& program, const FlatSchedule& schedule,
                                     const StackAccess& access) {
  const auto trips = known_trip_count(program[access.loop.computation], access.loop.instruction);
  if (!find_counter(program, access.loop) || !trips || *trips < 2) return std::nullopt;
  const ComputationId body = body_of(program, access.loop);
  auto located = locate_slice(program, schedule, access, body);
  if (!located) return std::nullopt;
  return Looped{*std::move(located), body, access.loop};
}

}  // namespace

std::optional<LayerWalk> find_layer_walk(const Program& program, const FlatSchedule& schedule,
                                         const StackAccess& access) {
  const auto slice = locate_in_loop(program, schedule, access);
  return slice ? walk_layers(program, *slice, Follow::kCarried) : std::nullopt;
}

std::optional<std::int64_t> find_layer(const Program& program, const FlatSchedule& schedule,
                                       InstructionId copy) {
  StackAccess access{copy, 0, {}};
  while (program[access.instruction].opcode == Opcode::kAsyncStart) {
    const auto called =
        program[access.instruction.computation].called(access.instruction.instruction);
    access.instruction = {called[0], program[called[0]].root().instruction};
  }
  const InstructionId at = access.instruction;
  if (program[at].opcode == Opcode::kFusion) {
    const Computation& fused = program[program[at.computation].called(at.instruction)[0]];
    while (access.operand < program[at].operand_count && !slice_of_parameter(fused, access.operand))
      ++access.operand;
    if (access.operand == program[at].operand_count) return std::nullopt;
  }
  const auto located = locate_slice(program, schedule, access, copy.computation);
  return located ? layer_at(program, *located, {copy.computation}, Follow::kCarried) : std::nullopt;
}

SliceCheck check_slice(const Program& program, const FlatSchedule& schedule,
                       const StackAccess& read) {
  const auto slice = locate_in_loop(program, schedule, read);
  if (!slice) return {};
  const InstructionId at = slice->located.slice;
  if (program[at].opcode != Opcode::kDynamicSlice) return {};
  const auto annotated = annotated_walk(program[at.computation], at.instruction);
  const auto asked = asked_walk(program, *slice);
  if (!annotated || !asked) return {};
  if (*asked == *annotated) return {.checked = true, .wrong = {}};
  return {.checked = true, .wrong = WrongSlice{*asked, *annotated}};
}

std::optional<WrongSlice> find_wrong_slice(const Program& program, const FlatSchedule& schedule,
                                           const Residual& residual) {
  if (residual.placement != Placement::kPinnedHost) return std::nullopt;
  for (const StackAccess& read : residual.reads)
    if (const SliceCheck check = check_slice(program, schedule, read); check.wrong)
      return check.wrong;
  return std::nullopt;
}

}  // namespace spillway
