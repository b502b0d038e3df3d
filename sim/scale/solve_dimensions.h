// Sizes of all dimensions of a program, given some of them: what its rules imply, and where they
// imply nothing, what another compiled program of the same step shows.
#pragma once

#include <optional>
#include <vector>

#include "sim/scale/dimensions.h"

namespace spillway {

/// A dimension and how large it shall be.
struct WantedSize {
  DimensionId dimension;
  std::int64_t size = 0;
};

/// How a size was found.
enum class SizeOrigin : std::uint8_t {
  kImplied,   ///< by the rules of HLO, from what was wanted
  kEvidence,  ///< in between the two programs, in an instruction that both have
  kPart,      ///< a part of a dimension that changes: in proportion, or what is cut off stays
  kLikeness,  ///< as large as a dimension of an operand that changes
  kSplit,     ///< of several that could grow, one as large as what grows, or the slowest in memory
  kUnchanged  ///< nothing says that it changes
};

struct Size {
  std::int64_t size = 0;
  SizeOrigin origin = SizeOrigin::kUnchanged;
};

struct SolvedDimensions {
  IdVector<DimensionId, Size> sizes;
  /// Rules that do not hold for these sizes: two of them contradict each other, or a size would be
  /// no whole number. Arrays around such a place have sizes that do not fit together.
  std::vector<DimensionId> broken;
};

/// `wanted` comes first, `evidence` where nothing else decides; evidence for one size is counted,
/// and the most frequent holds.
SolvedDimensions solve_dimensions(const Program& program, const DimensionRules& rules,
                                  const std::vector<WantedSize>& wanted,
                                  const std::vector<WantedSize>& evidence);

}  // namespace spillway
