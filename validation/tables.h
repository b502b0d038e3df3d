// The graded rows as Markdown, and their place in a page: between two markers, never by hand.
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"
#include "validation/series.h"

namespace spillway {

inline constexpr std::string_view kBeginMarker = "<!-- spillway-validate: begin -->";
inline constexpr std::string_view kEndMarker = "<!-- spillway-validate: end -->";

std::string render_tables(const PublishedResults& results, const std::vector<GradedRow>& rows);

/// The page with `tables` between its markers. An error: a marker is missing, or they are the wrong
/// way round.
Result<std::string> replace_between_markers(const std::string& page, const std::string& tables,
                                            const std::string& path);

}  // namespace spillway
