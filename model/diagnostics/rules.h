// The rules behind diagnose(), a table for each subject. A new rule is a function in the file of
// its subject and a row in the table at the end of that file.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/diagnostics/diagnostics.h"
#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"

namespace spillway::internal {

/// What several rules need, found once.
struct Evidence : DiagnosisInput {
  std::vector<TransferSite> transfers;
  Multiplicity times;
  IdVector<ComputationId, std::uint8_t> in_loop;  ///< 1: runs inside a while
  IdVector<BufferId, std::uint8_t> at_peak;       ///< 1: in HBM when most is live

  BufferId buffer_at(InstructionId id, ShapeNodeIndex node) const {
    return assignment.liveness.buffer_of[assignment.values.at(id, node)];
  }
  /// Whether an element of an instruction that control flow reaches is in HBM when most is live.
  bool is_at_peak(InstructionId id, ShapeNodeIndex node) const {
    return at_peak[buffer_at(id, node)] != 0;
  }
};
Evidence gather(const DiagnosisInput& input);

struct Finding {
  std::string what, why, advice;
};

struct Rule {
  const char* code;
  Severity severity;
  std::optional<Finding> (*look)(const Evidence&);
};

std::span<const Rule> offload_rules();   ///< did the offload do what it was meant to do
std::span<const Rule> host_rules();      ///< pinned host memory, and work on it
std::span<const Rule> copy_rules();      ///< copies that wait, transpose or fetch the wrong thing
std::span<const Rule> order_rules();     ///< what the order of execution costs
std::span<const Rule> donation_rules();  ///< arguments that results could take over
std::span<const Rule> name_rules();      ///< names and residuals
std::span<const Rule> compiler_rules();  ///< what XLA itself added, assumed or left out
std::span<const Rule> machine_rules();   ///< the program on the machine it is meant for
std::span<const Rule> hazard_rules();    ///< what is known about the version of jaxlib

/// Where the result of a transfer stands in the shape of the instruction that makes or begins it.
ShapeNodeIndex arrival_node(const Instruction& transfer);
/// Whether a transfer fetches an argument of the step or brings a result of it away: optimizer
/// state and parameters that live in pinned host memory. Control flow must reach the transfer.
bool is_state(const Evidence& evidence, const TransferSite& site);

/// HBM of the device that the program was compiled for: what the dump says, else the machine's.
std::optional<Bytes> compiled_for(const Evidence& evidence);

/// Whether there is a part at all, and it is a `share`-th of the whole or more.
bool at_least(Bytes part, Bytes whole, std::int64_t share);

/// The flag that keeps the scheduler from putting off what reads arrays of this size or more.
std::string fencing_flag();

/// "a, b, c and 4 more".
std::string enumerate(const std::vector<std::string>& names, std::size_t most = 6);
/// "1 copy", "3 copies".
std::string counted(std::int64_t n, std::string_view one, std::string_view many);

}  // namespace spillway::internal
