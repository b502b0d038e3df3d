#include "model/diagnostics/diagnostics.h"

#include <algorithm>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"

namespace spillway {
namespace internal {

Evidence gather(const DiagnosisInput& input) {
  Evidence evidence{input, find_transfers(input.program), multiplicity(input.program), {}};
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
  const auto cell = in.assignment.cell_of[on_host];
  if (!cell) return false;
  const Allocation& place = in.assignment.allocations[in.assignment.cells[*cell].allocation];
  return place.parameter.has_value() || place.live_out;
}

std::string enumerate(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

std::string label_of(const Residual& residual) {
  return residual.names.empty() ? residual.id : residual.names.front();
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
        internal::host_rules(), internal::order_rules(), internal::donation_rules(),
        internal::name_rules(), internal::hazard_rules()})
    for (const internal::Rule& rule : rules)
      if (auto finding = rule.look(evidence))
        found.push_back({rule.code, rule.severity, std::move(finding->what),
                         std::move(finding->why), std::move(finding->advice)});
  std::ranges::stable_sort(found, std::ranges::greater(), &Diagnostic::severity);
  return found;
}

}  // namespace spillway
