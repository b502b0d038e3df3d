// Copies between device memory and pinned host memory, in every form XLA gives them.
#pragma once

#include <optional>
#include <vector>

#include "model/program/call_graph.h"
#include "model/program/program.h"

namespace spillway {

enum class TransferDirection {
  kDeviceToHost,  ///< offload
  kHostToDevice,  ///< reload
};

struct HostTransfer {
  TransferDirection direction = TransferDirection::kDeviceToHost;
  Bytes bytes;  ///< that cross the link: of the slice, never of the stacked array
  Shape shape;  ///< of what crosses
  /// The array in host memory: an operand of the instruction for a reload, and for an offload of a
  /// slice; empty where the transfer makes a new host array.
  std::optional<Operand> host_array;
};

/// The transfer an instruction makes, or begins when it is an async start. Copies, slices and
/// in-place updates count, alone or as the only work of a fusion. Empty for everything else, dones
/// included.
std::optional<HostTransfer> host_transfer(const Program& program, InstructionId id);

/// A transfer where it stands, and how often it runs in a step.
struct TransferSite {
  InstructionId id;
  HostTransfer transfer;
  std::int64_t runs = 0;
};
/// Every transfer of a program, in the order of its text; what an async start or a fusion wraps
/// counts where it is called.
std::vector<TransferSite> find_transfers(const Program& program);
std::vector<TransferSite> find_transfers(const Program& program, const Multiplicity& times);

/// Whether an instruction other than a transfer computes on host memory: a cliff, since the host
/// runs it. Tuples, loops and the like only pass host arrays on.
bool is_host_compute(const Program& program, InstructionId id);

}  // namespace spillway
