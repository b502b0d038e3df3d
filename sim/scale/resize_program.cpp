#include "sim/scale/resize_program.h"

#include <fmt/format.h>

#include <optional>

#include "model/base/json_value.h"
#include "model/program/validate.h"
#include "sim/rewrite/editor.h"

namespace spillway {
namespace {

/// The config of a loop with another known trip count.
std::string with_trip_count(std::string_view config, std::int64_t trips) {
  const std::size_t key = config.find("known_trip_count");
  const std::size_t from = config.find_first_of("0123456789", key);
  if (key == std::string_view::npos || from == std::string_view::npos) return std::string(config);
  const std::size_t to = std::min(config.find_first_not_of("0123456789", from), config.size());
  return fmt::format("{}{}{}", config.substr(0, from), trips, config.substr(to));
}

/// The sizes of attention's scores, where they stand in the config of its call; empty without.
std::string_view scores_in(std::string_view config) {
  return json_value(json_value(config, "intermediate_tensor_shape"), "dimensions");
}

/// Of one array: a petabyte, below which numbers of elements and bits are exact as floating point.
constexpr double kMostBits = 8e15;

class Resizer {
 public:
  Resizer(const Program& program, const DimensionRules& rules, const SolvedDimensions& solved,
          const std::map<InstructionId, std::int64_t>& trips)
      : program_(program), rules_(rules), solved_(solved), trips_(trips) {}

  Result<Program> run() {
    Program out = program_;
    out.xla_assignment = nullptr;
    for (const ComputationId id : ids(program_.computations))
      if (auto changed = resize(id)) out.computations[id] = std::move(changed);
    if (too_large_)
      return Error{ErrorKind::kUsage,
                   "a step of that size has arrays that no memory holds",
                   {},
                   "",
                   "ask for a smaller one"};
    return out;
  }

 private:
  std::int64_t size(InstructionId id, ShapeNodeIndex node, std::size_t k) const {
    return solved_.sizes[rules_.dimensions.at(id, node, k)].size;
  }
  /// Null when nothing changes.
  std::shared_ptr<const Computation> resize(ComputationId id);
  std::optional<Shape> resize(InstructionId id);
  void resize_attributes(InstructionId id, std::vector<Attribute>& attributes, std::size_t first);
  std::string sizes_text(InstructionId id) const;
  std::string config_text(InstructionId id, std::string_view config) const;
  std::string scores_text(InstructionId id, std::string_view config) const;
  std::string limits_text(InstructionId id, std::string_view text) const;

  const Program& program_;
  const DimensionRules& rules_;
  const SolvedDimensions& solved_;
  const std::map<InstructionId, std::int64_t>& trips_;
  bool too_large_ = false;
  std::shared_ptr<RewriteStorage> storage_ = std::make_shared<RewriteStorage>();
};

std::shared_ptr<const Computation> Resizer::resize(ComputationId id) {
  ComputationParts parts = program_[id].parts();
  bool changed = false;
  for (const InstructionIndex i : program_[id].instructions()) {
    Instruction& in = parts.instructions[i.index];
    if (const auto shape = resize(InstructionId{id, i})) {
      in.shape = *shape;
      changed = true;
    }
    changed |= trips_.contains({id, i});
    resize_attributes({id, i}, parts.attributes, in.first_attribute);
  }
  if (!changed) return nullptr;
  parts.storage.push_back(storage_);
  return make_computation(std::move(parts));
}

/// Empty when it stays.
std::optional<Shape> Resizer::resize(InstructionId id) {
  const Shape shape = program_[id].shape;
  ShapeData data;
  bool changed = false;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    for (std::size_t k = 0; k < shape.at(node).dims().size(); ++k)
      changed |= size(id, node, k) != shape.at(node).dims()[k];
  if (!changed) return std::nullopt;
  append_shape(shape, data);
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
    ShapeData::Node& made = data.nodes[node];
    if (!shape.at(node).is_array()) continue;
    double elements = 1;
    for (std::uint32_t k = 0; k < made.rank; ++k)
      elements *= static_cast<double>(data.dims[made.first_dim + k] = size(id, node, k));
    too_large_ |= elements * made.bits > kMostBits;
    if (too_large_) return std::nullopt;
    made.bytes = (static_cast<std::int64_t>(elements) * made.bits + 7) / 8;
  }
  return storage_->shape(std::move(data));
}

/// The sizes that a dynamic-slice repeats, limits of slices, trip counts, scores of attention.
void Resizer::resize_attributes(InstructionId id, std::vector<Attribute>& attributes,
                                std::size_t first) {
  const Instruction& in = program_[id];
  for (std::size_t k = first; k < first + in.attribute_count; ++k) {
    Attribute& attribute = attributes[k];
    std::string text;
    if (attribute.name == "dynamic_slice_sizes")
      text = sizes_text(id);
    else if (attribute.name == "slice" && in.opcode == Opcode::kSlice)
      text = limits_text(id, attribute.value);
    else if (attribute.name == "backend_config")
      text = config_text(id, attribute.value);
    if (!text.empty() && text != attribute.value) attribute.value = storage_->text(std::move(text));
  }
}

std::string Resizer::config_text(InstructionId id, std::string_view config) const {
  if (const auto trip = trips_.find(id); trip != trips_.end())
    return with_trip_count(config, trip->second);
  return program_[id].opcode == Opcode::kCustomCall ? scores_text(id, config) : "";
}

/// The scores that cuDNN's attention never writes, [batch, heads, queries, keys]: their batch is
/// that of the first operand, the others are as large as dimensions of operands.
std::string Resizer::scores_text(InstructionId id, std::string_view config) const {
  const std::string_view list = scores_in(config);
  const auto operands = program_[id.computation].operands(id.instruction);
  if (list.empty() || operands.empty()) return "";
  std::map<std::int64_t, std::int64_t> grown;
  for (const Operand& operand : operands) {
    const auto dims = program_[id.computation].shape_of(operand).dims();
    for (std::size_t k = 1; k < dims.size(); ++k)
      grown.emplace(dims[k], size({id.computation, operand.instruction}, operand.node, k));
  }
  std::vector<std::int64_t> numbers = parse_integers(list);
  for (std::int64_t& n : numbers)
    if (const auto entry = grown.find(n); entry != grown.end() && &n != &numbers[0])
      n = entry->second;
  if (!numbers.empty() && !program_[id.computation].shape_of(operands[0]).dims().empty())
    numbers[0] = size({id.computation, operands[0].instruction}, operands[0].node, 0);
  std::string text;
  for (const std::int64_t n : numbers) text += fmt::format("{}\"{}\"", text.empty() ? "" : ",", n);
  const auto before = static_cast<std::size_t>(list.data() - config.data());
  return fmt::format("{}[{}]{}", config.substr(0, before), text,
                     config.substr(before + list.size()));
}

std::string Resizer::sizes_text(InstructionId id) const {
  std::string text;
  for (std::size_t k = 0; k < program_[id].shape.dims().size(); ++k)
    text += fmt::format("{}{}", k > 0 ? "," : "", size(id, 0, k));
  return "{" + text + "}";
}

/// {[0:2], [4:8]}: a slice up to the end ends at the new one, others begin where they did, in
/// proportion to what they take.
std::string Resizer::limits_text(InstructionId id, std::string_view text) const {
  const auto numbers = parse_integers(text);
  const Operand operand = program_[id.computation].operands(id.instruction)[0];
  const InstructionId whole{id.computation, operand.instruction};
  const auto before = program_[id].shape.dims();
  const auto whole_before = program_[id.computation].shape_of(operand).dims();
  if (numbers.size() != 2 * before.size()) return "";  // with strides: nobody reads them here
  std::string out;
  for (std::size_t k = 0; k < before.size(); ++k) {
    const std::int64_t part = size(id, 0, k), all = size(whole, operand.node, k);
    std::int64_t start = numbers[2 * k];
    if (numbers[2 * k + 1] == whole_before[k])
      start = all - part;
    else if (before[k] > 0 && start % before[k] == 0)
      start = start / before[k] * part;
    out += fmt::format("{}[{}:{}]", k > 0 ? ", " : "", start, start + part);
  }
  return "{" + out + "}";
}

}  // namespace

Result<Program> resize_program(const Program& program, const DimensionRules& rules,
                               const SolvedDimensions& solved,
                               const std::map<InstructionId, std::int64_t>& trips) {
  Result<Program> resized = Resizer(program, rules, solved, trips).run();
  if (!resized.ok()) return resized;
  if (auto error = validate(*resized)) return *error;
  return resized;
}

}  // namespace spillway
