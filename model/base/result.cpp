#include "model/base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/base/utf8.h"

namespace spillway {
namespace {

/// The widest line that is shown whole; of a wider one, this much around the column.
constexpr std::size_t kWidest = 160;
constexpr std::size_t kWindow = 96;
/// What an Error keeps of a line in front of and behind its column.
constexpr std::size_t kKeptBefore = 64 * 1024;
constexpr std::size_t kKeptBehind = 256;

/// Where the line that holds `at` ends: at a line feed, or at a carriage return that stands alone.
std::size_t end_of_line(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '\n') {
    if (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n')) break;
    ++at;
  }
  return at;
}

/// One entry a column on the screen.
struct Cells {
  std::vector<std::string_view> glyphs;
  std::size_t marked = 0;  ///< the one that holds byte `offset`
};

Cells make_cells(std::string_view line, std::size_t offset) {
  Cells cells;
  for (std::size_t at = 0; at < line.size();) {
    const CodePoint point = decode_utf8(line.substr(at));
    const std::size_t bytes = std::max<std::size_t>(point.bytes, 1);
    if (at <= offset) cells.marked = cells.glyphs.size();
    if (line[at] == '\t')
      cells.glyphs.push_back(" ");
    else if (point.bytes == 0 || disturbs_terminal(point.value))
      cells.glyphs.push_back("?");
    else
      cells.glyphs.push_back(line.substr(at, bytes));
    at += bytes;
  }
  if (offset >= line.size()) cells.marked = cells.glyphs.size();
  return cells;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const std::string_view glyph : make_cells(text, 0).glyphs) shown += glyph;
  return shown;
}

/// The excerpt, and a caret under its column if the error has one.
std::string show_excerpt(const Error& error) {
  const std::size_t offset = error.where.column.value_or(1) - std::size_t{1};
  const Cells cells = make_cells(error.excerpt, offset);
  std::size_t begin = 0;
  std::size_t end = cells.glyphs.size();
  if (end > kWidest) {
    begin = cells.marked > kWindow / 2 ? std::min(cells.marked - kWindow / 2, end - kWindow) : 0;
    end = std::min(begin + kWindow, end);
  }
  std::string line = begin > 0 ? "…" : "";
  for (std::size_t i = begin; i < end; ++i) line += cells.glyphs[i];
  if (end < cells.glyphs.size()) line += "…";
  const std::string margin = fmt::format("{:>4} | ", error.where.line.value_or(0));
  std::string text = "\n" + margin + line;
  if (!error.where.column) return text;
  const std::size_t caret = cells.marked - std::min(cells.marked, begin) + (begin > 0 ? 1 : 0);
  return text + "\n" + std::string(margin.size() - 2, ' ') + "| " + std::string(caret, ' ') + "^";
}

}  // namespace

std::string to_text(const Error& error) {
  std::string text = printable(error.where.path);
  if (error.where.line) text += fmt::format(":{}", *error.where.line);
  if (error.where.column) text += fmt::format(":{}", *error.where.column);
  text += (text.empty() ? "error: " : ": error: ") + printable(error.text);
  if (!error.excerpt.empty()) text += show_excerpt(error);
  const bool beside_caret = !error.excerpt.empty() && error.where.column;
  if (!error.advice.empty()) text += (beside_caret ? " " : "\n  ") + printable(error.advice);
  return text;
}

Error error_in_text(std::string path, std::string_view content, std::size_t offset,
                    std::string text, std::string advice) {
  offset = std::min(offset, content.size());
  std::uint32_t number = 1;
  std::size_t line_start = 0;
  for (std::size_t end = end_of_line(content, 0); end < offset; end = end_of_line(content, end)) {
    ++number;
    line_start = ++end;
  }
  const std::size_t before = offset - line_start;
  std::string_view line = content.substr(line_start, before + kKeptBehind);
  line = line.substr(0, end_of_line(line, before));
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (before > kKeptBefore) line = {};
  const auto column = static_cast<std::uint32_t>(before) + 1;
  return Error{ErrorKind::kInput, std::move(text), SourceRef{std::move(path), number, column},
               std::string(line), std::move(advice)};
}

Error error_in_file(std::string path, std::string text, std::string advice) {
  return Error{ErrorKind::kInput, std::move(text), SourceRef{std::move(path), {}, {}}, "",
               std::move(advice)};
}

Error usage_error(std::string text, std::string advice) {
  return Error{ErrorKind::kUsage, std::move(text), {}, "", std::move(advice)};
}

std::string quoted(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  if (name.size() <= kLongest) return fmt::format("'{}'", name);
  return fmt::format("'{}…'", name.substr(0, kLongest));
}

}  // namespace spillway
