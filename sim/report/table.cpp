#include "sim/report/table.h"

#include <algorithm>

namespace spillway {
namespace {

/// Columns on the screen: bytes that continue a letter of UTF-8 take none.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cell, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string TextTable::text(std::size_t indent) const {
  std::vector<bool> right(head_.size());
  std::vector<std::vector<std::string>> lines = {head_};
  for (std::size_t c = 0; c < head_.size(); ++c) {
    right[c] = head_[c].starts_with('>');
    if (right[c]) lines[0][c].erase(0, 1);
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<std::size_t> width(head_.size(), 0);
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], width_of(line[c]));
  std::string text;
  for (const auto& line : lines) {
    std::string row(indent, ' ');
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string pad(width[c] - width_of(line[c]), ' ');
      row += right[c] ? pad + line[c] : line[c] + pad;
      if (c + 1 < line.size()) row += "  ";
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string TextTable::markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) {
      text += ' ';
      for (const char c : cell) {
        if (c == '|') text += '\\';
        text += c;
      }
      text += " |";
    }
    return text + "\n";
  };
  std::vector<std::string> head = head_, rule;
  for (std::string& cell : head) {
    rule.emplace_back(cell.starts_with('>') ? "---:" : "---");
    if (cell.starts_with('>')) cell.erase(0, 1);
  }
  std::string text = line(head) + line(rule);
  for (const auto& row : rows_) text += line(row);
  return text;
}

}  // namespace spillway
