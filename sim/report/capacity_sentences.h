// The questions that a capacity report is made for, answered in sentences.
#pragma once

#include <string>
#include <vector>

#include "sim/capacity/capacity.h"

namespace spillway {

struct CapacityAnswer {
  std::string question;
  std::vector<std::string> sentences;  ///< in the order of the cells
};

/// "How many GPUs are needed?", "What does a bigger batch bring?", "What would another machine
/// change?"; those that the grid can answer.
std::vector<CapacityAnswer> answer_questions(const CapacityReport& report);

/// "HBM capacity is short by 3.10 GiB": why a cell that is possible does not fit.
std::string shortage_text(const CapacityCell& cell);

/// "12,345": tokens a second, with decimals only where they say something.
std::string rate_text(double tokens_per_second);

}  // namespace spillway
