// Heat maps of a capacity report as HTML: for a model on a machine at one sequence a table of
// batches by devices, coloured by tokens a second and device. What does not fit is hatched and says
// so: no colour is needed to see it.
#pragma once

#include <string>

#include "sim/capacity/capacity.h"

namespace spillway {

/// "&lt;" for '<'.
std::string html_text(std::string_view text);

/// The rules that the maps need, for the page's style sheet.
std::string_view heat_map_style();

/// All maps, and the key to their colours; of a report with more than `most` cells the first so
/// many, and a sentence that says so.
std::string heat_maps(const CapacityReport& report, std::size_t most);

}  // namespace spillway
