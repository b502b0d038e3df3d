#include "model/program/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "model/base/format.h"
#include "model/program/call_graph.h"
#include "model/program/instruction_rules.h"

namespace spillway {
namespace {

/// Deeper chains of calls than any compiler makes; later stages follow calls by recursion.
constexpr std::uint32_t kDeepestCalls = 256;
/// Instructions a program has with every call written out, loops once.
constexpr double kMostExpanded = 1e8;
/// Of one step, loops multiplied: bytes of all arrays made and read, and instructions run. Sums fit
/// 64 bits, and so does simulated time, picoseconds up to 106 days: 1e17 bytes take 12 days at 100
/// GB/s and 1e11 launches of 10 us as long, where the largest steps have some 1e15 bytes and 1e8
/// launches.
constexpr double kMostBytes = 1e17;
constexpr double kMostLaunches = 1e11;

double bytes_of(Shape shape) {
  double sum = 0;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    sum += static_cast<double>(shape.at(node).bytes().value());
  return sum;
}

/// One pass over all instructions; what it finds about calls is kept for passes over computations.
class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program), signatures_(program), entries_(program.computations.size()) {}

  std::optional<Error> run() {
    for (const ComputationId id : ids(program_.computations))
      if (auto error = check_instructions(id)) return error;
    const std::vector<ComputationId> callees_first =
        called_later_ ? computation_post_order(program_) : text_order();
    if (auto error = check_calls(callees_first)) return error;
    return check_sizes(callees_first);
  }

 private:
  struct Call {
    ComputationId callee;
    double trips = 1;
  };
  struct Entry {
    std::uint32_t first_call = 0, calls = 0;
    std::uint32_t depth = 0;  ///< of the calls below
    double length = 0;        ///< instructions, calls written out
    double bytes = 0;         ///< that one run makes and reads
    double runs = 0;
  };

  std::optional<Error> check_instructions(ComputationId id);
  bool is_sound(InstructionId id, const Instruction& in);
  Error describe(InstructionId id);
  Error error_about(ComputationId id, std::string_view text) const;
  void note_calls(InstructionId id, Entry& entry);
  std::vector<ComputationId> text_order() const;
  std::optional<Error> check_calls(const std::vector<ComputationId>& callees_first);
  std::optional<Error> check_sizes(const std::vector<ComputationId>& callees_first);
  std::span<const Call> calls_of(const Entry& entry) const {
    return std::span(calls_).subspan(entry.first_call, entry.calls);
  }

  const Program& program_;
  internal::Signatures signatures_;
  IdVector<ComputationId, Entry> entries_;
  std::vector<Call> calls_;
  bool called_later_ = false;  ///< some computation calls one with a larger id
  std::vector<Shape> shapes_;  ///< of the instructions of the computation being checked
};

std::optional<Error> Validator::check_instructions(ComputationId id) {
  const Computation& computation = program_[id];
  Entry entry{.first_call = static_cast<std::uint32_t>(calls_.size()),
              .length = static_cast<double>(computation.size())};
  shapes_.clear();
  signatures_.result(id);  // while the computation is at hand
  for (const InstructionIndex i : computation.instructions()) {
    const Instruction& in = computation[i];
    shapes_.push_back(in.shape);
    if (!is_sound({id, i}, in)) [[unlikely]]
      return describe({id, i});
    entry.bytes += bytes_of(in.shape);
    for (const Operand& operand : computation.operands(i)) {
      const Shape shape = shapes_[operand.instruction.index].at(operand.node);
      if (!shape.is_tuple()) entry.bytes += static_cast<double>(shape.bytes().value());
    }
    if (in.called_count > 0) note_calls({id, i}, entry);
  }
  entries_[id] = entry;
  return std::nullopt;
}

void Validator::note_calls(InstructionId id, Entry& entry) {
  const Computation& computation = program_[id.computation];
  double trips = 1;
  if (computation[id.instruction].opcode == Opcode::kWhile)
    trips = static_cast<double>(known_trip_count(computation, id.instruction).value_or(1));
  for (const ComputationId callee : computation.called(id.instruction)) {
    calls_.push_back({callee, trips});
    ++entry.calls;
    called_later_ |= callee >= id.computation;
  }
}

bool Validator::is_sound(InstructionId id, const Instruction& in) {
  const internal::OpcodeRules& rules = internal::rules_of(in.opcode);
  const Computation& computation = program_[id.computation];
  const std::uint32_t n = in.operand_count;
  if (n < rules.least_operands || n > rules.most_operands) [[unlikely]]
    return internal::broken_operand_rule(computation, id.instruction).empty();
  if (rules.elementwise) {
    // Equal text is one interned shape: no need to look inside.
    const auto is_same = [&](const Operand& operand) {
      return operand.node == 0 && shapes_[operand.instruction.index] == in.shape;
    };
    const bool all_same =
        in.shape.is_array() && std::ranges::all_of(computation.operands(id.instruction), is_same);
    if (!all_same && !internal::broken_shape_rule(computation, id.instruction).empty())
      return false;
  }
  if (rules.shapes && !internal::broken_shape_rule(computation, id.instruction).empty())
    return false;
  return !rules.calls || internal::broken_call_rule(program_, id, signatures_).empty();
}

Error Validator::describe(InstructionId id) {
  const Instruction& in = program_[id];
  const Computation& computation = program_[id.computation];
  std::string broken = internal::broken_operand_rule(computation, id.instruction);
  if (broken.empty()) broken = internal::broken_shape_rule(computation, id.instruction);
  if (broken.empty()) broken = internal::broken_call_rule(program_, id, signatures_);
  return error_at(program_, in.name,
                  fmt::format("{} {} {}", in.opcode_text, quoted(in.name), broken),
                  "the file may be damaged");
}

Error Validator::error_about(ComputationId id, std::string_view text) const {
  const std::string_view name = program_[id].name();
  return error_at(program_, name, fmt::format("computation {} {}", quoted(name), text),
                  "the file may be damaged");
}

/// Callees before callers, as XLA writes them.
std::vector<ComputationId> Validator::text_order() const {
  std::vector<ComputationId> order;
  order.reserve(program_.computations.size());
  for (const ComputationId id : ids(program_.computations)) order.push_back(id);
  return order;
}

std::optional<Error> Validator::check_calls(const std::vector<ComputationId>& callees_first) {
  for (const ComputationId id : callees_first) {
    Entry& entry = entries_[id];
    for (const Call& call : calls_of(entry)) {
      entry.depth = std::max(entry.depth, entries_[call.callee].depth + 1);
      entry.length += entries_[call.callee].length;
    }
    if (entry.depth > kDeepestCalls)
      return error_about(id, fmt::format("nests calls more than {} deep", kDeepestCalls));
    if (entry.length > kMostExpanded)
      return error_about(id, fmt::format("has more than {} instructions with its calls written out",
                                         format_count(static_cast<std::int64_t>(kMostExpanded))));
  }
  return std::nullopt;
}

/// Adds up in floating point what later stages add up in integers.
std::optional<Error> Validator::check_sizes(const std::vector<ComputationId>& callees_first) {
  entries_[program_.entry].runs = 1;
  double bytes = 0, launches = 0;
  for (auto id = callees_first.rbegin(); id != callees_first.rend(); ++id) {
    const Entry& entry = entries_[*id];
    // What nothing calls is counted once, too: its sizes are summed up for reports.
    const double runs = std::max(entry.runs, 1.0);
    bytes += entry.bytes * runs;
    launches += static_cast<double>(program_[*id].size()) * runs;
    if (bytes > kMostBytes || launches > kMostLaunches)
      return error_about(*id, fmt::format("runs {:.3g} time(s) a step with {:.3g} bytes of arrays: "
                                          "more than can be added up",
                                          runs, entry.bytes));
    for (const Call& call : calls_of(entry)) entries_[call.callee].runs += runs * call.trips;
  }
  return std::nullopt;
}

/// Each alias pairs one piece of a parameter with one result of its size, and neither twice.
std::optional<Error> check_aliases(const Program& program) {
  const Computation& entry = program.entry_computation();
  const Shape result = entry.shape_of(entry.root());
  std::set<std::pair<std::uint32_t, ShapeNodeIndex>> given;
  std::set<ShapeNodeIndex> taken;
  for (const InputOutputAlias& alias : program.aliases) {
    const InstructionIndex parameter = entry.parameters()[alias.parameter];
    const Shape from = entry[parameter].shape.at(alias.parameter_node);
    const Shape to = result.at(alias.output);
    if (from.bytes() != to.bytes())
      return error_at(
          program, entry[parameter].name,
          fmt::format("parameter {} is donated to result {}, which has another size: "
                      "{} and {}",
                      quoted(entry[parameter].name), path_to_string(result, alias.output),
                      internal::brief(from), internal::brief(to)));
    if (!given.insert({alias.parameter, alias.parameter_node}).second)
      return error_at(
          program, entry[parameter].name,
          fmt::format("parameter {} is donated to two results, the second {}",
                      quoted(entry[parameter].name), path_to_string(result, alias.output)));
    if (!taken.insert(alias.output).second)
      return error_at(
          program, entry[parameter].name,
          fmt::format("result {} takes two parameters over, the second {}",
                      path_to_string(result, alias.output), quoted(entry[parameter].name)));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> validate(const Program& program) {
  if (auto error = Validator(program).run()) return error;
  return check_aliases(program);
}

}  // namespace spillway
