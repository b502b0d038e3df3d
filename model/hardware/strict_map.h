// Reads mappings strictly (house style 8 and 10): unknown keys, keys given twice, missing keys and
// values of the wrong shape are problems with a place. Reading goes on after a problem, so that the
// one to report can be chosen: a misspelt key rather than the key that is missing because of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/hardware/yaml_document.h"

namespace spillway {

/// The problems of one document.
class YamlProblems {
 public:
  explicit YamlProblems(const YamlDocument& document) : document_(&document) {}

  void add(TextPosition at, std::string text, std::string advice = "");
  /// Reported only when nothing else is wrong.
  void add_missing(TextPosition at, std::string text, std::string advice);

  /// The first in the order of the file; what is missing comes last. Empty when all is well.
  std::optional<Error> first() const;

 private:
  struct Problem {
    bool missing;
    TextPosition at;
    std::string text;
    std::string advice;
  };
  const YamlDocument* document_;
  std::vector<Problem> problems_;
};

/// One mapping. `name` is its key, for messages; "" for the whole document.
/// Ask for every key that may be there, then call `finish`.
class StrictMap {
 public:
  /// A node that is no mapping is a problem; then every key reads as absent, silently.
  StrictMap(const YamlNode& node, TextPosition at, std::string name, YamlProblems& problems);

  struct Value {
    const YamlNode* node;
    TextPosition key_at;
  };
  /// The value of a key that may be left out.
  std::optional<Value> find(std::string_view key);
  /// The value of a key that must be there. `example` shows what to write: "clock: 2 GHz".
  std::optional<Value> require(std::string_view key, std::string_view example);
  /// The scalar of a key that must be there.
  std::optional<Value> require_scalar(std::string_view key, std::string_view example);

  /// Every key that nobody asked for is a problem.
  void finish();

  /// "'clock' of 'device'", or "'clock'" at the top.
  std::string describe(std::string_view key) const;

 private:
  const YamlNode* node_;  // null when it is no mapping
  TextPosition at_;
  std::string name_;
  YamlProblems* problems_;
  std::vector<std::string> known_;
};

}  // namespace spillway
