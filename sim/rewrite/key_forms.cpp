// What a KeyWalk sees through: several ways of writing one computation.
#include <algorithm>
#include <string_view>

#include "model/program/control_predecessors.h"
#include "sim/rewrite/key_walk.h"
#include "sim/rewrite/plain_product.h"

namespace spillway {
namespace {

/// Attributes that say what is computed, rather than where it comes from or how it is carried out.
bool counts(std::string_view attribute, Opcode opcode) {
  if (attribute == "backend_config") return opcode == Opcode::kCustomCall;
  return attribute != "metadata" && attribute != "channel_id" &&
         attribute != "frontend_attributes" && attribute != kControlPredecessors &&
         attribute != "calls" && attribute != "to_apply" && attribute != "body" &&
         attribute != "condition" && attribute != "branch_computations" && attribute != "sharding";
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

}  // namespace

/// Attributes that count, but for those to `skip`, and what is called.
template <typename Skip>
void KeyWalk::add_what_it_does(const Computation& computation, InstructionIndex i, const Skip& skip,
                               KeyMaker& maker) {
  for (const Attribute& attribute : computation.attributes(i)) {
    if (!counts(attribute.name, computation[i].opcode) || skip(attribute.name)) continue;
    maker.add(attribute.name);
    maker.add(attribute.value);
  }
  for (const ComputationId called : computation.called(i)) maker.add(content_key(called));
}

/// What it does, to whatever.
KeyMaker KeyWalk::start_of(const Computation& computation, InstructionIndex i, Shape shape) {
  KeyMaker maker;
  maker.add(computation[i].opcode_text);
  maker.add(shape);
  add_what_it_does(
      computation, i, [](std::string_view) { return false; }, maker);
  return maker;
}

/// Element by element it does not matter how the elements are arranged.
ValueKey KeyWalk::elementwise_key(const Computation& computation, InstructionIndex i,
                                  std::int64_t elements, Keys read) {
  const Instruction& in = computation[i];
  KeyMaker maker;
  maker.add(in.opcode_text);
  maker.add(static_cast<std::uint64_t>(in.shape.type()));
  maker.add(static_cast<std::uint64_t>(elements));
  add_what_it_does(
      computation, i, [](std::string_view name) { return name == "dimensions"; }, maker);
  if (is_commutative(in.opcode)) std::ranges::sort(read);
  for (const ValueKey key : read) maker.add(key);
  return maker.key();
}

/// XLA multiplies one matrix with several at once, put side by side, and slices the result.
std::optional<ValueKey> KeyWalk::product_key(const Computation& computation, InstructionIndex i,
                                             const std::vector<Keys>& known) {
  const auto product = plain_product(computation, i);
  if (!product) return std::nullopt;
  const auto& [rows, columns, depth] = *product;
  KeyMaker maker;
  maker.add(std::string_view("product"));
  maker.add(static_cast<std::uint64_t>(computation[i].shape.type()));
  add_what_it_does(
      computation, i, [](std::string_view name) { return name.ends_with("_contracting_dims"); },
      maker);
  for (const std::int64_t size :
       {depth, rows.size, std::int64_t{rows.sums_rows}, std::int64_t{columns.sums_rows}})
    maker.add(static_cast<std::uint64_t>(size));
  maker.add(key_of(rows.operand, known));
  const auto with_columns = [&maker](std::int64_t count, ValueKey matrix) {
    KeyMaker whole = maker;
    whole.add(static_cast<std::uint64_t>(count));
    whole.add(matrix);
    return whole.key();
  };
  const ValueKey key = with_columns(columns.size, key_of(columns.operand, known));
  const InstructionIndex beside = columns.operand.instruction;
  if (computation[beside].opcode != Opcode::kConcatenate) return key;
  const auto along = parse_integers(computation.attribute(beside, "dimensions").value_or(""));
  if (along.size() != 1 || along[0] != columns.free) return key;
  std::vector<Piece>& pieces = forms_.pieces[key];
  if (!pieces.empty()) return key;
  std::int64_t start = 0;
  for (const Operand& one : computation.operands(beside)) {
    const std::int64_t count = computation.shape_of(one).dims()[columns.free];
    pieces.push_back({columns.size, start, start + count, with_columns(count, key_of(one, known))});
    start += count;
  }
  return key;
}

/// Of a slice of such a product that is one of its pieces.
std::optional<ValueKey> KeyWalk::piece_key(const Computation& computation, InstructionIndex i,
                                           const std::vector<Keys>& known) const {
  const Operand whole = computation.operands(i)[0];
  const auto pieces = forms_.pieces.find(key_of(whole, known));
  if (pieces == forms_.pieces.end()) return std::nullopt;
  const auto range = sliced_columns(computation, i);
  if (!range) return std::nullopt;
  const Shape shape = computation.shape_of(whole);
  const std::int64_t columns = shape.dims()[static_cast<std::size_t>(shape.minor_to_major()[0])];
  for (const Piece& piece : pieces->second)
    if (piece.columns == columns && piece.start == range->start && piece.limit == range->limit)
      return piece.key;
  return std::nullopt;
}

/// Of an array that counts along one of its dimensions: an iota, or a row of numbers repeated.
std::optional<ValueKey> KeyWalk::count_key(const Computation& computation, InstructionIndex i,
                                           const std::vector<Keys>& known) {
  const Instruction& in = computation[i];
  std::string_view along;
  if (in.opcode == Opcode::kIota) {
    along = computation.attribute(i, "iota_dimension").value_or("");
  } else if (in.opcode == Opcode::kBroadcast) {
    const Operand row = computation.operands(i)[0];
    if (!forms_.counts.contains(key_of(row, known)) || computation.shape_of(row).dims().size() != 1)
      return std::nullopt;
    along = computation.attribute(i, "dimensions").value_or("");
  }
  const auto dims = parse_integers(along);
  if (dims.size() != 1 || dims[0] < 0 || dims[0] >= std::ssize(in.shape.dims()))
    return std::nullopt;
  const std::int64_t length = in.shape.dims()[static_cast<std::size_t>(dims[0])];
  KeyMaker maker;
  maker.add(std::string_view("count"));
  maker.add(static_cast<std::uint64_t>(in.shape.type()));
  if (length == in.shape.elements()) {
    maker.add(static_cast<std::uint64_t>(length));
    forms_.counts.insert(maker.key());
  } else {
    maker.add(in.shape);
    maker.add(static_cast<std::uint64_t>(dims[0]));
  }
  return maker.key();
}

/// Of an array full of one scalar.
ValueKey KeyWalk::spread_key(Shape shape, ValueKey scalar) {
  KeyMaker maker;
  maker.add(std::string_view("spread"));
  maker.add(static_cast<std::uint64_t>(shape.type()));
  maker.add(static_cast<std::uint64_t>(shape.elements()));
  maker.add(scalar);
  forms_.spread.emplace(maker.key(), scalar);
  return maker.key();
}

/// What is done element by element to arrays full of a scalar might as well be done to the scalar.
std::optional<ValueKey> KeyWalk::spread_result(const Computation& computation, InstructionIndex i,
                                               const std::vector<Keys>& known) {
  const Instruction& in = computation[i];
  const auto operands = computation.operands(i);
  if (!in.shape.is_array() || in.shape.elements() == 1 || operands.empty()) return std::nullopt;
  if (spreads_scalar(computation, i)) return spread_key(in.shape, key_of(operands[0], known));
  if (!is_elementwise(in.opcode)) return std::nullopt;
  Keys scalars;
  for (const Operand& operand : operands) {
    const auto found = forms_.spread.find(key_of(operand, known));
    if (found == forms_.spread.end()) return std::nullopt;
    scalars.push_back(found->second);
  }
  return spread_key(in.shape, elementwise_key(computation, i, 1, std::move(scalars)));
}

}  // namespace spillway
