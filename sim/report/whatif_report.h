// What `whatif` answers, as text and as JSON: one row a case.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/diagnostics/diagnostics.h"
#include "model/plan/budget.h"
#include "sim/planner/anchor.h"
#include "sim/planner/whatif.h"
#include "sim/shard.h"

namespace spillway {

struct WhatIfReport {
  std::string program_name, path, hardware;
  std::size_t modules_in_folder = 1;  ///< of which this one was picked
  JaxlibVersion jaxlib;
  bool jaxlib_is_assumed = false;
  Budget budget;
  std::vector<Handle> handles;
  PolicyCase as_given;  ///< in the order that the program has
  /// As compiled, ordered again as the cases are, to compare them with; the first case where empty.
  std::optional<PolicyCase> again;
  std::vector<WhatIfOutcome> cases;  ///< all ordered again; the first without the flags asked for
  std::optional<ShardLabel> shard;   ///< the part of the cases that these are; empty: all
  std::size_t cases_dealt = 0;       ///< to this part and the others
  std::vector<Diagnostic> findings;  ///< what is odd about the flags; none is an error
  std::vector<std::string> assumptions;
  std::optional<Anchor> anchor;  ///< on what run all of this rests
};

/// Whether cases may be compared with each other.
inline bool is_ranked(const WhatIfReport& report) {
  return !report.anchor || report.anchor->ranks();
}

/// For a person.
std::string render_text(const WhatIfReport& report);
/// Schema spillway.whatif/1.
std::string render_json(const WhatIfReport& report);

}  // namespace spillway
