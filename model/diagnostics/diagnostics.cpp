#include "model/diagnostics/diagnostics.h"

#include <algorithm>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"
#include "model/flags/flag_names.h"
#include "model/flags/flag_settings.h"

namespace spillway {
namespace internal {

Evidence gather(const DiagnosisInput& input) {
  Evidence evidence{input, {}, multiplicity(input.program), inside_loops(input.program), {}};
  evidence.transfers = find_transfers(input.program, evidence.times);
  evidence.at_peak = IdVector<BufferId, std::uint8_t>(input.assignment.liveness.buffers.size());
  for (const LiveBuffer& live : input.memory.live_at_peak) evidence.at_peak[live.buffer] = 1;
  return evidence;
}

ShapeNodeIndex arrival_node(const Instruction& transfer) {
  if (transfer.opcode == Opcode::kCopyStart) return transfer.shape.element_node(0);
  return transfer.opcode == Opcode::kAsyncStart ? transfer.shape.element_node(1) : 0;
}

bool is_state(const Evidence& in, const TransferSite& site) {
  const bool to_host = site.transfer.direction == TransferDirection::kDeviceToHost;
  const ValueTable& values = in.assignment.values;
  const ValueId on_host = to_host ? values.at(site.id, arrival_node(in.program[site.id]))
                                  : values.at(site.id.computation, *site.transfer.host_array);
  // Gradients made on the host may lie where a donated argument lay: they are no state.
  const Buffer& buffer = in.assignment.liveness.buffers[in.assignment.liveness.buffer_of[on_host]];
  return buffer.live_out || std::ranges::any_of(buffer.values, [&](ValueId value) {
           const InstructionId made = values[value].defined_at.instruction;
           return made.computation == in.program.entry &&
                  in.program[made].opcode == Opcode::kParameter;
         });
}

std::optional<Bytes> compiled_for(const Evidence& in) {
  if (in.dump.compiled_for_hbm || in.budget == nullptr) return in.dump.compiled_for_hbm;
  return in.budget->hbm;
}

bool at_least(Bytes part, Bytes whole, std::int64_t share) {
  return part > Bytes(0) && part.value() >= whole.value() / share;
}

std::string fencing_flag() {
  return flag::set(flag::kFencing, std::to_string(kFencedFrom.value()));
}

std::string enumerate(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  return format_count(n) + " " + std::string(n == 1 ? one : many);
}

}  // namespace internal

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "";
}

std::string Diagnostic::message() const {
  std::string text = what;
  for (const std::string* part : {&why, &advice})
    if (!part->empty()) text += " " + *part;
  return text;
}

std::vector<Diagnostic> diagnose(const DiagnosisInput& input) {
  const internal::Evidence evidence = internal::gather(input);
  std::vector<Diagnostic> found;
  for (const auto& rules :
       {internal::compiler_rules(), internal::machine_rules(), internal::offload_rules(),
        internal::host_rules(), internal::copy_rules(), internal::order_rules(),
        internal::donation_rules(), internal::name_rules(), internal::hazard_rules()})
    for (const internal::Rule& rule : rules)
      if (auto finding = rule.look(evidence))
        found.push_back({rule.code, rule.severity, std::move(finding->what),
                         std::move(finding->why), std::move(finding->advice)});
  std::ranges::stable_sort(found, std::ranges::greater(), &Diagnostic::severity);
  return found;
}

}  // namespace spillway
