// Which stream of the GPU each asynchronous operation runs on, as XLA's thunks assign them.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace spillway {

/// One of XLA's stream pools.
enum class StreamPool : std::uint8_t {
  kMain,           ///< where kernels run one after another
  kComputation,    ///< slices copied within HBM, asynchronous kernels
  kCommunication,  ///< collectives
  kDeviceToHost,   ///< offloads: one stream, so first in, first out
  kHostToDevice,   ///< reloads, likewise
};

struct DeviceStream {
  StreamPool pool = StreamPool::kMain;
  std::uint32_t index = 0;
  friend auto operator<=>(const DeviceStream&, const DeviceStream&) = default;
};

/// As XLA prints it: "memcpy_d2h_stream", "communication_stream[0]".
std::string to_string(DeviceStream stream);

/// How host copies get their stream.
enum class CopyStreams {
  kDedicated,   ///< jaxlib 0.12: one stream each way
  kRoundRobin,  ///< before: like any other asynchronous operation, on one of four streams
};

/// The rule of the XLA that wrote the program, judged by its text: element references (%x#1) came
/// with the dedicated streams.
CopyStreams copy_streams_of(const Program& program);

/// The stream of each start, by computation and instruction; empty for everything that is none.
using StreamAssignment = IdVector<ComputationId, std::vector<std::optional<DeviceStream>>>;

/// Walks the program as XLA does, callers before callees, each computation in post order, and hands
/// out streams in turn: four for computation, one for communication.
StreamAssignment assign_streams(const Program& program, CopyStreams copies);

}  // namespace spillway
