// What the order of execution costs: layers that are not scanned, work that is put off, copies that
// a loop makes of what it carries.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "model/base/format.h"
#include "model/cost/kernel_class.h"
#include "model/diagnostics/rules.h"
#include "model/flags/flag_names.h"

namespace spillway::internal {
namespace {

constexpr std::size_t kFewestLayers = 4;

bool is_backward(std::string_view op_name) {
  return op_name.find("transpose(") != std::string_view::npos;
}

/// An operation without the number of its layer: "jvp(layers_12)/mul" is "jvp(layers_#)/mul".
std::string without_layer(const std::string& op_name, std::int64_t layer) {
  const std::string number = "_" + std::to_string(layer);
  std::string text = op_name;
  for (const std::string_view key : {"layers", "layer"}) {
    const std::size_t at = text.find(std::string(key) + number);
    if (at == std::string::npos) continue;
    return text.replace(at + key.size() + 1, number.size() - 1, "#");
  }
  return text;
}

/// What the forward pass of straight code saves, as a scan would too: the backward pass reads it,
/// or a copy takes it to the host.
std::set<BufferId> saved_by_forward(const Evidence& in) {
  const Computation& entry = in.program.entry_computation();
  std::set<BufferId> saved;
  for (const InstructionIndex i : entry.instructions()) {
    if (!is_backward(metadata_field(entry, i, "op_name"))) continue;
    for (const Operand& operand : entry.operands(i)) {
      const InstructionIndex made = behind_renamings(entry, operand).instruction;
      if (!is_backward(metadata_field(entry, made, "op_name")))
        saved.insert(in.buffer_at({in.program.entry, operand.instruction}, operand.node));
    }
  }
  for (const TransferSite& site : in.transfers) {
    if (site.id.computation != in.program.entry) continue;
    for (const Operand& source : entry.operands(site.id.instruction))
      saved.insert(in.buffer_at({in.program.entry, source.instruction}, source.node));
  }
  return saved;
}

/// Whether a loop that runs more than once holds matrix products: then the layers are scanned.
bool is_scanned(const Evidence& in) {
  for (const ComputationId id : ids(in.program.computations)) {
    if (in.in_loop[id] == 0 || in.times.runs[id] < 2) continue;
    for (const InstructionIndex i : in.program[id].instructions())
      if (kernel_kind(in.program, {id, i}).kernel == KernelClass::kGemm) return true;
  }
  return false;
}

/// What layers that are not scanned hold, each for itself, when most is live, beside what they save
/// for the backward pass: temporaries of one shape and operation, several times.
std::optional<Finding> layers_held(const Evidence& in) {
  struct Held {
    std::size_t arrays = 0;
    std::set<std::int64_t> layers;  // where op_names tell them
    Bytes bytes;
    std::string shape;

    std::size_t times() const { return layers.empty() ? arrays : layers.size(); }
  };
  const std::set<BufferId> saved = saved_by_forward(in);
  std::map<std::string, Held> groups;
  for (const LiveBuffer& b : in.memory.live_at_peak) {
    const bool counts = b.kind == BufferClass::kTemporary && !b.op_name.empty();
    if (!counts || (!is_backward(b.op_name) && saved.contains(b.buffer))) continue;
    Held& held = groups[b.shape + " " + (b.layer ? without_layer(b.op_name, *b.layer) : b.op_name)];
    ++held.arrays;
    if (b.layer) held.layers.insert(*b.layer);
    held.bytes += b.bytes;
    held.shape = b.shape;
  }
  Bytes total;
  std::int64_t kinds = 0;
  const Held* largest = nullptr;
  for (const auto& [operation, held] : groups) {
    if (held.times() < kFewestLayers) continue;
    ++kinds;
    total += held.bytes;
    if (largest == nullptr || held.bytes > largest->bytes) largest = &held;
  }
  if (!at_least(total, in.memory.live_peak, 10) || is_scanned(in)) return std::nullopt;
  return Finding{
      fmt::format("{} of temporaries when most is live are the same arrays again and again, as "
                  "unrolled layers make them: {}, the largest {} times {} ({}). What the forward "
                  "pass saves is not among them.",
                  format_bytes(total), counted(kinds, "kind", "kinds"), largest->arrays,
                  largest->shape, format_bytes(largest->bytes)),
      "In straight code XLA may hold temporaries of every layer at once; this part grows with the "
      "number of layers. A scan has one body whose temporaries each layer uses again.",
      "Scan the layers (MaxText: scan_layers=true)."};
}

/// Matrix products of the backward pass in the entry, in their order, and for each how many of them
/// ran between the moment at which all it reads was there and its own turn.
struct Delays {
  std::vector<InstructionIndex> products;
  std::vector<std::int64_t> waited;
};

Delays find_delays(const Program& program) {
  const Computation& entry = program.entry_computation();
  Delays delays;
  // By the end of an instruction; of a renaming, by the end of what it renames.
  std::vector<std::int64_t> products_done(entry.size());
  for (const InstructionIndex i : entry.instructions()) {
    const auto before = static_cast<std::int64_t>(delays.products.size());
    products_done[i.index] = before;
    if (is_renaming(entry[i].opcode)) {
      products_done[i.index] = products_done[entry.operands(i)[0].instruction.index];
      continue;
    }
    if (!is_backward(metadata_field(entry, i, "op_name")) ||
        kernel_kind(program, {program.entry, i}).kernel != KernelClass::kGemm)
      continue;
    std::int64_t ready = 0;
    for (const Operand& operand : entry.operands(i))
      ready = std::max(ready, products_done[operand.instruction.index]);
    delays.waited.push_back(before - ready);
    delays.products.push_back(i);
    products_done[i.index] = before + 1;
  }
  return delays;
}

/// Weight gradients that were put off, with what they read waiting in HBM, in an order that is
/// known to cost memory.
std::optional<Finding> gradients_put_off(const Evidence& in) {
  constexpr std::int64_t kShortestDelay = 6;
  if (!in.order_cost || !at_least(*in.order_cost, in.memory.live_peak, 20)) return std::nullopt;
  const Computation& entry = in.program.entry_computation();
  const Delays delays = find_delays(in.program);
  const auto all = static_cast<std::int64_t>(delays.products.size());
  const std::int64_t late = std::max(kShortestDelay, all / 4);
  std::int64_t count = 0, longest = 0;
  std::set<BufferId> waiting;
  for (std::size_t k = 0; k < delays.products.size(); ++k) {
    if (delays.waited[k] < late) continue;
    ++count;
    longest = std::max(longest, delays.waited[k]);
    for (const Operand& operand : entry.operands(delays.products[k]))
      waiting.insert(in.buffer_at({in.program.entry, operand.instruction}, operand.node));
  }
  Bytes held;
  for (const BufferId buffer : waiting) {
    if (in.at_peak[buffer] != 0) held += in.assignment.liveness.buffers[buffer].size;
  }
  const bool some = count >= static_cast<std::int64_t>(kFewestLayers);
  if (!some || !at_least(held, in.memory.live_peak, 20)) return std::nullopt;
  return Finding{
      fmt::format("{} of {} of the backward pass run late: up to {} others run after all that they "
                  "read is there, and when most is live that is {}. In another order the program "
                  "would need {} less.",
                  format_count(count), counted(all, "matrix product", "matrix products"), longest,
                  format_bytes(held), format_bytes(*in.order_cost)),
      "They are weight gradients, which nothing waits for: the latency-hiding scheduler puts them "
      "off, each with a saved activation and an incoming gradient. Its memory limit only decides "
      "between equals.",
      "Scan the layers; or " + flag::set(flag::kLatencyHiding, "false") + "; or " + fencing_flag() +
          "."};
}

/// Copies that a loop makes of what it carries, around a conditional that hands it through: those
/// of its body and of the branches.
std::optional<Finding> carries_copied(const Evidence& in) {
  std::set<ComputationId> around;
  std::string first;
  for (const ComputationId id : ids(in.program.computations)) {
    if (in.in_loop[id] == 0 || in.times.runs[id] < 2) continue;
    for (const InstructionIndex i : in.program[id].instructions()) {
      if (in.program[id][i].opcode != Opcode::kConditional) continue;
      if (first.empty()) first = std::string(in.program[id].name());
      around.insert(id);
      for (const ComputationId branch : in.program[id].called(i)) around.insert(branch);
    }
  }
  std::int64_t count = 0;
  Bytes bytes;
  for (const ComputationId id : around)
    for (const InstructionIndex i : in.program[id].instructions()) {
      const Instruction& copy = in.program[id][i];
      if (copy.opcode != Opcode::kCopy || host_transfer(in.program, {id, i})) continue;
      count += in.times.runs[id];
      bytes += copy.shape.array_bytes() * in.times.runs[id];
    }
  if (!at_least(bytes, in.memory.totals.total_device, 2)) return std::nullopt;
  return Finding{
      fmt::format("loops around a conditional copy up to {} within HBM in a step, in {}; the first "
                  "is {}.",
                  format_bytes(bytes), counted(count, "copy", "copies"), first),
      "A conditional whose branches hand the loop's state through makes XLA copy all of it in "
      "every iteration (jax-ml/jax#38145). Branches are counted as if each ran every time.",
      "Take the conditional out of the scan, or make its predicate constant; jaxlib 0.7.2 made "
      "none "
      "of these copies."};
}

/// The value that a stack is before its loop, behind the copy that gave it an array of its own.
std::optional<ValueId> initial_value(const Evidence& in, const Residual& residual) {
  const InstructionId loop = residual.forward_loop;
  const Operand state = in.program[loop.computation].operands(loop.instruction)[0];
  const Shape carried = in.program[loop].shape;
  const MemoryAssignment& memory = in.assignment;
  for (ShapeNodeIndex node = 0; node < carried.node_count(); ++node) {
    if (memory.liveness.buffer_of[memory.values.at(loop, node)] != residual.stack) continue;
    const ValueId start =
        memory.values.at(loop.computation, Operand{state.instruction, state.node + node});
    const InstructionId made_at = memory.values[start].defined_at.instruction;
    if (in.program[made_at].opcode != Opcode::kCopy) return start;
    return memory.values.at(made_at.computation,
                            in.program[made_at.computation].operands(made_at.instruction)[0]);
  }
  return std::nullopt;
}

/// Stacks that begin as copies of one array, mostly of zeros.
std::optional<Finding> shared_fill(const Evidence& in) {
  std::map<ValueId, std::vector<const Residual*>> by_fill;
  for (const Residual& r : in.residuals.residuals) {
    const auto fill = initial_value(in, r);
    if (fill) by_fill[*fill].push_back(&r);
  }
  std::vector<std::string> names;
  Bytes bytes;
  for (const auto& [fill, stacks] : by_fill) {
    if (stacks.size() < 2) continue;
    for (const Residual* r : stacks) {
      names.push_back(label_of(*r));
      bytes += r->total_bytes;
    }
  }
  if (names.empty()) return std::nullopt;
  return Finding{
      fmt::format("{} ({} in all) begin as copies of one array.", enumerate(names),
                  format_bytes(bytes)),
      "Each is an array of its own from the loop on, and counts once. Offloading one leaves the "
      "others on the device; the one on the host begins uninitialised.",
      ""};
}

constexpr Rule kRules[] = {
    {"gradients-put-off", Severity::kWarning, gradients_put_off},
    {"carries-copied", Severity::kWarning, carries_copied},
    {"layers-held", Severity::kInfo, layers_held},
    {"shared-fill", Severity::kInfo, shared_fill},
};

}  // namespace

std::span<const Rule> order_rules() { return kRules; }

}  // namespace spillway::internal
