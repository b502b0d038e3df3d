#include "sim/rewrite/value_keys.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "model/program/call_graph.h"
#include "model/program/loop_scalar.h"
#include "sim/rewrite/fusion_parts.h"

namespace spillway {
namespace {

/// Two independent hashes, a word at a time.
class KeyMaker {
 public:
  void add(std::uint64_t number) {
    key_.high = (key_.high ^ number) * 0x9fb21c651e98df25ull;
    key_.high ^= key_.high >> 32;
    key_.low = (key_.low + number) * 0xd6e8feb86659fd93ull;
    key_.low ^= key_.low >> 29;
  }
  void add(std::string_view text) {
    add(text.size());
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), sizeof(std::uint64_t)))) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
      add(word);
    }
  }
  void add(ValueKey key) {
    add(key.high);
    add(key.low);
  }
  void add(Shape shape) {
    add(std::uint64_t{shape.node_count()});
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
      const Shape part = shape.at(node);
      add(static_cast<std::uint64_t>(part.type()));
      if (!part.is_array()) continue;
      add(std::uint64_t{part.dims().size()});
      for (const std::int64_t dim : part.dims()) add(static_cast<std::uint64_t>(dim));
      for (const std::int64_t dim : part.minor_to_major()) add(static_cast<std::uint64_t>(dim));
    }
  }
  ValueKey key() const { return key_; }

 private:
  ValueKey key_{0xcbf29ce484222325ull, 0x2545f4914f6cdd1dull};
};

using Keys = std::vector<ValueKey>;  ///< of the nodes of one instruction's shape

/// Attributes that say what is computed, rather than where it comes from or how it is carried out.
bool counts(std::string_view attribute, Opcode opcode) {
  if (attribute == "backend_config") return opcode == Opcode::kCustomCall;
  return attribute != "metadata" && attribute != "channel_id" &&
         attribute != "frontend_attributes" && attribute != "control-predecessors" &&
         attribute != "calls" && attribute != "to_apply" && attribute != "body" &&
         attribute != "condition" && attribute != "branch_computations" && attribute != "sharding";
}

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

bool is_commutative(Opcode opcode) {
  return opcode == Opcode::kAdd || opcode == Opcode::kMultiply || opcode == Opcode::kMaximum ||
         opcode == Opcode::kMinimum || opcode == Opcode::kAnd || opcode == Opcode::kOr ||
         opcode == Opcode::kXor;
}

bool spreads_scalar(const Computation& computation, InstructionIndex i) {
  return computation[i].opcode == Opcode::kBroadcast &&
         computation.shape_of(computation.operands(i)[0]).elements() == 1;
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

class KeyWalk {
 public:
  /// Without a loop scalars count as any other value.
  KeyWalk(const Program& program, std::optional<InstructionId> loop)
      : program_(program), loop_(loop) {
    if (!loop) return;
    counter_ = find_counter(program, *loop);
    trips_ = known_trip_count(program[loop->computation], loop->instruction).value_or(2);
  }

  /// Keys of all instructions of a computation whose parameters have these.
  std::vector<Keys> walk(const CallFrame& frame, const std::vector<Keys>& parameters) {
    const Computation& computation = program_[frame.computation];
    std::vector<Keys> keys(computation.size());
    for (const InstructionIndex i : computation.instructions())
      keys[i.index] = keys_of(frame, i, parameters, keys);
    return keys;
  }

  /// The key of what `writer` writes into its operand number `stack`.
  std::optional<ValueKey> update_key(const CallFrame& frame, InstructionIndex writer,
                                     std::uint32_t stack, const std::vector<Keys>& known) {
    const Computation& computation = program_[frame.computation];
    const auto operands = computation.operands(writer);
    if (computation[writer].opcode == Opcode::kDynamicUpdateSlice) {
      if (stack != 0) return std::nullopt;
      return known[operands[1].instruction.index][operands[1].node];
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

 private:
  Keys keys_of(const CallFrame& frame, InstructionIndex i, const std::vector<Keys>& parameters,
               const std::vector<Keys>& known);
  KeyMaker start_of(const Computation& computation, InstructionIndex i, Shape shape, bool arranged);
  Keys combined_keys(const Computation& computation, InstructionIndex i,
                     const std::vector<Keys>& known);
  Keys called_keys(const CallFrame& frame, InstructionIndex i, const std::vector<Keys>& known);
  std::optional<ValueKey> counted(const CallFrame& frame, InstructionIndex i, Shape shape);
  ValueKey content_key(ComputationId id);

  /// Keys of an operand and what lies below it in its tuple.
  static Keys below(const Computation& computation, Operand operand,
                    const std::vector<Keys>& known) {
    const auto from = known[operand.instruction.index].begin() + operand.node;
    return {from, from + computation.shape_of(operand).node_count()};
  }

  static Keys derived(const KeyMaker& maker, Shape shape) {
    Keys keys;
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
      KeyMaker one = maker;
      one.add(std::uint64_t{node});
      keys.push_back(one.key());
    }
    return keys;
  }

  const Program& program_;
  const std::optional<InstructionId> loop_;
  std::optional<LoopCounter> counter_;  ///< of the loop
  std::int64_t trips_ = 0;
  std::map<ComputationId, ValueKey> contents_;
};

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
      maker.add(known[operands[0].instruction.index][operands[0].node]);
      Keys keys = derived(maker, in.shape);
      if (in.shape.is_flat_tuple())
        keys[1] = known[operands[0].instruction.index][operands[0].node];
      return keys;
    }
    case Opcode::kCopyDone:
      return {known[operands[0].instruction.index][operands[0].node + 1]};
    default:
      break;
  }
  if (is_combined(computation, i)) return combined_keys(computation, i, known);
  const bool arranged = !(is_elementwise(in.opcode) || spreads_scalar(computation, i));
  KeyMaker maker = start_of(computation, i, in.shape, arranged);
  if (in.opcode == Opcode::kConstant) maker.add(in.literal);
  Keys read;
  for (const Operand& operand : operands)
    read.push_back(known[operand.instruction.index][operand.node]);
  if (is_commutative(in.opcode)) std::ranges::sort(read);
  for (const ValueKey key : read) maker.add(key);
  if (in.shape.is_array()) return {maker.key()};
  return derived(maker, in.shape);
}

/// What it does, to whatever: element by element it does not matter how the elements are arranged.
KeyMaker KeyWalk::start_of(const Computation& computation, InstructionIndex i, Shape shape,
                           bool arranged) {
  const Instruction& in = computation[i];
  KeyMaker maker;
  maker.add(in.opcode_text);
  if (arranged || !shape.is_array()) {
    maker.add(shape);
  } else {
    maker.add(static_cast<std::uint64_t>(shape.type()));
    maker.add(static_cast<std::uint64_t>(shape.elements()));
  }
  for (const Attribute& attribute : computation.attributes(i)) {
    if (!counts(attribute.name, in.opcode)) continue;
    if (!arranged && attribute.name == "dimensions") continue;
    maker.add(attribute.name);
    maker.add(attribute.value);
  }
  for (const ComputationId called : computation.called(i)) maker.add(content_key(called));
  return maker;
}

/// Each result of a combined collective is what the collective makes of one operand.
Keys KeyWalk::combined_keys(const Computation& computation, InstructionIndex i,
                            const std::vector<Keys>& known) {
  const Shape shape = computation[i].shape;
  Keys keys(1);
  const auto operands = computation.operands(i);
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    KeyMaker maker = start_of(computation, i, shape.is_tuple() ? shape.element(k) : shape, true);
    maker.add(known[operands[k].instruction.index][operands[k].node]);
    keys.push_back(maker.key());
  }
  if (!shape.is_tuple()) return {keys[1]};
  KeyMaker maker;
  for (std::size_t k = 1; k < keys.size(); ++k) maker.add(keys[k]);
  keys[0] = maker.key();
  return keys;
}

}  // namespace

ValueKeys::ValueKeys(const Program& program, InstructionId loop) : program_(program), loop_(loop) {
  const ComputationId body = body_of(program, loop);
  KeyMaker maker;
  maker.add(std::string_view("carry"));
  std::vector<Keys> carry(1);
  const Shape shape = program[body][program[body].parameters()[0]].shape;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
    KeyMaker one = maker;
    one.add(std::uint64_t{node});
    carry[0].push_back(one.key());
  }
  const CallFrame frame{body, {}, nullptr, LoopMoment{loop, 0}};
  keys_ = KeyWalk(program, loop).walk(frame, carry);
}

ValueKeys::ValueKeys(const Program& program) : program_(program) {
  std::vector<Keys> arguments;
  const Computation& entry = program.entry_computation();
  for (const InstructionIndex parameter : entry.parameters()) {
    KeyMaker maker;
    maker.add(std::string_view("parameter"));
    maker.add(std::uint64_t{arguments.size()});
    Keys& keys = arguments.emplace_back();
    for (ShapeNodeIndex node = 0; node < entry[parameter].shape.node_count(); ++node) {
      KeyMaker one = maker;
      one.add(std::uint64_t{node});
      keys.push_back(one.key());
    }
  }
  keys_ = KeyWalk(program, std::nullopt).walk(CallFrame{program.entry}, arguments);
}

ValueKey ValueKeys::within(InstructionIndex fusion, Operand value) const {
  const ComputationId body = body_of(program_, *loop_);
  const CallFrame frame{body, {}, nullptr, LoopMoment{*loop_, 0}};
  std::vector<Keys> arguments;
  for (const Operand& operand : program_[body].operands(fusion)) {
    const auto from = keys_[operand.instruction.index].begin() + operand.node;
    arguments.emplace_back(from, from + program_[body].shape_of(operand).node_count());
  }
  const CallFrame inner{program_[body].called(fusion)[0], InstructionId{body, fusion}, &frame};
  const auto keys = KeyWalk(program_, loop_).walk(inner, arguments);
  return keys[value.instruction.index][value.node];
}

std::optional<ValueKey> ValueKeys::update_key(InstructionId writer, std::uint32_t stack) const {
  check(loop_.has_value(), "an update of a stack is asked for outside a loop");
  const ComputationId body = body_of(program_, *loop_);
  const CallFrame frame{body, {}, nullptr, LoopMoment{*loop_, 0}};
  KeyWalk walk(program_, *loop_);
  if (writer.computation == body) return walk.update_key(frame, writer.instruction, stack, keys_);
  for (const InstructionIndex i : program_[body].instructions()) {
    if (program_[body][i].opcode != Opcode::kAsyncStart ||
        program_[body].called(i)[0] != writer.computation)
      continue;
    std::vector<Keys> arguments;
    for (const Operand& operand : program_[body].operands(i)) {
      const auto from = keys_[operand.instruction.index].begin() + operand.node;
      arguments.emplace_back(from, from + program_[body].shape_of(operand).node_count());
    }
    const CallFrame inner{writer.computation, InstructionId{body, i}, &frame};
    return walk.update_key(inner, writer.instruction, stack, walk.walk(inner, arguments));
  }
  return std::nullopt;
}

}  // namespace spillway
