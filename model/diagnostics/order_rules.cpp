// What the order of execution costs: layers that are not scanned, work that is put off, copies that
// a loop makes of what it carries.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/format.h"
#include "model/cost/kernel_class.h"
#include "model/diagnostics/rules.h"

namespace spillway::internal {
namespace {

constexpr std::size_t kFewestLayers = 4;

/// An operation without the number of its layer: "jvp(layers_12)/mul" is "jvp(layers_#)/mul".
std::string without_layer(const std::string& op_name, std::int64_t layer) {
  std::string text = op_name;
  const std::string number = std::to_string(layer);
  for (std::size_t at = text.find(number); at != std::string::npos; at = text.find(number, at + 1))
    if (at > 0 && (text[at - 1] == '_' || text[at - 1] == '/')) {
      text.replace(at, number.size(), "#");
      break;
    }
  return text;
}

/// What layers that are not scanned hold, each for itself, when most is live: temporaries of one
/// shape and operation, several times.
std::optional<Finding> layers_held(const Evidence& in) {
  struct Held {
    std::size_t arrays = 0;
    Bytes bytes;
    std::string shape;
  };
  if (!in.residuals.residuals.empty()) return std::nullopt;  // scanned
  std::map<std::string, Held> groups;
  for (const LiveBuffer& b : in.memory.live_at_peak) {
    if (b.kind != BufferClass::kTemporary || b.op_name.empty()) continue;
    Held& held = groups[b.shape + " " + (b.layer ? without_layer(b.op_name, *b.layer) : b.op_name)];
    ++held.arrays;
    held.bytes += b.bytes;
    held.shape = b.shape;
  }
  Bytes total;
  std::size_t kinds = 0;
  const Held* largest = nullptr;
  for (const auto& [operation, held] : groups) {
    if (held.arrays < kFewestLayers) continue;
    ++kinds;
    total += held.bytes;
    if (largest == nullptr || held.bytes > largest->bytes) largest = &held;
  }
  if (largest == nullptr || total.value() < in.memory.live_peak.value() / 10) return std::nullopt;
  return Finding{
      fmt::format(
          "{} of temporaries when most is live are the same arrays again and again, one for "
          "each unrolled layer: {}, the largest {} times {} ({}).",
          format_bytes(total), counted(static_cast<std::int64_t>(kinds), "kind", "kinds"),
          largest->arrays, largest->shape, format_bytes(largest->bytes)),
      "In straight code XLA may hold temporaries of every layer at once; this part grows with the "
      "number of layers. A scan has one body whose temporaries each layer uses again.",
      "Scan the layers (MaxText: scan_layers=true), or see what "
      "--xla_gpu_enable_latency_hiding_scheduler=false needs."};
}

bool is_backward(std::string_view op_name) {
  return op_name.find("transpose(") != std::string_view::npos;
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
  std::vector<std::int64_t> products_done(entry.size());  // by the end of an instruction
  for (const InstructionIndex i : entry.instructions()) {
    const auto before = static_cast<std::int64_t>(delays.products.size());
    products_done[i.index] = before;
    if (!is_backward(metadata_field(entry, i, "op_name")) ||
        kernel_kind(program, {program.entry, i}).kernel != KernelClass::kGemm)
      continue;
    std::int64_t ready = 0;
    for (const Operand& operand : entry.operands(i))
      ready = std::max(ready, products_done[behind_renamings(entry, operand).instruction.index]);
    delays.waited.push_back(before - ready);
    delays.products.push_back(i);
    products_done[i.index] = before + 1;
  }
  return delays;
}

/// Weight gradients that the scheduler put off, with what they read waiting in HBM.
std::optional<Finding> gradients_put_off(const Evidence& in) {
  constexpr std::int64_t kShortestDelay = 6;
  const Computation& entry = in.program.entry_computation();
  const Delays delays = find_delays(in.program);
  const std::int64_t all = static_cast<std::int64_t>(delays.products.size());
  const std::int64_t late = std::max(kShortestDelay, all / 4);
  std::int64_t count = 0, longest = 0;
  std::set<BufferId> waiting;
  for (std::size_t k = 0; k < delays.products.size(); ++k) {
    if (delays.waited[k] < late) continue;
    ++count;
    longest = std::max(longest, delays.waited[k]);
    for (const Operand& operand : entry.operands(delays.products[k]))
      waiting.insert(
          in.assignment.liveness.buffer_of[in.assignment.values.at(in.program.entry, operand)]);
  }
  Bytes held;
  for (const BufferId buffer : waiting)
    if (in.at_peak[buffer] != 0) held += in.assignment.liveness.buffers[buffer].size;
  const bool matters = held.value() >= in.memory.live_peak.value() / 20;
  if (count < static_cast<std::int64_t>(kFewestLayers) || !matters) return std::nullopt;
  return Finding{
      fmt::format("{} of {} of the backward pass run late: up to {} others run after all that they "
                  "read is there. When most is live, that is {}.",
                  format_count(count), counted(all, "matrix product", "matrix products"), longest,
                  format_bytes(held)),
      "They are weight gradients, which nothing waits for: the latency-hiding scheduler puts them "
      "off, each with a saved activation and an incoming gradient. Its memory limit only decides "
      "between equals.",
      "Scan the layers; or --xla_gpu_enable_latency_hiding_scheduler=false; or "
      "--xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=50000000."};
}

/// Copies that a loop makes of what it carries, around a conditional that hands it through.
std::optional<Finding> carries_copied(const Evidence& in) {
  const auto sites = callers(in.program);
  std::int64_t count = 0;
  Bytes bytes;
  std::string loop;
  const auto count_copies = [&](ComputationId id) {
    for (const InstructionIndex i : in.program[id].instructions()) {
      const Instruction& copy = in.program[id][i];
      if (copy.opcode != Opcode::kCopy || host_transfer(in.program, {id, i})) continue;
      count += in.times.runs[id];
      bytes += copy.shape.array_bytes() * in.times.runs[id];
    }
  };
  for (const ComputationId id : ids(in.program.computations)) {
    if (in.times.runs[id] < 2) continue;
    for (const InstructionIndex i : in.program[id].instructions()) {
      if (in.program[id][i].opcode != Opcode::kConditional) continue;
      if (loop.empty()) loop = std::string(in.program[id].name());
      for (const ComputationId branch : in.program[id].called(i)) count_copies(branch);
      count_copies(id);
    }
  }
  if (bytes.value() < in.memory.totals.total_device.value() / 2) return std::nullopt;
  return Finding{
      fmt::format(
          "loops around a conditional copy {} within HBM in a step, in {}; the first is {}.",
          format_bytes(bytes), counted(count, "copy", "copies"), loop),
      "A conditional whose branches hand the loop's state through makes XLA copy all of it in "
      "every "
      "iteration (jax-ml/jax#38145).",
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

/// Stacks that begin as one and the same array of zeros.
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
      fmt::format("{} ({} in all) begin as copies of one array of zeros.", enumerate(names),
                  format_bytes(bytes)),
      "Each is an array of its own from the loop on, and counts once. Offloading one leaves the "
      "zeros and the others on the device; the one on the host begins uninitialised.",
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
