#include "model/diagnostics/slice_offsets.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "model/cost/config_text.h"
#include "model/program/call_graph.h"

namespace spillway {
namespace {

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

// Empty where the result does not fit 64 bits.
std::optional<std::int64_t> add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}
std::optional<std::int64_t> subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? std::nullopt : std::optional(difference);
}
std::optional<std::int64_t> multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

/// Whether a type holds a number; what does not fit wraps around, and is not followed.
bool fits_type(std::int64_t number, ElementType type) {
  const int bits = element_bits(type);
  switch (type) {
    case ElementType::kPred:
      return number == 0 || number == 1;
    case ElementType::kS8:
    case ElementType::kS16:
    case ElementType::kS32:
      return number >= -(std::int64_t{1} << (bits - 1)) && number < std::int64_t{1} << (bits - 1);
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
      return number >= 0 && number < std::int64_t{1} << bits;
    case ElementType::kS64:
      return true;
    case ElementType::kU64:
      return number >= 0;
    default:
      return false;
  }
}

struct Counter {
  ShapeNodeIndex node = 0;
  std::int64_t init = 0, step = 1;
};

std::optional<Counter> find_counter(const Program& program, InstructionId loop) {
  const Computation& computation = program[loop.computation];
  const std::string_view config =
      computation.attribute(loop.instruction, "backend_config").value_or("");
  const auto index =
      to_integer(json_value(json_value(config, "known_induction_variable"), "tuple_index"));
  const std::string_view steps = json_value(config, "known_init_step");
  const auto init = to_integer(json_value(steps, "init"));
  const auto step = to_integer(json_value(steps, "step"));
  const Shape carried = computation[loop.instruction].shape;
  if (!index || !init || !step || *step == 0 || *index < 0 || *index >= carried.tuple_size())
    return std::nullopt;
  return Counter{carried.element_node(static_cast<std::uint32_t>(*index)), *init, *step};
}

/// An iteration of a loop.
struct LoopMoment {
  InstructionId loop;
  std::int64_t iteration = 0;
};

/// A computation that runs, and the instruction that called it there; or the iteration of which it
/// is the body.
struct Frame {
  ComputationId computation;
  std::optional<InstructionId> caller{};
  const Frame* outer = nullptr;
  std::optional<LoopMoment> loop{};
};

/// What an index may hang on: constants and the loop's counter alone; or also what loops carry from
/// one iteration to the next, as pipelined copies do.
enum class Follow { kCounter, kCarried };

/// Works out a scalar integer at a moment of the program.
class Evaluator {
 public:
  Evaluator(const Program& program, Follow follow) : program_(program), follow_(follow) {}

  std::optional<std::int64_t> value(const Frame& frame, Operand operand) {
    if (++steps_ > kMostSteps) return std::nullopt;
    const Computation& computation = program_[frame.computation];
    const Instruction& in = computation[operand.instruction];
    const auto operands = computation.operands(operand.instruction);
    switch (in.opcode) {
      case Opcode::kConstant:
        return constant(in.literal);
      case Opcode::kParameter:
        return parameter(frame, parameter_number(in), operand.node);
      case Opcode::kFusion:
      case Opcode::kCall: {
        const Frame inner{computation.called(operand.instruction)[0],
                          InstructionId{frame.computation, operand.instruction}, &frame};
        const auto root =
            root_element(inner.computation, program_[inner.computation].root(), operand.node);
        return root ? value(inner, *root) : std::nullopt;
      }
      case Opcode::kWhile: {
        const auto trips = known_trip_count(computation, operand.instruction);
        if (follow_ == Follow::kCounter || !trips) return std::nullopt;
        return carried({{frame.computation, operand.instruction}, *trips}, operand.node);
      }
      case Opcode::kTuple:
        return std::nullopt;
      default: {
        const auto result =
            operation(frame, in, computation.attributes(operand.instruction), operands);
        return result && fits_type(*result, in.shape.type()) ? result : std::nullopt;
      }
    }
  }

 private:
  static constexpr int kMostSteps = 1000;

  /// "4" or "true".
  static std::optional<std::int64_t> constant(std::string_view literal) {
    if (literal == "true" || literal == "false") return literal == "true";
    return to_integer(literal);
  }

  std::optional<std::int64_t> parameter(const Frame& frame, std::uint32_t number,
                                        ShapeNodeIndex node) {
    if (!frame.caller) return frame.loop ? carried(*frame.loop, node) : std::nullopt;
    const auto operands = program_[frame.outer->computation].operands(frame.caller->instruction);
    if (number >= operands.size()) return std::nullopt;
    Operand outer = operands[number];
    outer.node += node;
    return value(*frame.outer, outer);
  }

  /// What a loop's state holds at the begin of an iteration.
  std::optional<std::int64_t> carried(LoopMoment at, ShapeNodeIndex node) {
    const auto counter = find_counter(program_, at.loop);
    if (counter && node == counter->node) {
      const auto moved = multiply(at.iteration, counter->step);
      return moved ? add(counter->init, *moved) : std::nullopt;
    }
    if (follow_ == Follow::kCounter) return std::nullopt;
    const ComputationId id = at.iteration == 0 ? at.loop.computation : body_of(program_, at.loop);
    const Operand state =
        at.iteration == 0 ? program_[id].operands(at.loop.instruction)[0] : program_[id].root();
    const auto element = root_element(id, state, node);
    if (!element) return std::nullopt;
    Frame frame{id};
    if (at.iteration > 0) frame.loop = LoopMoment{at.loop, at.iteration - 1};
    return value(frame, *element);
  }

  /// Element `node` of a value, looking through a tuple: at a computation's root, say.
  std::optional<Operand> root_element(ComputationId id, Operand root, ShapeNodeIndex node) const {
    const Computation& computation = program_[id];
    const Instruction& last = computation[root.instruction];
    if (node == 0 || last.opcode != Opcode::kTuple)
      return Operand{root.instruction, root.node + node};
    for (std::uint32_t k = 0; k < last.shape.tuple_size(); ++k)
      if (last.shape.element_node(k) == node) return computation.operands(root.instruction)[k];
    return std::nullopt;
  }

  std::optional<std::int64_t> operation(const Frame& frame, const Instruction& in,
                                        std::span<const Attribute> attributes,
                                        std::span<const Operand> operands) {
    std::vector<std::int64_t> x;
    for (const Operand& operand : operands) {
      const auto one = value(frame, operand);
      if (!one) return std::nullopt;
      x.push_back(*one);
    }
    switch (in.opcode) {
      case Opcode::kBitcast:
      case Opcode::kConvert:
      case Opcode::kCopy:
      case Opcode::kReshape:
        return x[0];
      case Opcode::kNegate:
        return subtract(0, x[0]);
      case Opcode::kAdd:
        return add(x[0], x[1]);
      case Opcode::kSubtract:
        return subtract(x[0], x[1]);
      case Opcode::kMultiply:
        return multiply(x[0], x[1]);
      case Opcode::kMaximum:
        return std::max(x[0], x[1]);
      case Opcode::kMinimum:
        return std::min(x[0], x[1]);
      case Opcode::kClamp:
        return std::min(std::max(x[1], x[0]), x[2]);
      case Opcode::kSelect:
        return x[0] != 0 ? x[1] : x[2];
      case Opcode::kCompare:
        return compare(attributes, x);
      default:
        return std::nullopt;
    }
  }

  static std::optional<std::int64_t> compare(std::span<const Attribute> attributes,
                                             const std::vector<std::int64_t>& x) {
    for (const Attribute& attribute : attributes) {
      if (attribute.name != "direction") continue;
      if (attribute.value == "LT") return x[0] < x[1];
      if (attribute.value == "LE") return x[0] <= x[1];
      if (attribute.value == "GT") return x[0] > x[1];
      if (attribute.value == "GE") return x[0] >= x[1];
      if (attribute.value == "EQ") return x[0] == x[1];
      if (attribute.value == "NE") return x[0] != x[1];
    }
    return std::nullopt;
  }

  const Program& program_;
  const Follow follow_;
  int steps_ = 0;
};

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
                                     Frame outermost, Follow follow) {
  std::vector<Frame> frames(located.calls.size() + 1);
  frames[0] = outermost;
  for (std::size_t k = 0; k < located.calls.size(); ++k) {
    const InstructionId call = located.calls[k];
    frames[k + 1] = {program[call.computation].called(call.instruction)[0], call, &frames[k]};
  }
  const auto layer = Evaluator(program, follow).value(frames.back(), located.index);
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
  const auto offset = multiply(layers->first, a_layer);
  const auto stride = multiply(layers->step, a_layer);
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
