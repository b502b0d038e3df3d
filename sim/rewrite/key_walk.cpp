#include "sim/rewrite/key_walk.h"

#include <algorithm>
#include <string_view>

#include "model/program/call_graph.h"
#include "sim/rewrite/fusion_parts.h"

namespace spillway {
namespace {

bool is_integer_scalar(Shape shape) {
  if (!shape.is_array() || shape.elements() != 1) return false;
  switch (shape.type()) {
    case ElementType::kS8:
    case ElementType::kS16:
    case ElementType::kS32:
    case ElementType::kS64:
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
    case ElementType::kU64:
      return true;
    default:
      return false;
  }
}

/// Values with the same bytes in the same order.
bool keeps_layout(const Computation& computation, InstructionIndex i) {
  const Shape from = computation.shape_of(computation.operands(i)[0]);
  const Shape to = computation[i].shape;
  return from.is_array() && to.is_array() && std::ranges::equal(from.dims(), to.dims()) &&
         std::ranges::equal(from.minor_to_major(), to.minor_to_major());
}

/// A collective that does the same to each of its operands by itself.
bool is_combined(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  const bool by_itself = in.opcode == Opcode::kAllGather || in.opcode == Opcode::kAllReduce ||
                         in.opcode == Opcode::kReduceScatter;
  const auto operands = computation.operands(i);
  return by_itself &&
         (in.shape.is_tuple() ? in.shape.is_flat_tuple() && in.shape.tuple_size() == operands.size()
                              : operands.size() == 1);
}

}  // namespace

std::vector<Keys> KeyWalk::walk(const CallFrame& frame, const std::vector<Keys>& parameters) {
  const Computation& computation = program_[frame.computation];
  std::vector<Keys> keys(computation.size());
  for (const InstructionIndex i : computation.instructions())
    keys[i.index] = keys_of(frame, i, parameters, keys);
  return keys;
}

std::optional<ValueKey> KeyWalk::update_key(const CallFrame& frame, InstructionIndex writer,
                                            std::uint32_t stack, const std::vector<Keys>& known) {
  const Computation& computation = program_[frame.computation];
  const auto operands = computation.operands(writer);
  if (computation[writer].opcode == Opcode::kDynamicUpdateSlice) {
    if (stack != 0) return std::nullopt;
    return key_of(operands[1], known);
  }
  if (computation[writer].opcode != Opcode::kFusion) return std::nullopt;
  const ComputationId callee = computation.called(writer)[0];
  const auto update = find_update(program_[callee], stack);
  if (!update) return std::nullopt;
  std::vector<Keys> arguments;
  for (const Operand& operand : operands) arguments.push_back(below(computation, operand, known));
  const CallFrame inner{callee, InstructionId{frame.computation, writer}, &frame};
  const auto keys = walk(inner, arguments);
  const Operand written = program_[callee].operands(update->instruction)[1];
  return keys[written.instruction.index][written.node];
}

/// What a scalar comes to in the first two iterations, one in the middle and the last: indices are
/// linear, or have ends.
std::optional<ValueKey> KeyWalk::counted(const CallFrame& frame, InstructionIndex i, Shape shape) {
  if (!loop_ || !is_integer_scalar(shape)) return std::nullopt;
  std::vector<CallFrame> chain;
  for (const CallFrame* at = &frame; at != nullptr; at = at->outer) chain.push_back(*at);
  KeyMaker maker;
  maker.add(std::string_view("scalar"));
  for (std::size_t k = 0; k + 1 < chain.size(); ++k) chain[k].outer = &chain[k + 1];
  for (const std::int64_t iteration : {std::int64_t{0}, std::int64_t{1}, trips_ / 2, trips_ - 1}) {
    chain.back().loop = LoopMoment{*loop_, iteration, counter_};
    const auto value = scalar_value(program_, chain.front(), Operand{i, 0}, Follow::kCounter);
    if (!value) return std::nullopt;
    maker.add(static_cast<std::uint64_t>(*value));
  }
  return maker.key();
}

/// What a computation does with its parameters, for those that are applied element by element.
ValueKey KeyWalk::content_key(ComputationId id) {
  const auto found = contents_.find(id);
  if (found != contents_.end()) return found->second;
  std::vector<Keys> parameters;
  for (const InstructionIndex parameter : program_[id].parameters()) {
    KeyMaker maker;
    maker.add(std::string_view("argument"));
    maker.add(std::uint64_t{parameters.size()});
    parameters.push_back(derived(maker, program_[id][parameter].shape));
  }
  const CallFrame frame{id};
  const auto keys = walk(frame, parameters);
  const Operand root = program_[id].root();
  return contents_[id] = keys[root.instruction.index][root.node];
}

/// Of a fusion, a call or an asynchronous start: those of what it computes.
Keys KeyWalk::called_keys(const CallFrame& frame, InstructionIndex i,
                          const std::vector<Keys>& known) {
  const Computation& computation = program_[frame.computation];
  const ComputationId callee = computation.called(i)[0];
  std::vector<Keys> arguments;
  for (const Operand& operand : computation.operands(i))
    arguments.push_back(below(computation, operand, known));
  const CallFrame inner{callee, InstructionId{frame.computation, i}, &frame};
  const auto keys = walk(inner, arguments);
  return below(program_[callee], program_[callee].root(), keys);
}

Keys KeyWalk::keys_of(const CallFrame& frame, InstructionIndex i,
                      const std::vector<Keys>& parameters, const std::vector<Keys>& known) {
  const Computation& computation = program_[frame.computation];
  const Instruction& in = computation[i];
  const auto operands = computation.operands(i);
  if (frame.outer != nullptr || frame.loop)
    if (const auto key = counted(frame, i, in.shape)) return {*key};
  switch (in.opcode) {
    case Opcode::kParameter:
      return parameters[parameter_number(in)];
    case Opcode::kBitcast:
    case Opcode::kReshape:
      if (in.shape.is_array()) return below(computation, operands[0], known);
      break;
    case Opcode::kCopy:
      if (keeps_layout(computation, i)) return below(computation, operands[0], known);
      break;
    case Opcode::kTuple: {
      Keys keys(1);
      for (const Operand& operand : operands)
        for (const ValueKey key : below(computation, operand, known)) keys.push_back(key);
      KeyMaker maker;  // the whole is what is in it
      for (std::size_t k = 1; k < keys.size(); ++k) maker.add(keys[k]);
      keys[0] = maker.key();
      return keys;
    }
    case Opcode::kFusion:
    case Opcode::kCall:
      return called_keys(frame, i, known);
    case Opcode::kAsyncStart: {
      const Keys result = called_keys(frame, i, known);
      KeyMaker maker;
      maker.add(std::string_view("start"));
      maker.add(result.front());
      Keys keys = derived(maker, in.shape);
      if (in.shape.tuple_size() > 1)
        std::ranges::copy(result, keys.begin() + in.shape.element_node(1));
      return keys;
    }
    case Opcode::kAsyncDone: {
      const Shape start = computation.shape_of(operands[0]);
      if (start.tuple_size() < 2) break;
      return below(computation, {operands[0].instruction, operands[0].node + start.element_node(1)},
                   known);
    }
    case Opcode::kCopyStart: {
      KeyMaker maker;
      maker.add(std::string_view("start"));
      maker.add(key_of(operands[0], known));
      Keys keys = derived(maker, in.shape);
      if (in.shape.is_flat_tuple()) keys[1] = key_of(operands[0], known);
      return keys;
    }
    case Opcode::kCopyDone:
      return {key_of({operands[0].instruction, operands[0].node + 1}, known)};
    default:
      break;
  }
  if (is_combined(computation, i)) return combined_keys(computation, i, known);
  if (in.opcode == Opcode::kSlice)
    if (const auto key = piece_key(computation, i, known)) return {*key};
  if (in.opcode == Opcode::kDot)
    if (const auto key = product_key(computation, i, known)) return {*key};
  if (const auto key = count_key(computation, i, known)) return {*key};
  if (const auto key = spread_result(computation, i, known)) return {*key};
  Keys read;
  for (const Operand& operand : operands) read.push_back(key_of(operand, known));
  if (is_elementwise(in.opcode) && in.shape.is_array())
    return {elementwise_key(computation, i, in.shape.elements(), std::move(read))};
  KeyMaker maker = start_of(computation, i, in.shape);
  if (in.opcode == Opcode::kConstant) maker.add(in.literal);
  for (const ValueKey key : read) maker.add(key);
  if (in.shape.is_array()) return {maker.key()};
  return derived(maker, in.shape);
}

/// Each result of a combined collective is what the collective makes of one operand.
Keys KeyWalk::combined_keys(const Computation& computation, InstructionIndex i,
                            const std::vector<Keys>& known) {
  const Shape shape = computation[i].shape;
  Keys keys(1);
  const auto operands = computation.operands(i);
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    KeyMaker maker = start_of(computation, i, shape.is_tuple() ? shape.element(k) : shape);
    maker.add(key_of(operands[k], known));
    keys.push_back(maker.key());
  }
  if (!shape.is_tuple()) return {keys[1]};
  KeyMaker maker;
  for (std::size_t k = 1; k < keys.size(); ++k) maker.add(keys[k]);
  keys[0] = maker.key();
  return keys;
}

}  // namespace spillway
