// What decides the cases of a question and their figures, as one number: parts of an answer have
// it, so that `merge` tells those of another question from its own.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/budget_options.h"
#include "cli/load_step.h"
#include "cli/size_options.h"
#include "model/base/fingerprint.h"

namespace spillway {

/// Options count as they were given, files by what they hold and not by their names.
class QuestionStamp {
 public:
  explicit QuestionStamp(std::string_view command);

  void add(std::string_view option, std::string_view value);
  template <typename Value>
  void add(std::string_view option, const std::vector<Value>& values) {
    for (const Value& value : values) add(option, fmt::format("{}", value));
  }
  /// What is no file counts by its name.
  void add_file(const std::string& path);
  void add(const HardwareProfile& profile);
  void add(const BudgetOptions& budget);
  void add(const SizeOptions& sizes);
  /// A step, and the files that it was read from.
  void add(const StepOptions& options, const LoadedStep& loaded);

  /// 16 hex digits.
  std::string text() const;

 private:
  Fingerprint print_;
};

}  // namespace spillway
