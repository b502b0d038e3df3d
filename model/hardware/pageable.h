// A machine whose host memory is not pinned, as far as its link goes. XLA always pins what it
// offloads to; frameworks that do not have the driver stage each copy through a small pinned
// buffer, and whoever asks for the copy waits for it (CopyStreams::kBlocking in sim/lowering).
#pragma once

#include <string_view>

#include "model/hardware/profile.h"

namespace spillway {

/// Rates that are no mistake of a unit: a disk's at the least, and more than any link's.
inline constexpr BytesPerSecond kSlowestPageable{1e6}, kFastestPageable{1e13};
inline constexpr std::string_view kPageableRates = "from 1 MB/s to 10 TB/s, for example 1.4GB/s";
constexpr bool is_pageable_rate(BytesPerSecond rate) {
  return rate >= kSlowestPageable && rate <= kFastestPageable;
}

/// Both directions at this rate, which nobody measured on the machine: it is the user's. Reported
/// were 1.4 GB/s where pinned copies have 12.6 (A100), 1.8, 2.8 and 16 where they have 55 (H100,
/// H200). A rate above the link's is the link's.
HardwareProfile with_pageable_copies(HardwareProfile profile, BytesPerSecond rate);

}  // namespace spillway
