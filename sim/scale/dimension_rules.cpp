// Rules of find_dimension_rules, an opcode at a time.
#include <algorithm>
#include <numeric>

#include "model/base/json_value.h"
#include "sim/scale/dimensions.h"

namespace spillway {
namespace {

/// An array, or a tuple of them: a node of what an instruction makes.
struct Place {
  InstructionId id;
  ShapeNodeIndex node = 0;
  Shape shape;
};

using Integers = std::vector<std::int64_t>;

bool contains(const Integers& list, std::int64_t n) {
  return std::ranges::find(list, n) != list.end();
}

/// Positions 0, 1, … `rank` - 1 without those in the lists.
Integers others(std::size_t rank, const Integers& a, const Integers& b = {}) {
  Integers rest;
  for (std::size_t d = 0; d < rank; ++d)
    if (const auto n = static_cast<std::int64_t>(d); !contains(a, n) && !contains(b, n))
      rest.push_back(n);
  return rest;
}

/// Dimensions of an array from the slowest to the fastest in memory.
Integers in_memory_order(Shape shape) {
  const auto order = shape.minor_to_major();
  if (order.size() == shape.dims().size()) return Integers(order.rbegin(), order.rend());
  Integers as_written(shape.dims().size());
  std::iota(as_written.begin(), as_written.end(), 0);
  return as_written;
}

Integers as_written(Shape shape) {
  Integers order(shape.dims().size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

class RuleFinder {
 public:
  explicit RuleFinder(const Program& program)
      : program_(program), out_{Dimensions(program), {}, {}, {}} {}

  DimensionRules run() {
    for (const ComputationId id : ids(program_.computations))
      for (const InstructionIndex i : program_[id].instructions()) visit({id, i});
    return std::move(out_);
  }

 private:
  // What is being looked at.
  const Instruction& in() const { return program_[id_]; }
  const Computation& computation() const { return program_[id_.computation]; }
  std::size_t operand_count() const { return in().operand_count; }
  Place result(ShapeNodeIndex node = 0) const { return {id_, node, in().shape.at(node)}; }
  Place element(Place of, std::uint32_t k) const {
    const ShapeNodeIndex node = of.shape.element_node(k);
    return {of.id, of.node + node, of.shape.at(node)};
  }
  /// Of an operation that makes as many arrays as it takes.
  Place result_for(std::uint32_t k) const {
    return in().shape.is_tuple() ? element(result(), k) : result();
  }
  Place operand(std::size_t k) const {
    const Operand operand = computation().operands(id_.instruction)[k];
    return {{id_.computation, operand.instruction}, operand.node, computation().shape_of(operand)};
  }
  Place parameter(ComputationId callee, std::uint32_t k) const {
    const InstructionIndex i = program_[callee].parameters()[k];
    return {{callee, i}, 0, program_[callee][i].shape};
  }
  Place root(ComputationId callee) const {
    const Operand root = program_[callee].root();
    return {{callee, root.instruction}, root.node, program_[callee].shape_of(root)};
  }
  Integers list(std::string_view attribute) const {
    return parse_integers(computation().attribute(id_.instruction, attribute).value_or(""));
  }

  // What is said about it.
  DimensionId dimension(Place place, std::int64_t k) const {
    return out_.dimensions.at(place.id, place.node, static_cast<std::size_t>(k));
  }
  void join(Place a, std::int64_t i, Place b, std::int64_t j) {
    const auto has = [](Place place, std::int64_t k) {
      return place.shape.is_array() && k >= 0 &&
             k < static_cast<std::int64_t>(place.shape.dims().size());
    };
    if (has(a, i) && has(b, j)) out_.dimensions.join(dimension(a, i), dimension(b, j));
  }
  void same(Place a, Place b);
  /// `part` has the dimensions of `whole`, or takes parts of them.
  void part_of(Place part, std::int64_t i, Place whole, std::int64_t j);
  void parts_of(Place part, Place whole);
  void regrouped(Place a, const Integers& order_a, Place b, const Integers& order_b);

  void visit(InstructionId id);
  void visit_call();
  void visit_movement();
  void visit_collective();
  void broadcast();
  void transpose();
  void reduction();
  void product(const Integers& left_batch, const Integers& right_batch, const Integers& left_sum,
               const Integers& right_sum);
  void concatenation();
  void padding();
  void gather();
  void scatter();
  void window();
  void spread(Place small, Place large);
  void library_call();
  void async_start();

  const Program& program_;
  DimensionRules out_;
  InstructionId id_;
};

/// The same shape, as far as it is known to be.
void RuleFinder::same(Place a, Place b) {
  if (!same_nesting(a.shape, b.shape)) return;
  for (ShapeNodeIndex node = 0; node < a.shape.node_count(); ++node) {
    const std::size_t rank = a.shape.at(node).dims().size();
    if (rank != b.shape.at(node).dims().size()) continue;
    for (std::size_t k = 0; k < rank; ++k)
      out_.dimensions.join(out_.dimensions.at(a.id, a.node + node, k),
                           out_.dimensions.at(b.id, b.node + node, k));
  }
}

void RuleFinder::part_of(Place part, std::int64_t i, Place whole, std::int64_t j) {
  if (part.shape.dims()[static_cast<std::size_t>(i)] ==
      whole.shape.dims()[static_cast<std::size_t>(j)])
    join(part, i, whole, j);
  else
    out_.parts.push_back({dimension(whole, j), dimension(part, i), id_});
}

void RuleFinder::parts_of(Place part, Place whole) {
  if (part.shape.dims().size() != whole.shape.dims().size()) return;
  for (const std::int64_t k : as_written(part.shape)) part_of(part, k, whole, k);
}

/// Two ways to write the same elements in the same order: what spans as many of them goes together.
void RuleFinder::regrouped(Place a, const Integers& order_a, Place b, const Integers& order_b) {
  const auto size = [](Place place, std::int64_t k) {
    return place.shape.dims()[static_cast<std::size_t>(k)];
  };
  std::size_t i = 0, j = 0;
  while (i < order_a.size() && j < order_b.size()) {
    ProductRule rule{{dimension(a, order_a[i])}, {dimension(b, order_b[j])}};
    std::int64_t left = size(a, order_a[i++]), right = size(b, order_b[j++]);
    while (left != right) {
      if (left < right ? i == order_a.size() : j == order_b.size()) return;
      if (left < right) {
        rule.left.push_back(dimension(a, order_a[i]));
        left *= size(a, order_a[i++]);
      } else {
        rule.right.push_back(dimension(b, order_b[j]));
        right *= size(b, order_b[j++]);
      }
    }
    if (rule.left.size() == 1 && rule.right.size() == 1)
      out_.dimensions.join(rule.left[0], rule.right[0]);
    else
      out_.products.push_back(std::move(rule));
  }
}

void RuleFinder::broadcast() {
  const Integers dims = list("dimensions");
  for (std::size_t k = 0; k < dims.size(); ++k)
    join(operand(0), static_cast<std::int64_t>(k), result(), dims[k]);
}

void RuleFinder::transpose() {
  const Integers dims = list("dimensions");
  for (std::size_t k = 0; k < dims.size(); ++k)
    join(result(), static_cast<std::int64_t>(k), operand(0), dims[k]);
}

/// Arrays and as many start values; what is left of the dimensions is the result's.
void RuleFinder::reduction() {
  const Integers gone = list("dimensions");
  for (std::uint32_t n = 0; n < operand_count() / 2; ++n) {
    same(operand(0), operand(n));
    const Integers kept = others(operand(n).shape.dims().size(), gone);
    for (std::size_t k = 0; k < kept.size(); ++k)
      join(result_for(n), static_cast<std::int64_t>(k), operand(n), kept[k]);
  }
}

/// Batch dimensions first, then what is left of the left operand, then of the right one.
void RuleFinder::product(const Integers& left_batch, const Integers& right_batch,
                         const Integers& left_sum, const Integers& right_sum) {
  if (operand_count() < 2) return;
  const Place left = operand(0), right = operand(1), made = result_for(0);
  for (std::size_t k = 0; k < std::min(left_sum.size(), right_sum.size()); ++k)
    join(left, left_sum[k], right, right_sum[k]);
  std::int64_t at = 0;
  for (std::size_t k = 0; k < std::min(left_batch.size(), right_batch.size()); ++k, ++at) {
    join(left, left_batch[k], right, right_batch[k]);
    join(made, at, left, left_batch[k]);
  }
  for (const std::int64_t k : others(left.shape.dims().size(), left_batch, left_sum))
    join(made, at++, left, k);
  for (const std::int64_t k : others(right.shape.dims().size(), right_batch, right_sum))
    join(made, at++, right, k);
}

void RuleFinder::concatenation() {
  const Integers dims = list("dimensions");
  if (dims.empty()) return;
  SumRule sum{dimension(result(), dims[0]), {}};
  for (std::size_t n = 0; n < operand_count(); ++n) {
    sum.parts.push_back(dimension(operand(n), dims[0]));
    for (const std::int64_t k : others(in().shape.dims().size(), dims))
      join(result(), k, operand(n), k);
  }
  out_.sums.push_back(std::move(sum));
}

/// What is added stays as much as it is.
void RuleFinder::padding() {
  for (const std::int64_t k : as_written(in().shape)) {
    if (in().shape.dims()[static_cast<std::size_t>(k)] ==
        operand(0).shape.dims()[static_cast<std::size_t>(k)])
      join(result(), k, operand(0), k);
    else
      out_.sums.push_back({dimension(result(), k), {dimension(operand(0), k)}});
  }
}

void RuleFinder::gather() {
  const Integers offsets = list("offset_dims"), collapsed = list("collapsed_slice_dims"),
                 batching = list("operand_batching_dims"), vector = list("index_vector_dim");
  const Integers from_indices = others(in().shape.dims().size(), offsets);
  const Integers indices = others(operand(1).shape.dims().size(), vector);
  for (std::size_t k = 0; k < std::min(from_indices.size(), indices.size()); ++k)
    join(result(), from_indices[k], operand(1), indices[k]);
  const Integers sliced = others(operand(0).shape.dims().size(), collapsed, batching);
  for (std::size_t k = 0; k < std::min(offsets.size(), sliced.size()); ++k)
    part_of(result(), offsets[k], operand(0), sliced[k]);
}

void RuleFinder::scatter() {
  const std::size_t arrays = (operand_count() - 1) / 2;
  const Place indices = operand(arrays);
  const Integers window = list("update_window_dims"), inserted = list("inserted_window_dims"),
                 batching = list("input_batching_dims"), vector = list("index_vector_dim");
  for (std::size_t n = 0; n < arrays; ++n) {
    const Place into = operand(n), update = operand(arrays + 1 + n);
    same(result_for(static_cast<std::uint32_t>(n)), into);
    const Integers of_indices = others(indices.shape.dims().size(), vector);
    const Integers places = others(update.shape.dims().size(), window);
    for (std::size_t k = 0; k < std::min(places.size(), of_indices.size()); ++k)
      join(update, places[k], indices, of_indices[k]);
    const Integers sliced = others(into.shape.dims().size(), inserted, batching);
    for (std::size_t k = 0; k < std::min(window.size(), sliced.size()); ++k)
      part_of(update, window[k], into, sliced[k]);
  }
}

/// Where the window does not change a size, it is the same one.
void RuleFinder::window() {
  for (std::uint32_t n = 0; n < std::max<std::size_t>(operand_count() / 2, 1); ++n)
    if (const Place made = result_for(n); made.shape.is_array())
      for (const std::int64_t k : as_written(made.shape)) join(made, k, operand(n), k);
}

/// What all-gather makes larger, and reduce-scatter smaller, by the number of devices.
void RuleFinder::spread(Place small, Place large) {
  if (!small.shape.is_array() || small.shape.dims().size() != large.shape.dims().size()) return;
  const Integers gathered = list("dimensions");
  for (const std::int64_t k : as_written(small.shape)) {
    if (!contains(gathered, k))
      join(small, k, large, k);
    else
      out_.products.push_back({{dimension(small, k)}, {dimension(large, k)}});
  }
}

/// NVIDIA's matrix products name their dimensions as dot does; other calls say nothing.
void RuleFinder::library_call() {
  const std::string_view config =
      computation().attribute(id_.instruction, "backend_config").value_or("");
  const std::string_view dims = json_value(config, "dot_dimension_numbers");
  if (dims.empty()) return;
  const auto part = [dims](std::string_view key) { return parse_integers(json_value(dims, key)); };
  product(part("lhs_batch_dimensions"), part("rhs_batch_dimensions"),
          part("lhs_contracting_dimensions"), part("rhs_contracting_dimensions"));
  // What is added to the product has its shape.
  const Place made = result_for(0);
  for (std::size_t k = 2; k < operand_count(); ++k)
    if (compatible(made.shape, operand(k).shape) ||
        std::ranges::equal(made.shape.dims(), operand(k).shape.dims()))
      same(made, operand(k));
}

/// ((operands…), result, context…)
void RuleFinder::async_start() {
  const ComputationId callee = computation().called(id_.instruction)[0];
  const Place inputs = element(result(), 0);
  for (std::uint32_t k = 0; k < operand_count(); ++k) {
    same(element(inputs, k), operand(k));
    same(parameter(callee, k), operand(k));
  }
  same(element(result(), 1), root(callee));
}

void RuleFinder::visit(InstructionId id) {
  id_ = id;
  if (is_elementwise(in().opcode)) {
    for (std::size_t k = 0; k < operand_count(); ++k) same(result(), operand(k));
    return;
  }
  visit_call();
  visit_movement();
  visit_collective();
  switch (in().opcode) {
    case Opcode::kDot:
    case Opcode::kScaledDot:
      return product(list("lhs_batch_dims"), list("rhs_batch_dims"), list("lhs_contracting_dims"),
                     list("rhs_contracting_dims"));
    case Opcode::kReduce:
      return reduction();
    case Opcode::kReduceWindow:
      return window();
    case Opcode::kScatter:
      return scatter();
    case Opcode::kGather:
      return gather();
    case Opcode::kCustomCall:
      return library_call();
    case Opcode::kSort:
      for (std::uint32_t k = 0; k < operand_count(); ++k) {
        same(result_for(k), operand(k));
        same(operand(0), operand(k));
      }
      return;
    case Opcode::kCholesky:
    case Opcode::kFft:
    case Opcode::kRngBitGenerator:
      return same(result_for(0), operand(0));
    case Opcode::kTriangularSolve:
      return same(result(), operand(1));
    default:
      return;
  }
}

/// Values handed to computations and back.
void RuleFinder::visit_call() {
  const auto called = computation().called(id_.instruction);
  switch (in().opcode) {
    case Opcode::kFusion:
    case Opcode::kCall:
      for (std::uint32_t k = 0; k < operand_count(); ++k) same(parameter(called[0], k), operand(k));
      return same(result(), root(called[0]));
    case Opcode::kWhile:
      same(result(), operand(0));
      for (const ComputationId callee : called) same(parameter(callee, 0), operand(0));
      return same(root(called[1]), operand(0));
    case Opcode::kConditional:
      for (std::uint32_t k = 0; k < called.size(); ++k) {
        same(parameter(called[k], 0), operand(k + 1));
        same(result(), root(called[k]));
      }
      return;
    case Opcode::kAsyncStart:
      return async_start();
    default:
      return;
  }
}

/// Arrays written differently, grouped, cut and put together.
void RuleFinder::visit_movement() {
  switch (in().opcode) {
    case Opcode::kTuple:
      for (std::uint32_t k = 0; k < operand_count(); ++k) same(element(result(), k), operand(k));
      return;
    case Opcode::kBitcast:
      if (in().shape.bits() != operand(0).shape.bits()) return same(result(), operand(0));
      return regrouped(result(), in_memory_order(in().shape), operand(0),
                       in_memory_order(operand(0).shape));
    case Opcode::kReshape:
      return regrouped(result(), as_written(in().shape), operand(0), as_written(operand(0).shape));
    case Opcode::kBitcastConvert:
    case Opcode::kReverse:
    case Opcode::kAddDependency:
    case Opcode::kDomain:
    case Opcode::kOptimizationBarrier:
    case Opcode::kAsyncUpdate:
      return same(result(), operand(0));
    case Opcode::kBroadcast:
      return broadcast();
    case Opcode::kTranspose:
      return transpose();
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return parts_of(result(), operand(0));
    case Opcode::kDynamicUpdateSlice:
      same(result(), operand(0));
      return parts_of(operand(1), operand(0));
    case Opcode::kConcatenate:
      return concatenation();
    case Opcode::kPad:
      return padding();
    case Opcode::kCopyStart:
      same(element(result(), 0), operand(0));
      return same(element(result(), 1), operand(0));
    case Opcode::kCopyDone:
      return same(result(), element(operand(0), 0));
    case Opcode::kAsyncDone:
    case Opcode::kAllGatherDone:
    case Opcode::kAllToAllDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kReduceScatterDone:
      return same(result(), element(operand(0), 1));
    case Opcode::kAllReduceDone:
      return same(result(), operand(0));
    case Opcode::kSend:
      return same(element(result(), 0), operand(0));
    case Opcode::kRecvDone:
      return same(element(result(), 0), element(operand(0), 0));
    default:
      return;
  }
}

void RuleFinder::visit_collective() {
  const auto start_part = [this](std::uint32_t part, std::uint32_t k) {
    const Place side = element(result(), part);
    return side.shape.is_tuple() ? element(side, k) : side;
  };
  for (std::uint32_t k = 0; k < operand_count(); ++k) switch (in().opcode) {
      case Opcode::kAllReduce:
      case Opcode::kAllReduceStart:
      case Opcode::kAllToAll:
      case Opcode::kCollectiveBroadcast:
      case Opcode::kCollectivePermute:
        same(result_for(k), operand(k));
        break;
      case Opcode::kAllGather:
        spread(operand(k), result_for(k));
        break;
      case Opcode::kReduceScatter:
        spread(result_for(k), operand(k));
        break;
      case Opcode::kRaggedAllToAll:
        if (k == 1) same(result(), operand(1));
        break;
      case Opcode::kAllGatherStart:
        same(start_part(0, k), operand(k));
        spread(operand(k), start_part(1, k));
        break;
      case Opcode::kReduceScatterStart:
        same(start_part(0, k), operand(k));
        spread(start_part(1, k), operand(k));
        break;
      case Opcode::kAllToAllStart:
      case Opcode::kCollectivePermuteStart:
        same(start_part(0, k), operand(k));
        same(start_part(1, k), operand(k));
        break;
      default:
        return;
    }
}

}  // namespace

DimensionRules find_dimension_rules(const Program& program) { return RuleFinder(program).run(); }

}  // namespace spillway
