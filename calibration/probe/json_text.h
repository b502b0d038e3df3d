// JSON as text, without a library: the probe builds where there is none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::probe {

/// Objects and lists are opened and closed; commas come by themselves.
class JsonText {
 public:
  void open(char bracket) { item(), text_ += bracket, first_ = true; }
  void open(std::string_view key, char bracket) { name(key), text_ += bracket, first_ = true; }
  void close(char bracket) { text_ += bracket, first_ = false; }
  void add(std::string_view key, std::string_view value) { name(key), quote(value); }
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, bool value) { name(key), text_ += value ? "true" : "false"; }
  void add(std::string_view key, std::int64_t value) { name(key), text_ += std::to_string(value); }
  void add(std::string_view key, int value) { add(key, std::int64_t{value}); }
  void add(std::string_view key, double value) { name(key), number(value); }
  void add(std::string_view key, const std::vector<double>& values);
  /// Each item of the list that is open on a line of its own.
  void line() {
    text_ += first_ ? "\n" : ",\n";
    first_ = true;
  }
  const std::string& text() const { return text_; }

 private:
  void item() {
    if (!first_) text_ += ", ";
    first_ = false;
  }
  void name(std::string_view key) { item(), quote(key), text_ += ": "; }
  void quote(std::string_view value);
  void number(double value);

  std::string text_;
  bool first_ = true;
};

}  // namespace spillway::probe
