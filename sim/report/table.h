// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace spillway {

/// Rows of cells, each column as wide as its widest cell. A column is right-aligned when its head
/// starts with '>'.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : head_(std::move(head)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Every line starts with `indent` blanks and ends with a line end.
  std::string text(std::size_t indent = 2) const;
  /// The same as Markdown; a '|' in a cell is escaped.
  std::string markdown() const;

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace spillway
