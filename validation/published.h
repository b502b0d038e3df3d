// Results that somebody published, and what has to be computed to compare with them: rows of
// published.yaml, read strictly. A row holds facts and their origin, never what we compute.
//
// A step is a flat list of settings: MaxText's keys (read_maxtext.h), and beside them those that
// say where and how it runs (run_settings.h). What a source leaves open is listed with the values
// that are tried, all combinations of them; the answer is then a band.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"

namespace spillway {

/// How strictly a row is graded.
enum class Tier {
  kExact,     ///< arithmetic and bytes
  kSign,      ///< which of two is faster
  kFit,       ///< whether it fits
  kMemory,    ///< bytes of another allocator or compiler
  kRatio,     ///< of two runs of the same source
  kAbsolute,  ///< a time or rate of a machine
};
inline constexpr Tier kTiers[] = {Tier::kExact,  Tier::kSign,  Tier::kFit,
                                  Tier::kMemory, Tier::kRatio, Tier::kAbsolute};
std::string_view name_of(Tier tier);

/// Setting to value, both as they stand in the file.
using Settings = std::map<std::string, std::string>;
/// `over` wins.
Settings merged(Settings under, const Settings& over);

struct OpenInput {
  std::string what;              ///< "policy of the baseline"
  std::vector<Settings> values;  ///< added to both steps of a row; with "against " to the other
};

struct Tolerance {
  double value = 0;
  bool is_relative = false;  ///< a share of the published value, else in its unit
};

struct PublishedRow {
  std::string id;
  std::string source;
  std::string claim;    ///< what is compared, for the table
  std::string measure;  ///< measures.h
  Tier tier = Tier::kExact;
  Settings step;
  std::optional<Settings> against;  ///< the step it is compared with: `step` with these changes
  std::vector<OpenInput> open;
  std::string published;  ///< a number, or one of the words of grade.h
  std::string unit;
  Tolerance tolerance;
  std::string series;       ///< rows of one chip and precision, or of one paper; may be empty
  bool calibrates = false;  ///< the series' factor comes from this row
  std::string note;
};

/// Rows of the literature that are not graded, and why.
struct Excluded {
  std::string rows;
  std::string why;
};

struct PublishedResults {
  std::vector<PublishedRow> rows;
  std::vector<Excluded> excluded;
};

Result<PublishedResults> read_published(const std::string& path);
/// The same of a text; `path` is only for messages.
Result<PublishedResults> parse_published(const std::string& text, const std::string& path);

/// "15 %" is relative, "0.1" is in the row's unit; empty for what is neither.
std::optional<Tolerance> parse_tolerance(std::string_view text);

/// Every combination of what is open, one setting list each; one empty list where nothing is.
std::vector<Settings> combinations(const std::vector<OpenInput>& open);

}  // namespace spillway
