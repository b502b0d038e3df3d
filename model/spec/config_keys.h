// A flat configuration as a reader of MaxText's YAML asks it: keys of the user's file, behind them
// those of the model it names. Remembers the first problem, so that a reader can ask for everything
// and look once.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/hardware/yaml_document.h"

namespace spillway {

class ConfigKeys {
 public:
  /// `model` may be null: then the file says everything. Both must outlive this.
  ConfigKeys(const YamlDocument& file, const YamlDocument* model) : file_(&file), model_(model) {}

  struct Found {
    const YamlNode* value;
    TextPosition at;
    bool in_file;
  };
  /// The value of a key in the file, else in the model.
  std::optional<Found> find(std::string_view key);
  bool has(std::string_view key) { return find(key).has_value(); }

  /// A dimension that has to be there: its absence is a problem that names the key.
  std::int64_t require_size(std::string_view key, std::string_view what);
  /// Values with MaxText's own default where the key is absent.
  std::int64_t integer(std::string_view key, std::int64_t otherwise);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise);

  /// A problem at a key of the file, or with the file where the key is not in it.
  void fail(std::string_view key, std::string text, std::string advice = "");
  const std::optional<Error>& problem() const { return problem_; }
  /// Keys of the file that nobody asked for.
  std::vector<std::string> unread() const;

 private:
  const YamlDocument* file_;
  const YamlDocument* model_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> problem_;
};

/// The entry of a mapping, the last where a key stands twice; null where there is none.
const YamlNode::Entry* find_entry(const YamlNode& mapping, std::string_view key);

/// "1_000", "5e-1", "true": what YAML 1.1 writes numbers like; empty where it is none.
std::optional<double> parse_number(std::string_view text);

}  // namespace spillway
