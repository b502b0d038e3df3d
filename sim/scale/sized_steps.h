// The sizes that a user asks for, as programs: another batch or sequence from two dumps, another
// number of micro batches a step.
#pragma once

#include <string>
#include <vector>

#include "model/memory/flat_schedule.h"
#include "model/residuals/names.h"
#include "sim/scale/scale_program.h"
#include "sim/scale/step_size.h"

namespace spillway {

enum class SizeAxis : std::uint8_t { kBatch, kSequence };
/// "batch", "sequence".
std::string_view name_of(SizeAxis axis);

struct SizeRequest {
  SizeAxis axis = SizeAxis::kBatch;
  double first = 0, second = 0;    ///< of the two dumps
  std::vector<double> sizes = {};  ///< empty: as compiled, and no second program is needed
  std::vector<std::int64_t> accumulations = {};  ///< empty: as compiled
};

struct SizedStep {
  StepSize size;
  Program program;
  Schedule schedule;  ///< the order of the program that it was made from
  NameList names;     ///< with the shapes they have at this size
  std::vector<std::string> assumptions;
};

/// Every size with every accumulation, sizes changing slowest. `names` belong to the first program;
/// `second` may be null where no sizes are asked for.
Result<std::vector<SizedStep>> make_sized_steps(const Program& first, const Program* second,
                                                const NameList& names, const SizeRequest& request);

}  // namespace spillway
