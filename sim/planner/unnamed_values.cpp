#include "sim/planner/unnamed_values.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/cost/run_time.h"
#include "model/program/call_graph.h"
#include "sim/planner/backward_region.h"
#include "sim/planner/save_cut.h"

namespace spillway {
namespace {

/// A kernel or two that a byte spares may be chance; less of a step than this is not told.
constexpr double kLeastShare = 0.0005;
/// By how much of what is spared a value must be better than the names that there are.
constexpr double kBetterThanNames = 0.05;

bool is_heavy(KernelClass kernel) {
  return kernel == KernelClass::kGemm || kernel == KernelClass::kAttentionForward ||
         kernel == KernelClass::kCollective || kernel == KernelClass::kUnknown;
}

std::string_view last_part(std::string_view op_name) {
  const std::size_t slash = op_name.rfind('/');
  return slash == std::string_view::npos ? op_name : op_name.substr(slash + 1);
}

/// A name's value, as it may be found again: what makes it and how large it is.
struct NamedValue {
  std::string name;
  std::string id;  ///< of the residual: what rewrites add to hand it on begins with that
  Shape slice;
  std::string source, op_name;
  bool is_saved = false;
};

std::vector<NamedValue> named_values(const Evaluator& evaluator, const Policy& policy) {
  std::vector<NamedValue> named;
  for (std::size_t k = 0; k < policy.size(); ++k)
    for (const ResidualId id : evaluator.handles()[k].residuals) {
      const Residual& residual = evaluator.residuals().residuals[id];
      named.push_back({evaluator.handles()[k].name, residual.id, residual.slice, residual.source,
                       residual.op_name, policy[k] != Choice::kRecompute});
    }
  for (std::size_t k = 0; k < policy.size(); ++k)
    for (const UnrolledId id : evaluator.handles()[k].unrolled) {
      const UnrolledResidual& residual = evaluator.unrolled().residuals[id];
      named.push_back({evaluator.handles()[k].name, residual.id, residual.shape, residual.source,
                       residual.op_name, policy[k] != Choice::kRecompute});
    }
  return named;
}

/// What a backward body computes again, as a graph.
class AgainInBody {
 public:
  AgainInBody(const Program& program, const CostTable& costs, const BackwardRegion& region,
              double picoseconds_a_byte, const std::vector<NamedValue>& named)
      : program_(program),
        costs_(costs),
        region_(region),
        body_id_(region.body),
        body_(program[body_id_]),
        picoseconds_a_byte_(picoseconds_a_byte),
        named_(named) {
    find_again();
    for (const InstructionIndex i : body_.instructions())
      if (is_again_[i.index] != 0) add(i);
    find_needed();
  }

  SaveGraph graph;
  std::vector<Operand> values;               ///< of `graph`
  std::vector<InstructionIndex> operations;  ///< of `graph`
  std::vector<const NamedValue*> named_as;   ///< of each value; null: no name

  const Cost& cost(std::uint32_t operation) const {
    return costs_.cost({body_id_, operations[operation]});
  }
  std::int64_t layers() const { return region_.layers; }
  ComputationId body() const { return body_id_; }

 private:
  /// Reads a slice of a stack and does nothing else, or waits for that: what comes out is saved.
  bool is_fetch(InstructionIndex i) const {
    const Opcode opcode = body_[i].opcode;
    if (is_async_done(opcode)) return is_saved_[body_.operands(i)[0].instruction.index] != 0;
    if (is_free(body_[i]))
      return !body_.operands(i).empty() &&
             std::ranges::all_of(body_.operands(i), [&](const Operand& operand) {
               return is_saved_[operand.instruction.index] != 0;
             });
    if (region_.only_brings[i.index] != 0) return true;
    const KernelClass kernel = costs_.cost({body_id_, i}).kernel;
    return region_.reads_saved[i.index] != 0 && kernel == KernelClass::kSliceCopy;
  }

  void find_again() {
    std::vector<char> hangs(body_.size(), 0);  // on what a layer saved
    is_saved_.assign(body_.size(), 0);
    is_again_.assign(body_.size(), 0);
    for (const InstructionIndex i : body_.instructions()) {
      if (region_.no_gradient[i.index] == 0) continue;
      hangs[i.index] = region_.reads_saved[i.index] != 0 ||
                       std::ranges::any_of(body_.operands(i), [&](const Operand& operand) {
                         return hangs[operand.instruction.index] != 0;
                       });
      if (hangs[i.index] == 0) continue;
      is_saved_[i.index] = is_fetch(i);
      is_again_[i.index] = is_saved_[i.index] == 0;
    }
  }

  void add(InstructionIndex i) {
    const auto operation = static_cast<std::uint32_t>(operations.size());
    SaveGraph::Operation op{to_sim_time(time_of(i)), {}};
    for (const Operand& operand : body_.operands(i))
      if (const auto value = value_of(operand)) op.reads.push_back(*value);
    operations.push_back(i);
    graph.operations.push_back(std::move(op));
    const Shape shape = body_[i].shape;
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
      const Operand here{i, node};
      number_[here] = static_cast<std::uint32_t>(values.size());
      values.push_back(here);
      graph.values.push_back(make_value(here, operation));
    }
  }

  SaveGraph::Value make_value(Operand at, std::uint32_t operation) {
    SaveGraph::Value value;
    value.maker = operation;
    const Shape shape = body_.shape_of(at);
    const Instruction& in = body_[at.instruction];
    value.may_be_saved =
        shape.is_array() && !is_async_start(in.opcode) && !is_free(in) && shape.elements() > 0;
    named_as.push_back(value.may_be_saved ? find_name(at, shape) : nullptr);
    if (!value.may_be_saved) return value;
    const bool is_saved = named_as.back() != nullptr && named_as.back()->is_saved;
    const Bytes bytes = shape.array_bytes();
    value.bytes = is_saved ? Bytes(0) : bytes;
    const double passes = is_saved ? 1 : 2;  // read; written before
    value.save_time = SimTime(static_cast<std::int64_t>(passes * picoseconds_a_byte_ *
                                                        static_cast<double>(bytes.value())));
    return value;
  }

  const NamedValue* find_name(Operand at, Shape shape) const {
    const std::string source = source_line(program_, {body_id_, at.instruction});
    const std::string op_name = metadata_text(body_, at.instruction, "op_name");
    for (const NamedValue& name : named_) {
      if (name.slice.type() != shape.type() || name.slice.elements() != shape.elements()) continue;
      if (program_[InstructionId{body_id_, at.instruction}].name.starts_with(name.id + "."))
        return &name;
      const bool same_place = source.empty() || name.source.empty()
                                  ? last_part(op_name) == last_part(name.op_name)
                                  : source == name.source;
      if (same_place) return &name;
    }
    return nullptr;
  }

  void find_needed() {
    std::set<std::uint32_t> needed;
    const auto add_all = [&](InstructionIndex user) {
      for (const Operand& operand : body_.operands(user))
        if (const auto value = value_of(operand)) needed.insert(*value);
    };
    for (const InstructionIndex i : body_.instructions())
      if (is_again_[i.index] == 0) add_all(i);
    graph.needed.assign(needed.begin(), needed.end());
  }

  std::optional<std::uint32_t> value_of(Operand operand) const {
    const auto found = number_.find(operand);
    return found == number_.end() ? std::nullopt : std::optional(found->second);
  }

  Seconds time_of(InstructionIndex i) const {
    const Instruction& in = body_[i];
    return is_async_done(in.opcode) || is_control_flow(in.opcode) ? Seconds(0)
                                                                  : costs_.cost({body_id_, i}).time;
  }

  const Program& program_;
  const CostTable& costs_;
  const BackwardRegion& region_;
  ComputationId body_id_;
  const Computation& body_;
  double picoseconds_a_byte_;
  const std::vector<NamedValue>& named_;
  std::vector<char> is_saved_, is_again_;
  std::map<Operand, std::uint32_t> number_;
};

std::vector<std::uint32_t> missing_in(const std::vector<std::uint32_t>& all,
                                      const std::vector<std::uint32_t>& without) {
  std::vector<std::uint32_t> rest;
  std::ranges::set_difference(all, without, std::back_inserter(rest));
  return rest;
}

double cost_at(const SaveCut& cut, SavePrice price) {
  return static_cast<double>(cut.time.value()) + static_cast<double>(cut.bytes.value()) *
                                                     static_cast<double>(price.picoseconds) /
                                                     static_cast<double>(price.bytes);
}

/// From one body, a row for each corner that saves something without a name.
class Rows {
 public:
  Rows(const Program& program, const AgainInBody& body, std::int64_t runs)
      : program_(program), body_(body), runs_(static_cast<double>(runs)) {
    only_named_ = body.graph;
    for (std::uint32_t v = 0; v < body.values.size(); ++v)
      only_named_.values[v].may_be_saved =
          only_named_.values[v].may_be_saved && body.named_as[v] != nullptr;
  }

  void add_to(std::vector<WorthSaving>& rows) const {
    const std::vector<SaveCut> corners = cheapest_cuts(body_.graph);
    for (std::size_t k = 1; k < corners.size(); ++k) {
      const SaveCut &before = corners[k - 1], &after = corners[k];
      const auto added = missing_in(after.saved, before.saved);
      const auto spared = missing_in(before.run_again, after.run_again);
      const bool is_unnamed =
          std::ranges::any_of(added, [&](std::uint32_t v) { return body_.named_as[v] == nullptr; });
      const bool is_worth = std::ranges::any_of(
          spared, [&](std::uint32_t op) { return is_heavy(body_.cost(op).kernel); });
      if (!is_unnamed || !is_worth || names_do_as_well(before, after)) continue;
      rows.push_back(make_row(added, spared));
    }
  }

 private:
  /// At half the price at which the two corners cost the same, where the further one is ahead by
  /// half of what it gains.
  bool names_do_as_well(const SaveCut& before, const SaveCut& after) const {
    const std::int64_t gained = (before.time - after.time).value();
    const SavePrice price{gained,
                          2 * std::max<std::int64_t>(1, (after.bytes - before.bytes).value())};
    const double with_names = cost_at(cheapest_cut(only_named_, price), price);
    return with_names - cost_at(after, price) < kBetterThanNames * static_cast<double>(gained);
  }

  WorthSaving make_row(const std::vector<std::uint32_t>& added,
                       const std::vector<std::uint32_t>& spared) const {
    WorthSaving row;
    for (const std::uint32_t v : added) {
      const SaveGraph::Value& value = body_.graph.values[v];
      row.bytes += value.bytes * body_.layers();
      row.saving += to_seconds(value.save_time) * runs_;
      const NamedValue* const named = body_.named_as[v];
      if (named == nullptr)
        row.values.push_back(describe(v));
      else
        (named->is_saved ? row.beside : row.with_names).push_back(named->name);
    }
    for (const std::uint32_t op : spared) {
      const Cost& cost = body_.cost(op);
      const bool collective = cost.kernel == KernelClass::kCollective;
      (collective ? row.collectives : row.kernels) +=
          to_seconds(body_.graph.operations[op].time) * runs_;
      const std::string_view name = program_[body_.body()][body_.operations[op]].name;
      row.spared_instructions.emplace_back(name);
      if (is_heavy(cost.kernel)) row.not_run_again.emplace_back(name);
    }
    return row;
  }

  UnnamedValue describe(std::uint32_t v) const {
    const Operand at = body_.values[v];
    const InstructionId id{body_.body(), at.instruction};
    const Computation& computation = program_[id.computation];
    UnnamedValue value;
    value.instruction = std::string(program_[id].name);
    value.shape = to_string(computation.shape_of(at));
    value.bytes_per_layer = body_.graph.values[v].bytes;
    value.total_bytes = value.bytes_per_layer * body_.layers();
    value.source = source_line(program_, id);
    value.op_name = metadata_text(computation, at.instruction, "op_name");
    return value;
  }

  const Program& program_;
  const AgainInBody& body_;
  double runs_;
  SaveGraph only_named_;
};

/// What HBM takes for a byte that is written or read by itself.
double picoseconds_a_byte(const HardwareProfile& profile) {
  return profile.kernels.elementwise.value.value() / profile.device.hbm_bandwidth.value.value() *
         1e12;
}

double rate_of(const WorthSaving& row) {
  return row.spared().value() / static_cast<double>(std::max<std::int64_t>(1, row.bytes.value()));
}

}  // namespace

std::vector<WorthSaving> find_unnamed_values(const Evaluator& evaluator, const Policy& policy) {
  std::vector<WorthSaving> rows;
  const bool is_scanned = !evaluator.residuals().residuals.empty();
  if (!is_scanned && evaluator.unrolled().residuals.empty()) return rows;
  const Program planned = evaluator.change(policy);  // its order does not matter
  const MemoryAssignment memory = assign_memory(planned, text_schedule(planned).value());
  const CostTable table =
      costs(planned, evaluator.profile(), evaluator.topology(), evaluator.cost_table());
  const std::vector<NamedValue> named = named_values(evaluator, policy);
  const Multiplicity times = multiplicity(planned);
  const double a_byte = picoseconds_a_byte(evaluator.profile());
  if (is_scanned) {
    const ResidualTable residuals = find_residuals(planned, memory, {});
    std::set<InstructionId> loops;
    for (const Residual& residual : residuals.residuals) loops.insert(residual.backward_loop);
    for (const InstructionId loop : loops) {
      const BackwardRegion region = region_of_loop(planned, memory, residuals, loop);
      const AgainInBody body(planned, table, region, a_byte, named);
      Rows(planned, body, times.runs[body.body()]).add_to(rows);
    }
  } else if (const UnrolledTable unrolled = find_unrolled_residuals(planned, memory, {});
             !unrolled.layers.empty() && !unrolled.residuals.empty()) {
    // One in the middle stands for all: the first and the last may be fused with what is around.
    const auto middle = static_cast<std::uint32_t>(unrolled.layers.size() / 2);
    const BackwardRegion region = region_of_layer(planned, unrolled, middle);
    const AgainInBody body(planned, table, region, a_byte, named);
    Rows(planned, body, region.layers).add_to(rows);
  }
  const Seconds step = run_times(planned, table, BranchTaken::kShortest, [&](InstructionId id) {
    return table.cost(id).time;
  })[planned.entry];
  std::erase_if(rows, [&](const WorthSaving& row) { return row.spared() < step * kLeastShare; });
  std::ranges::stable_sort(rows, std::ranges::greater{}, rate_of);
  return rows;
}

}  // namespace spillway
