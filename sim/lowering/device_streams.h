// Which stream of the GPU each asynchronous operation runs on, as XLA's thunks assign them.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "model/base/jaxlib_version.h"
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
  kDedicated,   ///< from jaxlib 0.12 on: one stream each way
  kRoundRobin,  ///< before: like any other asynchronous operation, on one of four streams
  kBlocking,  ///< of no XLA, but as copies of pageable memory are: whoever starts one waits for it
};

/// By version: thunk sequences of 0.10.2 and 0.11.2 have round robin, those of 0.12.0.1 do not.
CopyStreams copy_streams_of(const JaxlibVersion& version);

/// A guess where the version is not known: what has get-tuple-element instructions was written by
/// 0.10 or before. Text of 0.11 looks like that of 0.12, and is taken for it.
CopyStreams copy_streams_of(const Program& program);

/// What is known of it: by the version, else by the thunk sequence beside the program, if the
/// program has host copies. Empty where neither tells.
std::optional<CopyStreams> find_copy_streams(const std::optional<JaxlibVersion>& jaxlib,
                                             const Program& program);

/// The stream of each start, by computation and instruction; empty for everything that is none.
using StreamAssignment = IdVector<ComputationId, std::vector<std::optional<DeviceStream>>>;

/// Collectives that XLA made synchronous after scheduling are on the main stream. Walks the program
/// as XLA does, callers before callees, each computation in post order, and hands
/// out streams in turn: four for computation, one for communication.
StreamAssignment assign_streams(const Program& program, CopyStreams copies);

}  // namespace spillway
