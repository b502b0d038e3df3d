#include "model/base/result.h"

#include <fmt/format.h>

namespace spillway {

std::string to_text(const Error& error) {
  std::string where = error.where.path;
  if (error.where.line) where += fmt::format(":{}", *error.where.line);
  if (error.where.column) where += fmt::format(":{}", *error.where.column);
  std::string text = where.empty() ? "error: " : where + ": error: ";
  text += error.text;
  if (error.excerpt.empty()) {
    if (!error.advice.empty()) text += "\n  " + error.advice;
    return text;
  }
  const std::string line_number = fmt::format("{:>4} | ", error.where.line.value_or(0));
  text += "\n" + line_number + error.excerpt;
  if (error.where.column) {
    text += "\n" + std::string(line_number.size() - 2, ' ') + "| " +
            std::string(*error.where.column - 1, ' ') + "^";
    if (!error.advice.empty()) text += " " + error.advice;
  } else if (!error.advice.empty()) {
    text += "\n  " + error.advice;
  }
  return text;
}

}  // namespace spillway
