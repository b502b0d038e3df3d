// What `flags` answers, as text and as JSON: XLA's flags as a version of jaxlib has them, and what
// is wrong with a line of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/flags/check_flags.h"

namespace spillway {

struct FlagsReport {
  /// A flag of the table, or one that was asked for.
  struct Row {
    std::string topic;  ///< empty for a flag that only its parser tells of
    std::string name;
    std::string life;  ///< which versions have it
    bool in_version = true;
    bool is_stable = false;
    std::string fallback;  ///< its default
    std::string values;    ///< what it takes
    std::string meaning, cost;
  };
  FlagContext context;
  std::string hardware;  ///< id of a profile; empty where none was given
  std::vector<Row> rows;
  /// What was asked for that is part of several names, and of how many.
  std::vector<std::pair<std::string, std::size_t>> searched;
  bool has_environment = false;  ///< the variables are listed too

  /// Of the line that was to be checked, if one was.
  struct Check {
    std::string text;
    bool is_empty = false;  ///< no word stands there
    std::vector<Diagnostic> findings;
    std::optional<ScheduleSettings> settings;
  };
  std::optional<Check> check;
};

/// The whole table, or of it and of all other known flags those in `names`, where one that is no
/// flag's name stands for all that have it in theirs. An error: no version knows such a flag, or a
/// version that check_version refuses.
Result<FlagsReport> make_flags_report(const FlagContext& context, const std::string& hardware,
                                      const std::vector<std::string>& names);
/// Only what is wrong with a line. An error: the version.
Result<FlagsReport> make_flags_check(const FlagContext& context, const std::string& hardware,
                                     const std::string& text, const FlagText& flags);

/// For a person.
std::string render_text(const FlagsReport& report);
/// Schema spillway.flags/1.
std::string render_json(const FlagsReport& report);

}  // namespace spillway
